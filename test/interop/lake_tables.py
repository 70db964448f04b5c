"""Tables of the lake as PyIceberg and DuckDB read them through the server's catalog, compared with SQL: counts, sums and
bounds of every type, after inserts, late rows, updates, deletes, an added, a renamed and a dropped column, a type change and
a dropped partition, while rows arrive; pruning by partition and by bounds; and tables of format version 3.

With PENSTOCK_S3 (and AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY) the store is an S3 service, else a folder. DuckDB takes part
when its extensions are there, as packages duckdb-ext-iceberg, -avro and -httpfs.

usage: lake_tables.py HTTP_PORT"""

import json
import os
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

import pyarrow.compute as pc
from pyiceberg.catalog import load_catalog
from pyiceberg.expressions import GreaterThanOrEqual

from duckdb_extensions import extension_paths, iceberg_connection

base = f"http://127.0.0.1:{sys.argv[1]}"
s3 = os.environ.get("PENSTOCK_S3")
keys = {"s3.access-key-id": os.environ.get("AWS_ACCESS_KEY_ID", ""), "s3.secret-access-key": os.environ.get("AWS_SECRET_ACCESS_KEY", "")}
catalog = load_catalog("penstock", type="rest", uri=f"{base}/iceberg", **(keys if s3 else {}))


def execute(query):
    url = f"{base}/exec?{urllib.parse.urlencode({'query': query})}"
    try:
        with urllib.request.urlopen(url, timeout=300) as answer:
            return json.loads(answer.read()).get("dataset", [])
    except urllib.error.HTTPError as error:
        sys.exit(f"{query}: {error.read().decode()}")


def follow(table):
    """Until the lake has everything that the table had at the call."""
    calm = 0
    for _ in range(1200):
        state, failure = execute(f"select state, failure from lake_tables() where table_name = '{table}'")[0]
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
    if len(expected) != len(found) or not all(close(x, y) for x, y in zip(expected, found)):
        sys.exit(f"{name}: expected {expected}, found {found}")
    print(f"{name}: {found}")


def arrow(table, **options):
    return catalog.load_table(f"qdb.{table}").scan(**options).to_arrow()


def micros(value):
    return pc.cast(value, "int64").as_py()


# Trades ------------------------------------------------------------------------------------------------------------

execute("create table trades (ts timestamp, symbol symbol, price double, amount long, note varchar) timestamp(ts) partition by day lake on")


def insert(first, count):
    execute(
        f"insert into trades select dateadd('s', (x * 37)::int, '2024-01-01'::timestamp), 's' || x % 9,"
        f" case when x % 11 = 0 then null else x / 7.0 end, x + {first}, 'n' || x from long_sequence({count})"
    )


def compare_trades(name, column="amount"):
    follow("trades")
    expected = execute(f"select count(), sum({column}), count(price), sum(price), min(ts)::long, max(ts)::long, count_distinct(symbol) from trades")[0]
    read = arrow("trades")
    price = read["price"] if "price" in read.column_names else None
    found = [
        read.num_rows,
        pc.sum(read[column]).as_py(),
        len(price) - price.null_count,
        pc.sum(price).as_py(),
        micros(pc.min(read["ts"])),
        micros(pc.max(read["ts"])),
        pc.count_distinct(read["symbol"]).as_py(),
    ]
    check(f"trades in PyIceberg, {name}", expected, found)
    duck_trades(name, column, expected)


def duck_trades(name, column, expected):
    if duck is None:
        return
    # A new connection, since one keeps the metadata that it has loaded.
    row = duck_connection().execute(
        f"select count(*), sum({column}), count(price), sum(price), epoch_us(min(ts)), epoch_us(max(ts)), count(distinct symbol)"
        " from lake.qdb.trades"
    ).fetchone()
    check(f"trades in DuckDB, {name}", expected, list(row))


