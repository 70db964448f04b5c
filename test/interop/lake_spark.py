"""The lake and iceberg() beside Spark. Spark attaches to the server's catalog by the properties of docs/lake.md, word for word,
and agrees with SQL on counts, sums and bounds of every type after inserts, an update, a delete, an added and a dropped column
and a type change, by its vectorised reader. Then it writes tables with merge-on-read deletes and changes of their schema into
the import directory, which iceberg() reads.

The store is the S3 service in PENSTOCK_S3, with the keys in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.

usage: lake_spark.py HTTP_PORT DATA_FOLDER JARS [FORMAT_VERSION..]"""

import json
import os
import re
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

from pyspark.sql import SparkSession

port, data, jars, *versions = sys.argv[1:]
base = f"http://127.0.0.1:{port}"
os.environ.setdefault("AWS_REGION", "us-east-1")


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
        return abs(float(x) - float(y)) <= 1e-6 * max(1.0, abs(float(x)))
    return str(x) == str(y)


def check(name, expected, found):
    if len(expected) != len(found) or not all(close(x, y) for x, y in zip(expected, found)):
        sys.exit(f"{name}: expected {expected}, found {found}")
    print(f"{name}: {found}", flush=True)


def documented():
    """The properties in docs/lake.md, with this server's port."""
    page = open(os.path.join(os.path.dirname(__file__), "../../docs/lake.md"), encoding="utf-8").read()
    lines = re.findall(r"^(spark\.sql\.catalog\.qdb\S*) = (\S+)$", page, re.M)
    if len(lines) < 4:
        sys.exit("docs/lake.md lists no properties of Spark")
    return [(key, value.replace(":9000", f":{port}")) for key, value in lines]


warehouse = os.path.join(os.path.dirname(data.rstrip("/")), "import", "spark")
builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").config("spark.jars", jars)
settings = [
    *documented(),
    ("spark.sql.extensions", "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"),
    ("spark.sql.catalog.files", "org.apache.iceberg.spark.SparkCatalog"),
    ("spark.sql.catalog.files.type", "hadoop"),
    ("spark.sql.catalog.files.warehouse", warehouse),
    ("spark.sql.session.timeZone", "UTC"),
    ("spark.sql.shuffle.partitions", "1"),
]
for key, value in settings:
    builder = builder.config(key, value)
spark = builder.getOrCreate()
spark.sparkContext.setLogLevel("ERROR")


def spark_row(query):
    return list(spark.sql(query).collect()[0])


# Our tables in Spark -------------------------------------------------------------------------------------------------

execute("create table trades (ts timestamp, symbol symbol, price double, amount long, note varchar) timestamp(ts) partition by day lake on")


def insert(first, count):
    execute(
        f"insert into trades select dateadd('s', (x * 37)::int, '2024-01-01'::timestamp), 's' || x % 9,"
        f" case when x % 11 = 0 then null else x / 7.0 end, x + {first}, 'n' || x from long_sequence({count})"
    )


def compare_trades(name, column="amount"):
    follow("trades")
    spark.sql("refresh table qdb.qdb.trades")
    shared = f"sum({column}), count(price), sum(price)"
    expected = execute(f"select count(), {shared}, min(ts)::long, max(ts)::long, count_distinct(symbol) from trades")[0]
    found = spark_row(f"select count(*), {shared}, unix_micros(min(ts)), unix_micros(max(ts)), count(distinct symbol) from qdb.qdb.trades")
    check(f"trades, {name}", expected, found)


