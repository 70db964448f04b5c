"""Prints, as a list in JSON, figures of a table in an external Iceberg REST catalog, as one engine reads it. For
test/crash/shared-lake.ts, which compares them with the sums over its servers.

A figure is a function (count, sum, min, max) and a column; times are microseconds. With a time, rows from that on count
alone. With PENSTOCK_S3 (and AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY) the objects are in an S3 service, else in a folder.
Spark and Trino need that; Spark takes its libraries from SPARK_JARS, and PENSTOCK_TRINO is the address of Trino.

usage: lake_shared.py pyiceberg|duckdb|spark|trino CATALOG_URL TABLE FIGURES_IN_JSON [TIME]"""

import datetime
import json
import os
import re
import sys

engine, url, table, *rest = sys.argv[1:]
figures = json.loads(rest[0])
since = rest[1] if len(rest) > 1 else None
s3 = os.environ.get("PENSTOCK_S3")
key, secret = os.environ.get("AWS_ACCESS_KEY_ID", ""), os.environ.get("AWS_SECRET_ACCESS_KEY", "")
epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
times = {"ts", "da"}


def plain(value):
    if isinstance(value, datetime.datetime):
        return (value - epoch) // datetime.timedelta(microseconds=1)
    return value if value is None or isinstance(value, (int, float, str)) else str(value)


def query(source, micros):
    def text(function, column):
        return f"{micros}({function}({column}))" if column in times and function != "count" else f"{function}({column})"

    where = "" if since is None else f" where ts >= timestamptz '{since}+00:00'"
    return f"select {', '.join(text(*figure) for figure in figures)} from {source}{where}"


def in_pyiceberg():
    import pyarrow.compute as pc
    from pyiceberg.catalog import load_catalog

    options = {"s3.endpoint": s3, "s3.access-key-id": key, "s3.secret-access-key": secret, "s3.region": "us-east-1"}
    catalog = load_catalog("shared", type="rest", uri=url, **(options if s3 else {}))
    scan = catalog.load_table(f"qdb.{table}").scan(**({} if since is None else {"row_filter": f"ts >= '{since}+00:00'"}))
    read = scan.to_arrow()
    functions = {"count": pc.count, "sum": pc.sum, "min": pc.min, "max": pc.max}
    return [read.num_rows if column == "*" else functions[function](read[column]).as_py() for function, column in figures]


def in_duckdb():
    from duckdb_extensions import extension_paths, iceberg_connection

    host = (s3 or "").removeprefix("http://")
    place = f"type s3, key_id '{key}', secret '{secret}', endpoint '{host}', url_style 'path', use_ssl false, region 'us-east-1'"
    connection = iceberg_connection(extension_paths(), url, secret=place if s3 else "")
    return connection.execute(query(f"lake.qdb.{table}", "epoch_us")).fetchone()


def in_spark():
    os.environ.setdefault("AWS_REGION", "us-east-1")
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[1]").config("spark.jars", os.environ["SPARK_JARS"])
    # The properties in docs/lake.md, with these addresses.
    page = open(os.path.join(os.path.dirname(__file__), "../../docs/lake.md"), encoding="utf-8").read()
    for name, value in re.findall(r"^(spark\.sql\.catalog\.lake\S*) = (\S+)$", page, re.M):
        builder = builder.config(name, url if name.endswith("uri") else s3 if name.endswith("endpoint") else value)
    for name, value in {"ui.enabled": "false", "ui.showConsoleProgress": "false", "sql.session.timeZone": "UTC"}.items():
        builder = builder.config(f"spark.{name}", value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return list(spark.sql(query(f"lake.qdb.{table}", "unix_micros").replace("timestamptz", "timestamp")).collect()[0])


def in_trino():
    import trino_client

    properties = trino_client.documented("## An external catalog")
    properties |= {"iceberg.rest-catalog.uri": url, "s3.endpoint": s3, "s3.aws-access-key": key, "s3.aws-secret-key": secret}
    trino_client.attach("lake", properties)

    def text(function, column):
        figure = f"{function}({column})" if column == "*" else f'{function}("{column}")'
        return f"cast(round(to_unixtime({figure}) * 1e6) as bigint)" if column in times and function != "count" else figure

    where = "" if since is None else f" where ts >= timestamp '{since.replace('T', ' ')} UTC'"
    return trino_client.rows(f"select {', '.join(text(*figure) for figure in figures)} from lake.qdb.{table}{where}")[0]


engines = {"pyiceberg": in_pyiceberg, "duckdb": in_duckdb, "spark": in_spark, "trino": in_trino}
print(json.dumps([plain(value) for value in engines[engine]()]))
