# How many rows a second the official Python client sends by QWP, as data frames and row by row, until they are
# acknowledged: `qwp_rate.py PORT ROWS`. Prints a line for each. Needs questdb 6, numpy and pandas.

import sys
import time

import numpy as np
import pandas as pd
import questdb
from questdb import TimestampNanos

PORT, ROWS = int(sys.argv[1]), int(sys.argv[2])
FIRST = 1704067200_000000
FRAME_ROWS = min(ROWS, 20_000)
SINGLE_ROWS = max(FRAME_ROWS, ROWS // 10)


def report(what, rows, begun, begun_cpu):
    seconds, cpu = time.perf_counter() - begun, time.process_time() - begun_cpu
    print(f'{what}: {round(rows / seconds)} rows/s, {cpu / rows * 1e6:.2f} us of processor time of the client a row')


def send_frames(client, columns):
    frame = pd.DataFrame({f'v{number}': np.random.rand(FRAME_ROWS) for number in range(columns - 2)})
    frame['k'] = pd.Categorical([f's{number % 100}' for number in range(FRAME_ROWS)])
    sent, begun, cpu = 0, time.perf_counter(), time.process_time()
    while sent < ROWS:
        frame['ts'] = pd.to_datetime((FIRST + sent + np.arange(FRAME_ROWS)) * 1000)
        client.dataframe(frame, table_name=f'client_{columns}', at='ts')
        sent += FRAME_ROWS
    report(f'{columns} columns, data frames of {FRAME_ROWS} rows', sent, begun, cpu)


def send_rows(client, columns):
    begun, cpu = time.perf_counter(), time.process_time()
    names = [f'v{number}' for number in range(columns - 2)]
    with client.sender() as sender:
        for row in range(SINGLE_ROWS):
            values = {name: row + 0.5 for name in names}
            sender.row('client_rows', symbols={'k': f's{row % 100}'}, columns=values, at=TimestampNanos((FIRST + row) * 1000))
        sender.flush(wait=True)
    report(f'{columns} columns, row by row', SINGLE_ROWS, begun, cpu)


with questdb.connect(f'ws::addr=127.0.0.1:{PORT};') as client:
    for columns in (5, 20):
        send_frames(client, columns)
    send_rows(client, 5)
