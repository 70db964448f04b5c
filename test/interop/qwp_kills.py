# Goal: rows that an official client sends by QWP survive kill -9 of the server: each row that was acknowledged is there
# once, and each row in flight once or twice, exactly once where the table has DEDUP keys. The client stores and forwards: it
# keeps what is not acknowledged, connects again and repeats it. The client is that of Python, or PROGRAM, which is built
# from rust/src/bin/qwp-kills.rs.
#
# Then, with the client of Python, a producer sends faster than the server stores: memory stays within its budget, and
# nothing acknowledged is lost.
#
#   qwp_kills.py KILLS ROWS SECONDS             needs a build in dist/
#   qwp_kills.py KILLS ROWS --program PROGRAM

import atexit
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import urllib.request

KILLS, ROWS = int(sys.argv[1]), int(sys.argv[2])
PROGRAM = sys.argv[4] if sys.argv[3] == '--program' else None
if PROGRAM is None:
    import numpy as np
    import pandas as pd
    import questdb
    from questdb import TimestampNanos
FIRST = 1704067200_000000
BUDGET = 512 * 1024**2
BEYOND_BUDGET = 400 * 1024**2
FRAME_ROWS = 50
SEED = int(os.environ.get('SEED', time.time()))
print(f'seed {SEED}')
random.seed(SEED)


def free_port():
    with socket.create_server(('127.0.0.1', 0)) as listener:
        return listener.getsockname()[1]


class Server:
    def __init__(self, *settings):
        self.root = tempfile.mkdtemp(prefix='penstock-qwp-')
        self.port = free_port()
        off = ['pg.enabled=false', 'line.tcp.enabled=false', 'http.min.enabled=false']
        on = [f'http.net.bind.to=127.0.0.1:{self.port}', f'memory.bytes={BUDGET}']
        self.sets = [word for setting in (*off, *on, *settings) for word in ('--set', setting)]
        atexit.register(lambda: self.process.kill())
        self.start()

    def start(self):
        command = ['node', 'dist/deploy/cli.js', 'start', '-d', self.root, *self.sets]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + 120
        while self.rows('select 1') is None:
            assert self.process.poll() is None, 'the server did not start'
            assert time.monotonic() < deadline, 'the server is not ready'
            time.sleep(0.1)

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self):
        self.process.terminate()
        assert self.process.wait(60) == 0, 'the server did not stop in order'
        shutil.rmtree(self.root)

    def rows(self, sql):
        """None while it does not answer."""
        try:
            url = f'http://127.0.0.1:{self.port}/exec?query={urllib.parse.quote(sql)}'
            with urllib.request.urlopen(url, timeout=60) as response:
                return json.load(response).get('dataset', [])
        except (urllib.error.HTTPError, OSError) as error:
            if isinstance(error, urllib.error.HTTPError) and error.code == 400:
                raise AssertionError(error.read().decode()) from error
            return None

    def resident(self):
        with open(f'/proc/{self.process.pid}/status') as status:
            line = next(line for line in status if line.startswith('VmRSS'))
        return int(line.split()[1]) * 1024


def send(sender, waits):
    """Restarts may take longer than the client waits; it goes on delivering meanwhile."""
    for _ in range(20):
        try:
            return sender.flush(wait=waits)
        except questdb.QuestDBError as error:
            if 'no ack progress' not in str(error):
                raise
    raise AssertionError('the server does not acknowledge any more')


class Progress:
    """Rows of each table: handed over to the client, and those of which it knows that they are acknowledged."""

    def __init__(self):
        self.sent = 0
        self.acknowledged = []


def send_from_python(port, folder, progress, is_over):
    config = f'ws::addr=127.0.0.1:{port};sf_dir={folder};sender_id=kills;lazy_connect=true;reconnect_max_duration_millis=300000;'
    with questdb.connect(config) as client, client.sender() as sender:
        while not is_over():
            sent = progress.sent
            for n in range(sent, sent + FRAME_ROWS):
                for table in ('plain', 'keyed'):
                    sender.row(table, symbols={'k': f'k{n % 97}'}, columns={'n': n}, at=TimestampNanos((FIRST + n) * 1000))
            waits = random.random() < 0.2
            send(sender, waits)
            progress.sent += FRAME_ROWS
            if waits:
                # Whatever was sent before is acknowledged, and no kill can make the client repeat it.
                progress.acknowledged.append(progress.sent)
            elif random.random() < 0.3:
                time.sleep(0.01)
        send(sender, True)