insert(0, 20_000)
compare_trades("inserted")
execute("insert into trades values ('2023-12-31T23:59:59', 'late', 1.5, 7, 'late')")
execute("update trades set price = price * 2 where symbol = 's3'")
execute("delete from trades where symbol = 's4'")
compare_trades("updated and deleted")
execute("alter table trades add column flag boolean")
execute("alter table trades drop column note")
execute("insert into trades values ('2024-01-05T01:00', 'new', 2.5, 8, true)")
compare_trades("other columns")
execute("alter table trades alter column amount type double")
compare_trades("another type")
check(
    "a day of trades",
    execute("select count() from trades where ts in '2024-01-02'")[0],
    spark_row("select count(*) from qdb.qdb.trades where ts >= timestamp'2024-01-02' and ts < timestamp'2024-01-03'"),
)

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
    " count(uu), count(ip), count(ge), sum(ar[1]), sum(ar2[1][2]), max(hu)::double, min(va) from kinds"
)[0]
found = spark_row(
    "select count(*), sum(by), sum(sh), sum(i), sum(l), sum(f), sum(d), unix_micros(max(da)), unix_micros(max(ns)), sum(de),"
    " count(uu), count(ip), count(ge), sum(ar[0]), sum(ar2[0][1]), max(double(hu)), min(va) from qdb.qdb.kinds"
)
check("every type", expected, found)
check("other representations", [122, 32, 4, 789], spark_row("select max(ch), max(length(lo)), max(length(bi)), max(ns_nanos) from qdb.qdb.kinds"))

# Tables of Spark in iceberg() ----------------------------------------------------------------------------------------

for version in versions or ["2"]:
    table = f"files.d.v{version}"
    moment = "timestamp_micros(1704067200000000 + id * 60000000)"
    spark.sql(
        f"create table {table} (id int, name string, ts timestamp, d date, x float, de decimal(9, 2), bi binary, ar array<double>,"
        " gone struct<a: int>) using iceberg partitioned by (days(ts), bucket(4, id), truncate(2, name)) tblproperties("
        f"'format-version' = '{version}', 'write.delete.mode' = 'merge-on-read', 'write.update.mode' = 'merge-on-read')"
    )
    spark.sql(
        f"insert into {table} select cast(id as int), concat('n', id % 7), {moment}, date_add(date'2024-01-01', cast(id / 100 as int)),"
        " cast(id / 4.0 as float), cast(id / 4.0 as decimal(9, 2)), cast(concat('b', id) as binary),"
        " array(cast(id as double), 0.5D), named_struct('a', 1) from range(5000)"
    )
    spark.sql(f"alter table {table} drop column gone")
    spark.sql(f"delete from {table} where id % 10 = 3")
    spark.sql(f"alter table {table} rename column name to label")
    spark.sql(f"alter table {table} alter column id type bigint")
    spark.sql(f"alter table {table} alter column x type double")
    spark.sql(f"alter table {table} alter column de type decimal(20, 2)")
    spark.sql(f"alter table {table} add column extra string")
    spark.sql(
        f"insert into {table} select id, 'new', timestamp'2024-02-01', date'2024-02-01', 1.5, 2.25, null, null, 'e'"
        " from range(10000, 10100)"
    )
    spark.sql(f"delete from {table} where id in (10001, 7, 8)")
    spark.sql(f"update {table} set x = 0 where id = 20")
    deletes = spark_row(f"select count(*), max(file_format) from {table}.delete_files")
    if deletes[0] == 0:
        sys.exit(f"{table} has no files of deletes")
    print(f"{table}: {deletes[0]} files of deletes, {deletes[1]}")
    source = f"iceberg('spark/d/v{version}')"
    for where in ["", " where ts >= '2024-01-03' and ts < '2024-01-04'", " where label = 'n3' and id > 4000", " where id = 10050"]:
        shared = "sum(id), count(label), sum(x), sum(de), count(extra), count(bi)"
        expected = spark_row(f"select count(*), {shared}, sum(ar[0]), unix_micros(max(ts)) from {table}{where}")
        found = execute(f"select count(), {shared}, sum(ar[1]), max(ts)::long from {source}{where}")[0]
        check(f"iceberg(), format version {version}{where}", [x for x in expected if x is not None], [x for x in found if x is not None])
    plan = execute(f"explain select count() from {source} where ts >= '2024-01-03' and ts < '2024-01-04'")
    all_files = spark_row(f"select count(*) from {table}.files where content = 0")[0]
    read = int(re.search(r"iceberg files: (\d+)", str(plan)).group(1))
    if not 0 < read < all_files:
        sys.exit(f"nothing is pruned: {read} of {all_files} files")
    print(f"pruned: {read} of {all_files} files")
print("passed")
