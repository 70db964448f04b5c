"""Temporary keys of a real security token service (lake.credentials.vend = sts): PyIceberg, which has no keys of its own,
reads each table with those that the server's catalog hands out. They permit to read and list the objects of this table,
and nothing else, although the user who requests them may read and write everything.

The store is the S3 service in PENSTOCK_S3, with its bucket in PENSTOCK_S3_BUCKET. The user's keys are in
PENSTOCK_S3_READER and PENSTOCK_S3_READER_SECRET.

usage: lake_sts.py HTTP_PORT"""

import json
import os
import sys
import urllib.request

for name in ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"]:
    os.environ.pop(name, None)
os.environ["AWS_EC2_METADATA_DISABLED"] = "true"

import pyarrow.compute as pc
from pyarrow import fs
from pyiceberg.catalog import load_catalog

from lake_steps import Server, check

(port,) = sys.argv[1:]
server = Server(port)
catalog = load_catalog("penstock", type="rest", uri=f"http://127.0.0.1:{port}/iceberg")


def keys_of(table):
    url = f"http://127.0.0.1:{port}/iceberg/v1/namespaces/qdb/tables/{table}/credentials"
    with urllib.request.urlopen(url, timeout=60) as answer:
        return json.loads(answer.read())["storage-credentials"][0]["config"]


def store_with(key, secret, token=None):
    return fs.S3FileSystem(
        access_key=key,
        secret_key=secret,
        session_token=token,
        endpoint_override=os.environ["PENSTOCK_S3"].removeprefix("http://"),
        scheme="http",
        region="us-east-1",
    )


def refused(name, work):
    try:
        work()
    except OSError as error:
        if "ACCESS_DENIED" in str(error) or "AccessDenied" in str(error):
            print(f"refused: {name}")
            return
        raise
    sys.exit(f"the keys permit to {name}")


def write(store, path):
    with store.open_output_stream(path) as stream:
        stream.write(b"x")


for table in ["a", "b"]:
    server.execute(f"create table {table} (ts timestamp, x long, s symbol) timestamp(ts) partition by day lake on")
    server.execute(
        f"insert into {table} select dateadd('m', x::int, '2024-01-01'::timestamp), x, '{table}' || x % 5 from long_sequence(5000)"
    )
    server.follow(table)
files = {}
for table in ["a", "b"]:
    loaded = catalog.load_table(f"qdb.{table}")
    read = loaded.scan().to_arrow()
    found = [read.num_rows, pc.sum(read["x"]).as_py(), pc.min(read["s"]).as_py()]
    check(f"{table}, with keys of its own", server.execute(f"select count(), sum(x), min(s) from {table}")[0], found)
    files[table] = [task.file.file_path.removeprefix("s3://") for task in loaded.scan().plan_files()]

keys = {table: keys_of(table) for table in ["a", "b"]}
if keys["a"]["s3.access-key-id"] == keys["b"]["s3.access-key-id"]:
    sys.exit("two tables have the same keys")
own, other = files["a"][0], files["b"][0]
folder = own[: own.index("/data/")]
store = store_with(*(keys["a"][f"s3.{name}"] for name in ["access-key-id", "secret-access-key", "session-token"]))
with store.open_input_file(own) as file:
    check("a file of the table", [True], [file.size() > 0])
check("its folder", [True], [len(store.get_file_info(fs.FileSelector(folder, recursive=True))) >= len(files["a"])])
refused("read a file of another table", lambda: store.open_input_file(other).read())
refused("list another table", lambda: store.get_file_info(fs.FileSelector(other[: other.index("/data/")], recursive=True)))
refused("list the bucket", lambda: store.get_file_info(fs.FileSelector(os.environ["PENSTOCK_S3_BUCKET"], recursive=True)))
refused("write into the table's folder", lambda: write(store, f"{folder}/data/x.parquet"))
refused("overwrite a file of the table", lambda: write(store, own))
refused("delete a file of the table", lambda: store.delete_file(own))
refused("write elsewhere", lambda: write(store, f"{os.environ['PENSTOCK_S3_BUCKET']}/x"))
with store.open_input_file(own) as file:
    check("the file is there", [True], [file.size() > 0])
user = store_with(os.environ["PENSTOCK_S3_READER"], os.environ["PENSTOCK_S3_READER_SECRET"])
write(user, f"{folder}/data/x.parquet")
user.delete_file(f"{folder}/data/x.parquet")
user.open_input_file(other).close()
print("the user may do all that")
print("passed")
