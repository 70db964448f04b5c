// Goal: drivers of Go work against a running server: pgx in each of its modes and through a pool, database/sql with pgx and
// with lib/pq, COPY of both, nested transactions, cancellation by a deadline. Argument: host:port of the wire protocol.

package main

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/lib/pq"
)

var failed = 0

func check(what string, err error) bool {
	if err != nil {
		fmt.Println("FAIL", what, err)
		failed++
		return false
	}
	return true
}
func expect(what string, got, want any) {
	if fmt.Sprint(got) != fmt.Sprint(want) {
		fmt.Println("FAIL", what, "got", got, "want", want)
		failed++
	}
}

func main() {
	address := os.Args[1]
	url := "postgres://admin:quest@" + address + "/qdb?sslmode=disable"
	ctx := context.Background()
	for _, mode := range []string{"cache_statement", "cache_describe", "describe_exec", "exec", "simple_protocol"} {
		pgxRun(ctx, url+"&default_query_exec_mode="+mode, mode)
	}
	pool(ctx, url)
	database("pgx", url)
	database("postgres", url)
	pqCopy(url)
	fmt.Println("failed:", failed)
	if failed > 0 {
		os.Exit(1)
	}
}

func pgxRun(ctx context.Context, url, mode string) {
	c, err := pgx.Connect(ctx, url)
	if !check(mode+" connect", err) {
		return
	}
	defer c.Close(ctx)
	check(mode+" ping", c.Ping(ctx))
	_, err = c.Exec(ctx, "drop table if exists go_t")
	check(mode+" drop", err)
	_, err = c.Exec(ctx, "create table go_t (ts timestamp, s symbol, d double, i int, l long, b boolean, v varchar, u uuid, a double[]) timestamp(ts) partition by day")
	check(mode+" create", err)
	at := time.Date(2024, 1, 2, 3, 4, 5, 123456000, time.UTC)
	tag, err := c.Exec(ctx, "insert into go_t values ($1,$2,$3,$4,$5,$6,$7,$8,$9)", at, "sym", 1.5, 7, int64(1)<<40, true, "it's", "11111111-2222-3333-4444-555555555555", []float64{1, 2.5})
	if check(mode+" insert", err) {
		expect(mode+" rows", tag.RowsAffected(), 1)
	}
	var ts time.Time
	var s, v, u string
	var d float64
	var i int32
	var l int64
	var b bool
	var a []float64
	err = c.QueryRow(ctx, "select ts,s,d,i,l,b,v,u::string,a from go_t where i = $1", 7).Scan(&ts, &s, &d, &i, &l, &b, &v, &u, &a)
	if check(mode+" select", err) {
		expect(mode+" row", fmt.Sprint(ts.UTC(), s, d, i, l, b, v, u, a), fmt.Sprint(at, "sym", 1.5, 7, int64(1)<<40, true, "it's", "11111111-2222-3333-4444-555555555555", []float64{1, 2.5}))
	}
	batch := &pgx.Batch{}
	for n := 0; n < 1000; n++ {
		batch.Queue("insert into go_t (ts, s, d, i) values ($1, $2, $3, $4)", at.Add(time.Duration(n)*time.Second), "b", float64(n)/2, n)
	}
	results := c.SendBatch(ctx, batch)
	total := int64(0)
	for n := 0; n < 1000; n++ {
		tag, err := results.Exec()
		if !check(mode+" batch", err) {
			break
		}
		total += tag.RowsAffected()
	}
	check(mode+" batch end", results.Close())
	expect(mode+" batch rows", total, 1000)
	rows := [][]any{}
	for n := 0; n < 500; n++ {
		rows = append(rows, []any{at.Add(time.Duration(n) * time.Minute), "c", float64(n), int32(n), nil})
	}
	if mode != "simple_protocol" {
		copied, err := c.CopyFrom(ctx, pgx.Identifier{"go_t"}, []string{"ts", "s", "d", "i", "v"}, pgx.CopyFromRows(rows))
		if check(mode+" copy", err) {
			expect(mode+" copied", copied, 500)
		}
		var counted int64
		check(mode+" count", c.QueryRow(ctx, "select count(*) from go_t").Scan(&counted))
		expect(mode+" counted", counted, 1501)
	}
	tx, err := c.Begin(ctx)
	check(mode+" begin", err)
	_, err = tx.Exec(ctx, "insert into go_t (ts, i) values ($1, $2)", at, 99999)
	check(mode+" tx insert", err)
	nested, err := tx.Begin(ctx)
	check(mode+" savepoint", err)
	_, err = nested.Exec(ctx, "insert into go_t (ts, i) values ($1, $2)", at, 99999)
	check(mode+" nested insert", err)
	check(mode+" nested rollback", nested.Rollback(ctx))
	check(mode+" commit", tx.Commit(ctx))
	var many int64
	check(mode+" tx count", c.QueryRow(ctx, "select count(*) from go_t where i = 99999").Scan(&many))
	expect(mode+" tx rows", many, 1)
	_, err = c.Exec(ctx, "select * from nowhere")
	expect(mode+" error", err != nil, true)
	if mode == "cache_statement" {
		cctx, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
		defer cancel()
		_, err = c.Exec(cctx, "select sum(x) from long_sequence(1000000000000)")
		expect(mode+" cancelled", err != nil, true)
	}
}