def send_from_program(port, folder, progress, is_over):
    command = [PROGRAM, f'127.0.0.1:{port}', folder, str(SEED)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            what, rows = line.split()
            if what == 'sent':
                progress.sent = int(rows)
            else:
                progress.acknowledged.append(int(rows))
            if is_over() and not process.stdin.closed:
                process.stdin.close()
    assert process.returncode == 0, f'the client ended with status {process.returncode}'
    assert progress.acknowledged[-1] == progress.sent, 'the client ended before all was acknowledged'


def survive_kills():
    server = Server()
    server.rows('create table plain (n long, k symbol, timestamp timestamp) timestamp(timestamp) partition by day wal')
    server.rows('create table keyed (n long, k symbol, timestamp timestamp) timestamp(timestamp) partition by day wal '
                'dedup upsert keys(timestamp, n)')
    folder = tempfile.mkdtemp(prefix='penstock-qwp-client-')
    done = threading.Event()

    def kill_sometimes():
        for _ in range(KILLS):
            if done.wait(random.uniform(1.0, 4.0)):
                return
            least = progress.acknowledged[-1] if progress.acknowledged else 0
            server.kill()
            time.sleep(random.uniform(0.05, 0.5))
            # By now it is known what a program had handed over.
            in_flight.append((least, progress.sent + FRAME_ROWS))
            server.start()

    # Rows that were not acknowledged when the server was killed: from, to.
    in_flight, progress = [], Progress()
    killer = threading.Thread(target=kill_sometimes, daemon=True)
    killer.start()
    produce = send_from_python if PROGRAM is None else send_from_program
    produce(server.port, folder, progress, lambda: progress.sent >= ROWS and not killer.is_alive())
    sent, acknowledged = progress.sent, progress.acknowledged
    done.set()
    killer.join()
    assert len(in_flight) == KILLS, f'{len(in_flight)} of {KILLS} kills'

    def one(sql):
        (row,) = server.rows(sql)
        return row

    assert one('select count(), count_distinct(n), min(n), max(n) from keyed') == [sent, sent, 0, sent - 1], 'keyed rows'
    count, distinct, least, most = one('select count(), count_distinct(n), min(n), max(n) from plain')
    assert [distinct, least, most] == [sent, 0, sent - 1], f'rows are lost: {distinct} of {sent}'
    repeated = server.rows('select n, c from (select n, count() c from plain group by n) where c > 1')
    for n, times in repeated:
        permitted = 1 + sum(least <= n < beyond for least, beyond in in_flight)
        assert times <= permitted, f'row {n} is there {times} times, permitted are {permitted}'
    wrong = one("select count() from plain where k <> concat('k', n % 97)")
    assert wrong == [0], 'symbols of other rows'
    print(f'ok {sent} rows of each table, {KILLS} kills, {len(acknowledged)} waits, {len(repeated)} rows came more than once')
    server.stop()
    shutil.rmtree(folder)


def stand_overload(seconds):
    """The producer is held back by TCP alone."""
    server = Server()
    rows = 20_000
    frame = pd.DataFrame({f'v{number}': np.random.rand(rows) for number in range(20)})
    frame['k'] = pd.Categorical([f'k{number % 1000}' for number in range(rows)])
    config = f'ws::addr=127.0.0.1:{server.port};'
    largest, sent = 0, 0
    end = time.monotonic() + seconds
    with questdb.connect(config) as client:
        while time.monotonic() < end:
            frame['ts'] = pd.to_datetime((FIRST + sent + np.arange(rows)) * 1000)
            client.dataframe(frame, table_name='flood', at='ts')
            sent += rows
            largest = max(largest, server.resident())
    ((count,),) = server.rows('select count() from flood')
    assert count == sent, f'{count} rows of {sent}'
    limit = BUDGET + BEYOND_BUDGET
    assert largest <= limit, f'{largest} bytes of memory, allowed are {limit}'
    print(f'ok {sent} rows in {seconds} s, {largest // 1024**2} MiB of memory at most')
    server.stop()


survive_kills()
if PROGRAM is None:
    stand_overload(int(sys.argv[3]))