def duck_connection():
    host = (s3 or "").removeprefix("http://")
    secret = (
        f"type s3, key_id '{keys['s3.access-key-id']}', secret '{keys['s3.secret-access-key']}',"
        f" endpoint '{host}', url_style 'path', use_ssl false, region 'us-east-1'"
    )
    return iceberg_connection(duck, f"{base}/iceberg", "qdb", secret if s3 else "")


duck = extension_paths()
print("with DuckDB" if duck is not None else "without DuckDB: its extensions are missing")

insert(0, 20_000)
compare_trades("inserted")
execute("insert into trades values ('2023-12-31T23:59:59', 'late', 1.5, 7, 'late')")
compare_trades("late rows")
execute("update trades set price = price * 2 where symbol = 's3'")
compare_trades("updated")
execute("delete from trades where symbol = 's4'")
compare_trades("deleted")
execute("alter table trades add column flag boolean")
execute("alter table trades drop column note")
execute("alter table trades rename column amount to volume")
execute("insert into trades values ('2024-01-05T01:00', 'new', 2.5, 8, true)")
compare_trades("other columns", "volume")
read = arrow("trades")
check("a new column", [1, "ts symbol price volume flag"], [read.num_rows - read["flag"].null_count, " ".join(read.column_names)])
execute("alter table trades alter column volume type double")
compare_trades("another type", "volume")
execute("alter table trades drop partition list '2024-01-02'")
compare_trades("without a partition", "volume")

files = len(list(catalog.load_table("qdb.trades").scan().plan_files()))
some = catalog.load_table("qdb.trades").scan(row_filter=GreaterThanOrEqual("ts", "2024-01-08T00:00:00+00:00"))
planned = len(list(some.plan_files()))
if not 0 < planned < files:
    sys.exit(f"nothing is pruned: {planned} of {files} files")
expected = execute("select count() from trades where ts >= '2024-01-08'")[0]
check("pruned by time", expected, [some.to_arrow().num_rows])

# While rows arrive: every snapshot has a prefix of the inserts, each of them whole.
BATCH = 500
execute("create table running (ts timestamp, batch long) timestamp(ts) partition by hour lake on")
done = threading.Event()


def ingest():
    batch = 0
    while not done.is_set():
        execute(f"insert into running select dateadd('s', x::int, '2024-01-01'::timestamp), {batch} from long_sequence({BATCH})")
        batch += 1


thread = threading.Thread(target=ingest)
thread.start()
seen = 0
end = time.time() + 15
while time.time() < end:
    if "running" not in [name for _, name in catalog.list_tables("qdb")]:
        continue
    batches = arrow("running")["batch"]
    count = pc.count_distinct(batches).as_py()
    if len(batches) != count * BATCH or (count > 0 and pc.max(batches).as_py() != count - 1):
        sys.exit(f"a snapshot has {len(batches)} rows of {count} batches")
    seen = max(seen, count)
done.set()
thread.join()
if seen == 0:
    sys.exit("nothing arrived in the lake")
follow("running")
check("after ingestion", execute("select count(), sum(batch) from running")[0], [arrow("running").num_rows, pc.sum(arrow("running")["batch"]).as_py()])

# Every type --------------------------------------------------------------------------------------------------------

execute(
    "create table kinds (ts timestamp, bo boolean, by byte, sh short, ch char, i int, l long, f float, d double, da date,"
    " ns timestamp_ns, st string, va varchar, sy symbol, uu uuid, ip ipv4, ge geohash(8c), bi binary, lo long256,"
    " de decimal(20, 4), hu decimal(50, 2), ar double[], ar2 double[][]) timestamp(ts) partition by month lake on"
)
execute(
    "insert into kinds select timestamp_sequence('2024-01-01', 10000000000L), x % 2 = 0, (x % 100)::byte, (x * 3)::short, 'z',"
    " x::int, x * 1000000007, x / 4.0f, x / 8.0, (x * 86400000)::date, (x * 1000000000 + 789)::timestamp_ns, 'str' || x,"
    " 'va' || x, 'sym' || x % 7, rnd_uuid4(), rnd_ipv4(), rnd_geohash(40), rnd_bin(4, 4, 0), rnd_long256(),"
    " (x || '.1234')::decimal(20, 4), (x || '.25')::decimal(50, 2), ARRAY[x / 2.0, 1], ARRAY[[1.0, x], [2.0, 3.0]]"
    " from long_sequence(700)"
)
execute("insert into kinds (ts) values ('2024-06-01')")
follow("kinds")
expected = execute(
    "select count(), sum(by), sum(sh), sum(i), sum(l), sum(f), sum(d), max(da)::long * 1000, max(ns)::long / 1000, sum(de),"
    " count(uu), count(ip), sum(ar[1]), sum(ar2[1][2]), max(hu), min(va) from kinds"
)[0]
read = arrow("kinds")