func pool(ctx context.Context, url string) {
	p, err := pgxpool.New(ctx, url+"&pool_max_conns=4")
	if !check("pool", err) {
		return
	}
	defer p.Close()
	done := make(chan error, 8)
	for w := 0; w < 8; w++ {
		go func() {
			for n := 0; n < 20; n++ {
				var one int64
				if err := p.QueryRow(ctx, "select count(*) from go_t where i >= $1", n).Scan(&one); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for w := 0; w < 8; w++ {
		check("pool query", <-done)
	}
}

func database(driver, url string) {
	db, err := sql.Open(driver, url)
	if !check(driver+" open", err) {
		return
	}
	defer db.Close()
	check(driver+" ping", db.Ping())
	_, err = db.Exec("drop table if exists go_d")
	check(driver+" drop", err)
	_, err = db.Exec("create table go_d (ts timestamp, s varchar, d double, b boolean, x binary) timestamp(ts) partition by day")
	check(driver+" create", err)
	tx, err := db.Begin()
	check(driver+" begin", err)
	st, err := tx.Prepare("insert into go_d values ($1, $2, $3, $4, $5)")
	if check(driver+" prepare", err) {
		for n := 0; n < 10; n++ {
			_, err = st.Exec(time.Unix(int64(1704067200+n), 123456000).UTC(), fmt.Sprint("text ", n), float64(n)/3, n%2 == 0, []byte{1, 2, byte(n)})
			check(driver+" exec", err)
		}
		check(driver+" close", st.Close())
	}
	check(driver+" commit", tx.Commit())
	rows, err := db.Query("select ts, s, d, b, x from go_d where d > $1", 0.5)
	if check(driver+" query", err) {
		n := 0
		for rows.Next() {
			var ts time.Time
			var s string
			var d float64
			var b sql.NullBool
			var x []byte
			check(driver+" scan", rows.Scan(&ts, &s, &d, &b, &x))
			n++
		}
		check(driver+" rows", rows.Err())
		expect(driver+" rows", n, 8)
	}
	types, err := db.Query("select * from go_d limit 1")
	if check(driver+" types", err) {
		names := ""
		ct, _ := types.ColumnTypes()
		for _, t := range ct {
			names += t.DatabaseTypeName() + " "
		}
		expect(driver+" types", names, "TIMESTAMP VARCHAR FLOAT8 BOOL BYTEA ")
		types.Close()
	}
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	start := time.Now()
	_, err = db.ExecContext(ctx, "select sum(x) from long_sequence(1000000000000)")
	expect(driver+" cancelled", err != nil && time.Since(start) < 5*time.Second, true)
	_, err = db.Exec("insert into go_d (ts, s) values ($1, $2)", "not a time", "x")
	expect(driver+" bad value", err != nil, true)
}

func pqCopy(url string) {
	db, _ := sql.Open("postgres", url)
	defer db.Close()
	tx, err := db.Begin()
	if !check("pq begin", err) {
		return
	}
	st, err := tx.Prepare(pq.CopyIn("go_d", "ts", "s", "d", "b"))
	if check("pq copy", err) {
		for n := 0; n < 1000; n++ {
			_, err = st.Exec(time.Unix(int64(1704067200+n), 0).UTC(), "tab\there", 1.25, true)
			check("pq copy row", err)
		}
		_, err = st.Exec()
		check("pq copy end", err)
		check("pq copy close", st.Close())
	}
	check("pq commit", tx.Commit())
	var n int
	check("pq count", db.QueryRow("select count(*) from go_d where s = E'tab\\there'").Scan(&n))
	expect("pq copied", n, 1000)
	var list []string
	check("pq array", db.QueryRow("select array_agg(s) from (select distinct s from go_d order by s limit 2)").Scan(pq.Array(&list)))
}
