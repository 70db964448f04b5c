"""Exports as other readers see them: Parquet of every codec and version and the Arrow stream through pyarrow, DuckDB and
chDB (strict about the page index), compared with the rows that /exec answers.

Bloom filters through DuckDB, LZO by its pages.

usage: export_readers.py HTTP_PORT"""

import json
import os
import socket
import sys
import tempfile
import urllib.parse
import urllib.request

import chdb
import duckdb
import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as pq
import lzo_pages

base = f"http://127.0.0.1:{sys.argv[1]}"
ROWS = 200_000
CODECS = ["NONE", "SNAPPY", "GZIP", "LZ4", "ZSTD", "BROTLI"]


def get(path, **parameters):
    with urllib.request.urlopen(f"{base}{path}?{urllib.parse.urlencode(parameters)}", timeout=300) as answer:
        return answer.read()


def execute(query):
    return json.loads(get("/exec", query=query))


execute(
    "create table exported as (select timestamp_sequence('2024-01-01', 1000000) ts, rnd_symbol('a','b','c',null) s,"
    " x::int i, case when x % 7 = 0 then null else x end l, case when x % 5 = 0 then null else x / 3.0 end d,"
    " rnd_str(3,9,5) t, x % 2 = 0 b, rnd_uuid4() u, cast(x % 100 as short) h, cast('2024-02-03' as date) dt"
    f" from long_sequence({ROWS})) timestamp(ts) partition by month"
)
# Pages of parts are taken as they lie; smaller ones, and smaller row groups, are made of rows.
execute("checkpoint")
figures = execute("select count(), sum(i), sum(l), sum(d), count_distinct(t), count(s), count(l), count(d) from exported")
expected = figures["dataset"][0]


def check(name, found):
    for want, have in zip(expected, found, strict=True):
        have = float(have)
        if abs(want - have) > 1e-9 * abs(want):
            sys.exit(f"{name}: expected {expected}, found {found}")


def aggregates(table):
    connection = duckdb.connect()
    connection.register("read", table)
    return connection.execute(sql("read")).fetchall()[0]


def sql(source):
    # NULL is a value to count_distinct() of neither.
    return (
        "select count(*), sum(i), sum(l), sum(d), count(distinct t), count(s), count(l), count(d) from " + source
    )


checked = 0
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "exported.parquet")
    for codec in CODECS:
        for version in (1, 2):
            for rmode in ("", "nodelay"):
                sizes = {} if rmode else {"row_group_size": 70_000, "data_page_size": 65_536}
                body = get(
                    "/exp", query="exported", fmt="parquet", compression_codec=codec, parquet_version=version,
                    rmode=rmode, **sizes,
                )
                with open(path, "wb") as file:
                    file.write(body)
                name = f"{codec} version {version} {rmode}"
                table = pq.read_table(path, page_checksum_verification=True)
                table.validate(full=True)
                check(f"pyarrow {name}", aggregates(table))
                metadata = pq.read_metadata(path)
                column = metadata.row_group(0).column(2)
                if not (column.has_column_index and column.has_offset_index):
                    sys.exit(f"{name}: no page index")
                check(f"duckdb {name}", duckdb.sql(sql(f"'{path}'")).fetchall()[0])
                found = duckdb.sql(f"select count(*) from '{path}' where i between 123456 and 123465").fetchall()[0][0]
                answer = str(chdb.query(sql(f"file('{path}', Parquet)"), "JSONCompact"))
                check(f"chdb {name}", [float(value) for value in json.loads(answer)["data"][0]])
                picked = chdb.query(f"select count() from file('{path}', Parquet) where i between 123456 and 123465", "CSV")
                if found != 10 or int(str(picked)) != 10:
                    sys.exit(f"{name}: a filter finds {found} and {picked} rows")
                checked += 1
    with open(path, "wb") as file:
        file.write(get("/exp", query="exported", fmt="parquet", bloom_filter_columns="i,t,u", row_group_size=70_000))
    probe = f"select bloom_filter_excludes from parquet_bloom_probe('{path}', 'i', "
    present = [row[0] for row in duckdb.sql(probe + "123456)").fetchall()]
    absent = [row[0] for row in duckdb.sql(probe + "-5)").fetchall()]
    if present.count(False) != 1 or False in absent or len(absent) != 3:
        sys.exit(f"Bloom filters answer {present} and {absent}")
    check("Bloom filters", aggregates(pq.read_table(path)))
    check("chdb Bloom filters", json.loads(str(chdb.query(sql(f"file('{path}', Parquet)"), "JSONCompactStrings")))["data"][0])
same = lzo_pages.check(
    *(get("/exp", query="exported", fmt="parquet", compression_codec=codec, row_group_size=70_000) for codec in ("LZO", "NONE"))
)
print("LZO: skipped, no decoder" if same is None else f"LZO: {same} pages")
table = ipc.open_stream(get("/exp", query="exported", fmt="arrow")).read_all()
table.validate(full=True)
check("arrow", aggregates(table))


def broken(version):
    """An export that runs into its deadline behind the first rows: what a client sees of it."""
    query = urllib.parse.quote("select x, x * 1.5 d, x::string t from long_sequence(2000000000)")
    with socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=60) as connection:
        connection.sendall(f"GET /exp?query={query}&timeout=700 HTTP/{version}\r\nHost: localhost\r\n\r\n".encode())
        end = b""
        seen = 0
        try:
            while chunk := connection.recv(1 << 20):
                end = (end + chunk)[-5:]
                seen += len(chunk)
        except ConnectionResetError:
            return "reset" if seen > 0 else "refused"
        return "whole" if end == b"0\r\n\r\n" or version == "1.0" else "cut"


for version, expected_end in (("1.0", "reset"), ("1.1", "cut")):
    found = broken(version)
    if found not in (expected_end, "reset"):
        sys.exit(f"an export of HTTP/{version} that broke off looks {found}")
print(f"{checked} Parquet files and an Arrow stream are read alike")
