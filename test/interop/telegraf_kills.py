"""Usage: telegraf_kills.py PROGRAM KILLS BATCHES. Writes batches of metrics, with new tables and columns all the time, through
Telegraf's PostgreSQL output (PROGRAM is built from telegraf/main.go), and kills that process KILLS times amid a batch: whatever
it has sent, COMMIT is not among it. The next process goes on with the first batch that was not taken. Each row is to be there
once. Needs psql, and a build in dist/.
"""

import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

program, kills_wanted, batches = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
rows_of_batch = 40
port, proxy_port = 17110, 17111
root = tempfile.mkdtemp(prefix="penstock-telegraf-")
settings = ["http.enabled=false", "http.min.enabled=false", "line.tcp.enabled=false", f"pg.net.bind.to=127.0.0.1:{port}"]
sets = [word for setting in settings for word in ("--set", setting)]
server = subprocess.Popen(["node", "dist/deploy/cli.js", "start", "-d", root, *sets], stdout=subprocess.DEVNULL)
kills, messages_left = 0, random.randint(5, 60)
writer = None
lock = threading.Lock()


def psql(query):
    url = f"host=127.0.0.1 port={port} user=admin dbname=qdb"
    done = subprocess.run(
        ["psql", url, "-Atc", query], env={**os.environ, "PGPASSWORD": "quest"}, capture_output=True, text=True
    )
    return done.stdout.split() if done.returncode == 0 else None


def pump(source, target, is_client):
    """Passes bytes on; in the place of some message of the client it kills the client."""
    global kills, messages_left
    try:
        while data := source.recv(65536):
            if is_client and kills < kills_wanted:
                with lock:
                    messages_left -= 1
                    if messages_left <= 0 and b"commit" not in data.lower() and writer.poll() is None:
                        writer.kill()
                        kills, messages_left = kills + 1, random.randint(8, 60)
                        break
            target.sendall(data)
    except OSError:
        pass
    for end in (source, target):
        try:
            end.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


def serve():
    listener = socket.create_server(("127.0.0.1", proxy_port))
    while True:
        client, _ = listener.accept()
        upstream = socket.create_connection(("127.0.0.1", port))
        threading.Thread(target=pump, args=(client, upstream, True), daemon=True).start()
        threading.Thread(target=pump, args=(upstream, client, False), daemon=True).start()


try:
    while psql("select 1") is None:
        if server.poll() is not None:
            sys.exit("the server has ended")
        time.sleep(0.1)
    threading.Thread(target=serve, daemon=True).start()
    taken = -1
    while taken < batches - 1:
        url = f"host=127.0.0.1 port={proxy_port} user=admin password=quest dbname=qdb"
        writer = subprocess.Popen(
            [program, url, str(batches), str(taken + 1)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        for line in writer.stdout:
            taken = int(line)
        writer.wait()
    tables = psql("select table_name from information_schema.tables where table_name ~ '^(cpu|mem|disk|net_)'")
    rows = sum(int(psql(f'select count(*) from "{table}"')[0]) for table in tables)
    once = sum(int(psql(f'select count(*) from (select distinct batch, "row" from "{table}")')[0]) for table in tables)
    print(f"{kills} kills, {batches} batches, {len(tables)} tables: {rows} rows, {once} of them different")
    if rows != batches * rows_of_batch or once != rows or kills < kills_wanted:
        sys.exit(f"expected {batches * rows_of_batch} rows, each once, and {kills_wanted} kills")
finally:
    server.terminate()
    server.wait()
    shutil.rmtree(root, ignore_errors=True)
