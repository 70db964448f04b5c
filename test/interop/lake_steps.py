"""What the tests of query engines over the lake share: tables that are changed in every way, and the comparison of counts, sums
and bounds with SQL after each change.

An engine is an object with
    row(sql)          the first row of a query
    table(name)       its name of a table in the lake
    refresh(name)     before a table is read again
    micros(x)         microseconds of a time
    item(array, i..)  an element, whose indices count from 1
    quoted(name)      a column that is a keyword"""

import json
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request


class Server:
    def __init__(self, port, authorization=None):
        self.base = f"http://127.0.0.1:{port}"
        self.headers = {} if authorization is None else {"Authorization": authorization}

    def execute(self, query):
        url = f"{self.base}/exec?{urllib.parse.urlencode({'query': query})}"
        try:
            with urllib.request.urlopen(urllib.request.Request(url, headers=self.headers), timeout=300) as answer:
                return json.loads(answer.read()).get("dataset", [])
        except urllib.error.HTTPError as error:
            sys.exit(f"{query}: {error.read().decode()}")

    def follow(self, table):
        """Until the lake has everything that the table had at the call."""
        calm = 0
        for _ in range(1200):
            state, failure = self.execute(f"select state, failure from lake_tables() where table_name = '{table}'")[0]
            calm = calm + 1 if state == "committed" else 0
            if calm == 5:
                return
            time.sleep(0.1)
        sys.exit(f"{table} is not committed: {state}, {failure}")


def close(x, y):
    if isinstance(x, float) or isinstance(y, float):
        return abs(float(x) - float(y)) <= 1e-9 * max(1.0, abs(float(x)))
    return str(x) == str(y)


def check(name, expected, found):
    if len(expected) != len(found):
        sys.exit(f"{name}: expected {expected}, found {found}")
    for place, (x, y) in enumerate(zip(expected, found)):
        if not close(x, y):
            sys.exit(f"{name}: value {place} is {y}, not {x}, of {found}")
    print(f"{name}: {found}", flush=True)


# Trades ------------------------------------------------------------------------------------------------------------

CREATE_TRADES = (
    "create table trades (ts timestamp, symbol symbol, price double, amount long, note varchar) timestamp(ts)"
    " partition by day lake on"
)


def insert_trades(server, first, count):
    server.execute(
        f"insert into trades select dateadd('s', (x * 37)::int, '2024-01-01'::timestamp), 's' || x % 9,"
        f" case when x % 11 = 0 then null else x / 7.0 end, x + {first}, 'n' || x from long_sequence({count})"
    )


def compare_trades(server, engine, name, column="amount"):
    server.follow("trades")
    engine.refresh("trades")
    shared = f"sum({column}), min({column}), max({column}), count(price), sum(price), min(price), max(price), min(symbol), max(symbol)"
    expected = server.execute(f"select count(), {shared}, min(ts)::long, max(ts)::long, count_distinct(symbol) from trades")[0]
    found = engine.row(
        f"select count(*), {shared}, {engine.micros('min(ts)')}, {engine.micros('max(ts)')}, count(distinct symbol)"
        f" from {engine.table('trades')}"
    )
    check(f"trades, {name}", expected, found)


def change_trades(server, engine):
    def step(name, *statements, column="amount"):
        for statement in statements:
            server.execute(statement)
        compare_trades(server, engine, name, column)

    server.execute(CREATE_TRADES)
    insert_trades(server, 0, 20_000)
    step("inserted")
    step("late rows", "insert into trades values ('2023-12-31T23:59:59', 'late', 1.5, 7, 'late')")
    step("updated", "update trades set price = price * 2 where symbol = 's3'")
    step("deleted", "delete from trades where symbol = 's4'")
    columns = ["add column flag boolean", "drop column note", "rename column amount to volume"]
    row = "insert into trades values ('2024-01-05T01:00', 'new', 2.5, 8, true)"
    step("other columns", *[f"alter table trades {change}" for change in columns], row, column="volume")
    check("a new column", [1], engine.row(f"select count(flag) from {engine.table('trades')}"))
    step("another type", "alter table trades alter column volume type double", column="volume")
    step("without a partition", "alter table trades drop partition list '2024-01-02'", column="volume")


# While rows arrive -------------------------------------------------------------------------------------------------

BATCH = 500


