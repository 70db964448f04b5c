"""The lake and iceberg() beside Spark. Spark attaches to the server's catalog by the properties of docs/lake.md, word for word,
and agrees with SQL after each kind of change and while rows arrive, by its vectorised reader. Then it writes tables with
merge-on-read deletes and changes of their schema into the import directory, which iceberg() reads.

The store is the S3 service in PENSTOCK_S3, with the keys in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.

usage: lake_spark.py HTTP_PORT DATA_FOLDER JARS [FORMAT_VERSION..]"""

import os
import re
import sys

from pyspark.sql import SparkSession

from lake_steps import Server, change_trades, check, compare_kinds, read_version_3, read_while_rows_arrive

port, data, jars, *versions = sys.argv[1:]
server = Server(port)
os.environ.setdefault("AWS_REGION", "us-east-1")


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

class Spark:
    def row(self, sql):
        return spark_row(sql)

    def table(self, name):
        return f"qdb.qdb.{name}"

    def refresh(self, name):
        spark.sql(f"refresh table {self.table(name)}")

    def micros(self, value):
        return f"unix_micros({value})"

    def item(self, array, *indices):
        return array + "".join(f"[{index - 1}]" for index in indices)

    def quoted(self, name):
        return f"`{name}`"


print(f"Spark {spark.version}")
engine = Spark()
change_trades(server, engine)
check(
    "a day of trades",
    server.execute("select count() from trades where ts in '2024-01-03'")[0],
    spark_row("select count(*) from qdb.qdb.trades where ts >= timestamp'2024-01-03' and ts < timestamp'2024-01-04'"),
)
read_while_rows_arrive(server, engine)
compare_kinds(server, engine)

is_new = int(spark.version.split(".")[0]) >= 4
read_version_3(server, engine, f"Cannot convert {'unsupported' if is_new else 'unknown'} type to Spark: timestamptz_ns")
if is_new:
    rows = server.execute("select count() from raised")[0]
    check("its ids of rows", [*rows, 0], spark_row("select count(distinct _row_id), min(_row_id) from qdb.qdb.raised"))
    check("its snapshots", [3], spark_row("select count(*) from qdb.qdb.raised.snapshots"))

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
        found = server.execute(f"select count(), {shared}, sum(ar[1]), max(ts)::long from {source}{where}")[0]
        check(f"iceberg(), format version {version}{where}", [x for x in expected if x is not None], [x for x in found if x is not None])
    plan = server.execute(f"explain select count() from {source} where ts >= '2024-01-03' and ts < '2024-01-04'")
    all_files = spark_row(f"select count(*) from {table}.files where content = 0")[0]
    read = int(re.search(r"iceberg files: (\d+)", str(plan)).group(1))
    if not 0 < read < all_files:
        sys.exit(f"nothing is pruned: {read} of {all_files} files")
    print(f"pruned: {read} of {all_files} files")
print("passed")