def total(name):
    return pc.sum(read[name]).as_py()


def listed(name):
    return [value for value in read[name].to_pylist() if value is not None]


found = [
    *[read.num_rows, total("by"), total("sh"), total("i"), total("l"), total("f"), total("d")],
    *[micros(pc.max(read["da"])), micros(pc.max(read["ns"])), total("de")],
    *[len(listed("uu")), len(listed("ip"))],
    *[sum(value[0] for value in listed("ar")), sum(value[0][1] for value in listed("ar2"))],
    *[max(listed("hu"), key=float), pc.min(read["va"]).as_py()],
]
check("all types in PyIceberg", expected, found)
wide = listed("lo")[0]
check("other representations", [32, 4, 122, 789], [len(wide), len(listed("bi")[0]), listed("ch")[0], pc.max(read["ns_nanos"]).as_py()])
if duck is not None:
    row = duck_connection().execute(
        'select count(*), sum("by"), sum(sh), sum(i), sum(l), sum(f), sum(d), epoch_us(max(da)), epoch_us(max(ns)), sum(de),'
        " count(uu), count(ip), sum(ar[1]), sum(ar2[1][2]), max(hu::double), min(va) from lake.qdb.kinds"
    ).fetchone()
    check("all types in DuckDB", [*expected[:-2], float(expected[-2]), expected[-1]], list(row))

# Format version 3 --------------------------------------------------------------------------------------------------

execute("create table ticks (ts timestamp_ns, x long) timestamp(ts) partition by day lake on format version 3")
execute(
    "insert into ticks select ('2024-01-01T00:00:00.000000789Z'::timestamp_ns::long + x * 10000000000)::timestamp_ns, x"
    " from long_sequence(20000)"
)
execute("create table raised (ts timestamp, x long) timestamp(ts) partition by day lake on")
execute("insert into raised select timestamp_sequence('2024-01-01', 10000000L), x from long_sequence(20000)")
follow("raised")
execute("alter table raised set lake on format version 3")
execute("update raised set x = x + 1 where x < 100")
for table, unit in [("ticks", "ns"), ("raised", "us")]:
    follow(table)
    loaded = catalog.load_table(f"qdb.{table}")
    read = arrow(table)
    expected = execute(f"select count(), sum(x), min(ts)::long::varchar, max(ts)::long::varchar from {table}")[0]
    found = [read.num_rows, pc.sum(read["x"]).as_py(), micros(pc.min(read["ts"])), micros(pc.max(read["ts"]))]
    check(f"{table}, format version {loaded.format_version} in {read.schema.field('ts').type}", expected, found)
    check("its version and unit", [3, unit], [loaded.format_version, read.schema.field("ts").type.unit])
    # PyIceberg has no conditions on timestamptz_ns.
    term, sql = ("x", 15_000) if unit == "ns" else ("ts", "2024-01-02T00:00:00+00:00")
    part = arrow(table, row_filter=GreaterThanOrEqual(term, sql))
    check("a part of it", execute(f"select count() from {table} where {term} >= '{sql}'")[0], [part.num_rows])
if duck is not None:
    row = duck_connection().execute("select count(*), sum(x), epoch_us(max(ts)) from lake.qdb.raised").fetchone()
    check("raised in DuckDB", execute("select count(), sum(x), max(ts)::long from raised")[0], list(row))
print("passed")
