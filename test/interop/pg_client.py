"""PostgreSQL drivers of Python against a server: psycopg (sync, async, binary, COPY, pipelines, server cursors), asyncpg,
SQLAlchemy with reflection. Prints what failed; the exit status says whether anything did.

    python3 pg_client.py HOST:PORT
"""

import asyncio
import datetime
import sys
import uuid
from decimal import Decimal

import asyncpg
import psycopg
import sqlalchemy

host, port = sys.argv[1].rsplit(":", 1)
target = dict(host=host, port=int(port), user="admin", password="quest")
when = datetime.datetime(2024, 2, 3, 4, 5, 6, 789012)
some_id = uuid.UUID("11111111-2222-3333-4444-555555555555")
row = (when, "sym", 1.5, -3, 9007199254740993, True, some_id, "grüße", b"\x00\x01\xff")
names = "ts, s, d, i, l, b, u, v, bin"
places = ", ".join(["%s"] * len(row))
failures = 0


def check(name, got, wanted):
    global failures
    if got == wanted:
        return
    failures += 1
    print(f"FAILED {name}: got {got!r}, wanted {wanted!r}")


def create(connection, table):
    connection.execute(f"drop table if exists {table}")
    connection.execute(
        f"create table {table} (ts timestamp, s symbol, d double, i int, l long, b boolean, u uuid, v varchar,"
        f" bin binary) timestamp(ts) partition by day"
    )


def psycopg_sync():
    with psycopg.connect(**target, dbname="qdb", autocommit=True) as connection:
        create(connection, "py_sync")
    with psycopg.connect(**target, dbname="qdb") as connection:
        for binary in (False, True):
            cursor = connection.cursor(binary=binary)
            cursor.execute(f"insert into py_sync ({names}) values ({places})", row, binary=binary)
            check("rowcount", cursor.rowcount, 1)
        connection.commit()
        for binary in (False, True):
            cursor = connection.cursor(binary=binary)
            cursor.execute("select * from py_sync where i = %s and s = %s", (-3, "sym"))
            check(f"rows, binary={binary}", cursor.fetchall(), [row, row])
        cursor = connection.cursor()
        cursor.execute("select i from py_sync where s = any(%s) and ts > %s limit %s", (["sym", "x"], when.date(), 1))
        check("any", cursor.fetchall(), [(-3,)])
        connection.rollback()
        cursor.executemany("insert into py_sync (ts, i) values (%s, %s)", [(when, n) for n in range(1000)])
        check("executemany", cursor.rowcount, 1000)
        connection.commit()
        check("count", cursor.execute("select count() from py_sync").fetchone(), (1002,))
        with connection.transaction():
            cursor.execute("insert into py_sync (ts, i) values (%s, 1)", (when,))
            try:
                with connection.transaction():
                    cursor.execute("insert into py_sync (ts, i) values (%s, 2)", (when,))
                    raise ValueError
            except ValueError:
                pass
        connection.commit()
        check("nested", cursor.execute("select count() from py_sync").fetchone(), (1003,))
        try:
            cursor.execute("select * from nowhere")
        except psycopg.errors.UndefinedTable as error:
            check("position", error.diag.statement_position, "15")
        connection.rollback()
        with connection.pipeline():
            for n in range(10):
                connection.execute("insert into py_sync (ts, i) values (%s, %s)", (when, n))
        connection.commit()
        check("pipeline", cursor.execute("select count() from py_sync").fetchone(), (1013,))
        with connection.cursor(name="server_side") as server_side:
            server_side.execute("select x from long_sequence(%s)", (25,))
            check("server cursor", len(server_side.fetchmany(10)) + len(server_side.fetchall()), 25)
        check("numeric", connection.execute("select %s::decimal(10,2)", (Decimal("12.34"),)).fetchone(), (Decimal("12.34"),))


def psycopg_copy():
    with psycopg.connect(**target, dbname="qdb") as connection:
        connection.autocommit = True
        create(connection, "py_copy")
        connection.autocommit = False
        cursor = connection.cursor()
        with cursor.copy(f"copy py_copy ({names}) from stdin") as copy:
            for _ in range(1000):
                copy.write_row(row)
        check("copy in", cursor.rowcount, 1000)
        with cursor.copy("copy py_copy (ts, i, d) from stdin with (format binary)") as copy:
            copy.set_types(["timestamp", "int4", "float8"])
            for n in range(1000):
                copy.write_row((when, n, n / 2))
        connection.commit()
        check("copied", cursor.execute("select count(), sum(d) from py_copy").fetchone(), (2000, 1500.0 + 249750.0))
        with cursor.copy("copy (select ts, s, d from py_copy where s = 'sym' limit 2) to stdout") as copy:
            copy.set_types(["timestamp", "text", "float8"])
            check("copy out", list(copy.rows()), [(when, "sym", 1.5)] * 2)
        with cursor.copy("copy (select i, d from py_copy where s = null limit 2) to stdout with (format binary)") as copy:
            copy.set_types(["int4", "float8"])
            check("binary copy out", list(copy.rows()), [(0, 0.0), (1, 0.5)])


async def psycopg_async():
    async with await psycopg.AsyncConnection.connect(**target, dbname="qdb", autocommit=True) as connection:
        cursor = await connection.execute("select x, x / 2.0 from long_sequence(%s)", (3,))
        check("async", await cursor.fetchall(), [(1, 0.5), (2, 1.0), (3, 1.5)])