def read_while_rows_arrive(server, engine, seconds=15):
    """Every snapshot has a prefix of the inserts, each of them whole."""
    server.execute("create table running (ts timestamp, batch long) timestamp(ts) partition by hour lake on")
    done = threading.Event()

    def ingest():
        batch = 0
        while not done.is_set():
            server.execute(f"insert into running select dateadd('s', x::int, '2024-01-01'::timestamp), {batch} from long_sequence({BATCH})")
            batch += 1

    thread = threading.Thread(target=ingest)
    thread.start()
    try:
        while not server.execute("select 1 from lake_tables() where table_name = 'running' and rows > 0"):
            time.sleep(0.2)
        seen, last, end = set(), -1, time.time() + seconds
        while time.time() < end:
            engine.refresh("running")
            count, batches, newest = engine.row(f"select count(*), count(distinct batch), max(batch) from {engine.table('running')}")
            if count != batches * BATCH or (batches > 0 and newest != batches - 1) or batches < last:
                sys.exit(f"a snapshot has {count} rows of {batches} batches up to {newest}, after {last}")
            last = batches
            seen.add(batches)
    finally:
        done.set()
        thread.join()
    if len(seen) < 2:
        sys.exit(f"nothing arrived in the lake: {seen}")
    server.follow("running")
    engine.refresh("running")
    check(
        f"{len(seen)} snapshots while rows arrived, and their end",
        server.execute("select count(), sum(batch) from running")[0],
        engine.row(f"select count(*), sum(batch) from {engine.table('running')}"),
    )


# Every type --------------------------------------------------------------------------------------------------------

CREATE_KINDS = (
    "create table kinds (ts timestamp, bo boolean, by byte, sh short, ch char, i int, l long, f float, d double, da date,"
    " ns timestamp_ns, st string, va varchar, sy symbol, uu uuid, ip ipv4, ge geohash(8c), bi binary, lo long256,"
    " de decimal(20, 4), hu decimal(50, 2), ar double[], ar2 double[][]) timestamp(ts) partition by month lake on"
)
INSERT_KINDS = (
    "insert into kinds select timestamp_sequence('2024-01-01', 10000000000L), x % 2 = 0, (x % 100)::byte, (x * 3)::short, 'z',"
    " x::int, x * 1000000007, x / 4.0f, x / 8.0, (x * 86400000)::date, (x * 1000000000 + 789)::timestamp_ns, 'str' || x,"
    " 'va' || x, 'sym' || x % 7, rnd_uuid4(), rnd_ipv4(), rnd_geohash(40), rnd_bin(4, 4, 0), rnd_long256(),"
    " (x || '.1234')::decimal(20, 4), (x || '.25')::decimal(50, 2), ARRAY[x / 2.0, 1], ARRAY[[1.0, x], [2.0, 3.0]]"
    " from long_sequence(700)"
)


def figures_of_kinds(engine):
    """Pairs of expressions, of SQL here and of the engine."""

    def both(expression):
        return expression, expression

    pairs = [("count()", "count(*)"), both("sum(case when bo then 1 else 0 end)")]
    for column in ["by", "sh", "i", "l"]:
        pairs += [(f"{name}({column})", f"{name}({engine.quoted(column)})") for name in ["sum", "min", "max", "count"]]
    for column in ["f", "d"]:
        double = f"cast({column} as double)"
        pairs += [both(f"{name}({double})") for name in ["sum", "min", "max", "count"]]
    for column, scale in [("ts", ""), ("da", " * 1000"), ("ns", " / 1000")]:
        pairs += [(f"{name}({column})::long{scale}", engine.micros(f"{name}({column})")) for name in ["min", "max"]]
    pairs += [both(f"{name}(de)") for name in ["sum", "min", "max", "count"]]
    pairs += [(f"{name}(hu)::double", f"{name}(cast(hu as double))") for name in ["min", "max"]]
    for column in ["st", "va", "sy", "uu", "ip", "ge"]:
        # NULL geohashes are empty as text.
        text = f"nullif(cast({column} as string), '')" if column in ("uu", "ip", "ge") else column
        pairs += [(f"{name}({text})", f"{name}({column})") for name in ["count", "min", "max"]]
    pairs += [(f"sum(ar[{i}])", f"sum({engine.item('ar', i)})") for i in (1, 2)]
    pairs += [("sum(ar2[1][2])", f"sum({engine.item('ar2', 1, 2)})")]
    return pairs


def compare_kinds(server, engine):
    server.execute(CREATE_KINDS)
    server.execute(INSERT_KINDS)
    server.execute("insert into kinds (ts) values ('2024-06-01')")
    server.follow("kinds")
    engine.refresh("kinds")
    pairs = figures_of_kinds(engine)
    expected = server.execute(f"select {', '.join(ours for ours, _ in pairs)} from kinds")[0]
    found = engine.row(f"select {', '.join(theirs for _, theirs in pairs)} from {engine.table('kinds')}")
    check("every type", expected, found)
    other = "max(ch), max(length(lo)), max(length(bi)), max(ns_nanos)"
    check("other representations", [122, 32, 4, 789], engine.row(f"select {other} from {engine.table('kinds')}"))
