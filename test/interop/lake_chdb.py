"""The lake in chDB, which is ClickHouse: it reads a table by the location that lake_tables() shows, as docs/lake.md says, and
agrees with SQL after each kind of change and while rows arrive.

The store is the S3 service in PENSTOCK_S3, with the keys in PENSTOCK_S3_READER and PENSTOCK_S3_READER_SECRET, which can only
read.

usage: lake_chdb.py HTTP_PORT"""

import json
import os
import sys

import chdb

from lake_steps import Server, change_trades, check, compare_kinds, read_version_3, read_while_rows_arrive

(port,) = sys.argv[1:]
server = Server(port)
keys = f"'{os.environ['PENSTOCK_S3_READER']}', '{os.environ['PENSTOCK_S3_READER_SECRET']}'"


class ClickHouse:
    def row(self, sql):
        settings = "output_format_json_quote_64bit_integers = 0, session_timezone = 'UTC', cast_keep_nullable = 1"
        answer = json.loads(str(chdb.query(f"{sql} settings {settings}", "JSONCompact")))
        return answer["data"][0]

    def table(self, name):
        location = server.execute(f"select location from lake_tables() where table_name = '{name}'")[0][0]
        return f"icebergS3('{location.replace('s3:/', os.environ['PENSTOCK_S3'], 1)}', {keys})"

    def refresh(self, name):
        pass

    def micros(self, value):
        return f"toUnixTimestamp64Micro(assumeNotNull({value}))"

    def nanos(self, value):
        return f"toUnixTimestamp64Nano(assumeNotNull({value}))"

    def item(self, array, *indices):
        return array + "".join(f"[{index}]" for index in indices)

    def quoted(self, name):
        return f"`{name}`"


engine = ClickHouse()
print(f"chDB {chdb.__version__}, ClickHouse {chdb.engine_version}")
change_trades(server, engine)
check(
    "a day of trades",
    server.execute("select count() from trades where ts in '2024-01-03'")[0],
    engine.row(f"select count() from {engine.table('trades')} where ts >= '2024-01-03' and ts < '2024-01-04'"),
)
read_while_rows_arrive(server, engine)
compare_kinds(server, engine)
read_version_3(server, engine)
print("passed")
