"""The lake in Trino, which attaches to the server's catalog by the properties of docs/lake.md, word for word, with a token by
OAuth2, and agrees with SQL after each kind of change and while rows arrive.

The store is the S3 service in PENSTOCK_S3, with the keys in PENSTOCK_S3_READER and PENSTOCK_S3_READER_SECRET, which can only
read. The server has the user `reader`, with the password `quest`. PENSTOCK_TRINO is the address of Trino.

usage: lake_trino.py HTTP_PORT"""

import base64
import os
import sys

import trino_client
from lake_steps import Server, change_trades, check, compare_kinds, read_version_3, read_while_rows_arrive

(port,) = sys.argv[1:]
server = Server(port, f"Basic {base64.b64encode(b'reader:quest').decode()}")


class Trino:
    def __init__(self, catalog):
        self.catalog = catalog

    def row(self, sql):
        return trino_client.rows(sql)[0]

    def table(self, name):
        return f"{self.catalog}.qdb.{name}"

    def refresh(self, name):
        pass

    def micros(self, value):
        return f"cast(round(to_unixtime({value}) * 1e6) as bigint)"

    def item(self, array, *indices):
        return array + "".join(f"[{index}]" for index in indices)

    def quoted(self, name):
        return f'"{name}"'


properties = {key: value.replace(":9000", f":{port}") for key, value in trino_client.documented("## Trino").items()}
properties["s3.endpoint"] = os.environ["PENSTOCK_S3"]
properties["s3.aws-access-key"] = os.environ["PENSTOCK_S3_READER"]
properties["s3.aws-secret-key"] = os.environ["PENSTOCK_S3_READER_SECRET"]
properties["iceberg.rest-catalog.oauth2.credential"] = "reader:quest"
trino_client.attach("lake", properties)
engine = Trino("lake")

change_trades(server, engine)
check(
    "a day of trades",
    server.execute("select count() from trades where ts in '2024-01-03'")[0],
    engine.row("select count(*) from lake.qdb.trades where ts >= timestamp '2024-01-03 00:00 UTC' and ts < timestamp '2024-01-04 00:00 UTC'"),
)
files = trino_client.rows('select count(*), sum(record_count) from lake.qdb."trades$files"')[0]
check("its files", [files[0], server.execute("select count() from trades")[0][0]], files)
read_while_rows_arrive(server, engine)
compare_kinds(server, engine)
read_version_3(server, engine, "Cannot convert from Iceberg type 'timestamptz_ns' (TIMESTAMP_NANO) to Trino type")

# A wrong password is refused.
try:
    trino_client.attach("stranger", {**properties, "iceberg.rest-catalog.oauth2.credential": "reader:wrong"})
    trino_client.rows("show schemas from stranger")
except RuntimeError as error:
    print(f"refused: {error}")
else:
    sys.exit("Trino reads with a wrong password")
# Rows cannot be written.
try:
    trino_client.rows("delete from lake.qdb.trades where symbol = 's1'")
except RuntimeError as error:
    print(f"refused: {error}")
else:
    sys.exit("Trino writes")
print("passed")