async def with_asyncpg():
    pool = await asyncpg.create_pool(**target, database="qdb", min_size=1, max_size=2)
    async with pool.acquire() as connection:
        await connection.execute("drop table if exists py_async")
        await connection.execute(
            "create table py_async (ts timestamp, s symbol, d double, i int, l long, b boolean, u uuid, v varchar,"
            " bin binary) timestamp(ts) partition by day"
        )
        dollars = ", ".join(f"${n + 1}" for n in range(len(row)))
        await connection.execute(f"insert into py_async ({names}) values ({dollars})", *row)
        await connection.executemany("insert into py_async (ts, i) values ($1, $2)", [(when, n) for n in range(500)])
        check("asyncpg row", tuple(await connection.fetchrow("select * from py_async where i = $1", -3)), row)
        check("asyncpg count", await connection.fetchval("select count() from py_async"), 501)
        async with connection.transaction():
            cursor = await connection.cursor("select x from long_sequence(100)")
            check("asyncpg cursor", len(await cursor.fetch(30)) + len(await cursor.fetch(100)), 100)
        await connection.copy_records_to_table("py_async", records=[(when, 7)], columns=["ts", "i"])
        check("asyncpg copy", await connection.fetchval("select count() from py_async where i = 7"), 2)
        await asyncpg_lists(connection)
        try:
            await connection.fetch("select nope from py_async")
        except asyncpg.exceptions.UndefinedColumnError:
            pass
    await pool.close()


async def asyncpg_lists(connection):
    """Types of lists are looked up before the first of each."""
    where = "select count() from py_async where"
    for kind, condition, values, wanted in (
        ("int4", "i = any($1)", [1, 2, 3], 3),
        ("int8", "i::long = any($1::int8[])", [1, 2], 2),
        ("int8, not", "i::long <> all($1::int8[]) and i < 5", [1, 2], 4),
        ("float8", "d = any($1::float8[])", [1.5, 2.5], 1),
        ("text", "s = any($1)", ["sym", "x"], 1),
        ("timestamp", "ts = any($1::timestamp[])", [when], 502),
        ("uuid", "u = any($1::uuid[])", [some_id], 1),
        ("bool", "b = any($1::bool[])", [True], 1),
    ):
        check(f"asyncpg list of {kind}", await connection.fetchval(f"{where} {condition}", values), wanted)
    check("asyncpg unnest", [x for (x,) in await connection.fetch("select * from unnest($1::int8[]) as u(x)", [4, 5])], [4, 5])
    await connection.execute("drop table if exists py_list")
    await connection.execute("create table py_list (ts timestamp, a double[], b double[][]) timestamp(ts) partition by day")
    square = [[1.0, 2.0], [3.0, 4.0]]
    await connection.execute("insert into py_list values ($1, $2, $3)", when, [1.5, 2.5], square)
    check("asyncpg arrays", tuple(await connection.fetchrow("select a, b from py_list")), ([1.5, 2.5], square))
    async with connection.transaction():
        await connection.execute("insert into py_list (ts) values ($1)", when)
        check("asyncpg own rows", await connection.fetchval("select count() from py_list"), 2)


def with_adbc():
    """Where the package is there."""
    try:
        import adbc_driver_postgresql.dbapi as adbc
        import pyarrow
    except ImportError:
        print("adbc: skipped, adbc_driver_postgresql or pyarrow is missing")
        return
    rows = pyarrow.table({"a": [1, 2, 3], "b": ["x", "y", None], "c": [1.5, None, 2.5]})
    with adbc.connect(f"postgresql://admin:quest@{host}:{port}/qdb") as connection:
        cursor = connection.cursor()
        cursor.execute("drop table if exists py_adbc")
        check("adbc ingest", cursor.adbc_ingest("py_adbc", rows, mode="create"), 3)
        check("adbc append", cursor.adbc_ingest("py_adbc", rows, mode="append"), 3)
        connection.commit()
        cursor.execute("select a, b, c from py_adbc where a > $1", (2,))
        check("adbc rows", cursor.fetch_arrow_table().to_pylist(), [{"a": 3, "b": None, "c": 2.5}] * 2)
        check("adbc schema", connection.adbc_get_table_schema("py_adbc").names, ["a", "b", "c"])
        objects = connection.adbc_get_objects(depth="all").read_all().to_pylist()
        tables = [t["table_name"] for s in objects[0]["catalog_db_schemas"] for t in s["db_schema_tables"] or []]
        check("adbc objects", "py_adbc" in tables, True)


def with_sqlalchemy():
    url = sqlalchemy.URL.create("postgresql+psycopg", "admin", "quest", host, int(port), "qdb")
    engine = sqlalchemy.create_engine(url)
    inspector = sqlalchemy.inspect(engine)
    check("has table", inspector.has_table("py_sync"), True)
    check("columns", [column["name"] for column in inspector.get_columns("py_sync")], names.split(", "))
    table = sqlalchemy.Table("py_sync", sqlalchemy.MetaData(), autoload_with=engine)
    with engine.begin() as connection:
        connection.execute(table.insert(), [{"ts": when, "i": 100 + n} for n in range(5)])
    with engine.connect() as connection:
        found = connection.execute(sqlalchemy.select(table.c.i).where(table.c.i >= 100).order_by(table.c.i)).all()
        check("sqlalchemy", [n for (n,) in found if n >= 100][:1], [100])


psycopg_sync()
psycopg_copy()
asyncio.run(psycopg_async())
asyncio.run(with_asyncpg())
with_sqlalchemy()
with_adbc()
print(f"{failures} failed")
sys.exit(1 if failures else 0)
