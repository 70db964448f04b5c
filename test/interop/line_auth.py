"""The official Python client with a key that SQL has made, and without one.

usage: line_auth.py HTTP_PORT LINE_PORT     the server runs with line.tcp.auth.required=true"""

import json
import sys
import time
import urllib.parse
import urllib.request

from questdb.ingress import IngressError, Sender, TimestampNanos

http, line = sys.argv[1:]
ROWS = 1000


def run(sql):
    query = urllib.parse.urlencode({"query": sql})
    with urllib.request.urlopen(f"http://127.0.0.1:{http}/exec?{query}") as answer:
        return json.load(answer).get("dataset", [])


def send(conf, table):
    with Sender.from_conf(f"tcp::addr=127.0.0.1:{line};{conf}") as sender:
        for number in range(ROWS):
            sender.row(table, columns={"v": number}, at=TimestampNanos(1_700_000_000_000_000_000 + number))
            if number % 100 == 0:
                sender.flush()
                time.sleep(0.01)


run("create user sensor no password write")
[[_, x, y, d]] = run("alter user sensor create token type jwk")
send(f"username=sensor;token={d};token_x={x};token_y={y};", "signed")
for _ in range(100):
    if run("select count() from signed") == [[ROWS]]:
        break
    time.sleep(0.05)
else:
    sys.exit("the rows of the one who has a key are missing")
refused = 0
for conf in ("", f"username=ghost;token={d};token_x={x};token_y={y};"):
    try:
        send(conf, "unsigned")
    except IngressError:
        refused += 1
tables = [name for [name] in run("select table_name from all_tables()")]
if refused != 2 or "unsigned" in tables:
    sys.exit(f"strangers came in [refused={refused}, tables={tables}]")
print("with a key: stored; without: refused")
