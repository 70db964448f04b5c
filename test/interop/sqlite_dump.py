"""Goal: a real SQLite database comes over whole: python3 sqlite_dump.py HTTP_PORT PENSTOCK_CLI [ROWS]

A million rows of every kind of value, dumped by Python's sqlite3 and, where it is there, by the sqlite3 shell, are
imported by the command line tool; counts and sums must be the same, at 100,000 rows a second or more.
"""

import datetime
import json
import math
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request

port, cli = sys.argv[1], sys.argv[2]
rows = int(sys.argv[3]) if len(sys.argv) > 3 else 1_000_000
rows_per_second_min = 100_000
url = f'http://127.0.0.1:{port}'

schema = '''
CREATE TABLE readings(id INTEGER PRIMARY KEY AUTOINCREMENT, unix INTEGER NOT NULL, at TEXT, sensor TEXT,
  "value °C" REAL, n INTEGER, note TEXT, raw BLOB, ok BOOLEAN);
CREATE TABLE "odd name, 50%"("a.b" INT, [c d] TEXT, `e-f` REAL, g);
CREATE TABLE empty(x INTEGER, y DATETIME);
CREATE INDEX by_sensor ON readings(sensor);
CREATE VIEW hot AS SELECT sensor, n FROM readings WHERE n > 5;
CREATE TRIGGER refill AFTER INSERT ON empty BEGIN UPDATE empty SET x = CASE WHEN x > 1 THEN 2 ELSE 3 END; END;
'''


def values():
    dice = random.Random(7)
    for i in range(rows):
        unix = 1_700_000_000 + i
        at = datetime.datetime.fromtimestamp(unix, datetime.timezone.utc).strftime('%Y-%m-%d %H:%M:%S') + f'.{i % 1000:03d}'
        value = dice.gauss(20, 5) if i % 17 else None
        note = f"it's\nnote {i} é" if i % 50 == 0 else f'n{i}' if i % 3 == 0 else None
        raw = bytes([i % 256, 0, 39]) if i % 7 == 0 else None
        yield unix, at, f's{i % 50}', value, dice.randrange(-10**12, 10**12), note, raw, i % 2


def make(path):
    db = sqlite3.connect(path)
    db.executescript(schema)
    db.executemany('INSERT INTO readings(unix,at,sensor,"value °C",n,note,raw,ok) VALUES(?,?,?,?,?,?,?,?)', values())
    db.execute('INSERT INTO "odd name, 50%" VALUES(1, ?, 9e999, ?)', ('semi;colon\r\n--x', b'\xff\x00'))
    db.commit()
    return db


def ask(sql):
    with urllib.request.urlopen(f'{url}/exec?query={urllib.parse.quote(sql)}') as answer:
        return json.load(answer)['dataset']


def check(db, dump):
    begin = time.monotonic()
    env = {**os.environ, 'PENSTOCK_URL': url}
    command = ['node', cli, 'import', '--from-sqlite', dump, '--overwrite', '--timestamp', 'readings.at', '--json']
    result = json.loads(subprocess.run(command, env=env, check=True, capture_output=True).stdout)
    seconds = time.monotonic() - begin
    assert result['rowsImported'] == rows + 1 and result['rowsRejected'] == 0, result
    columns = 'count({0}), sum(id), sum(unix), sum("value °C"), sum(n), count(note), count(raw)'
    theirs = db.execute(f'select {columns.format("*")}, sum(ok), count(distinct sensor), sum(length(note)), max(at) from readings').fetchone()
    ours = ask(f'select {columns.format("")}, sum(ok::int), count_distinct(sensor), sum(length(note)) + count() - count(note), max(at) from readings')[0]
    # Here the length of NULL is -1.
    for mine, other in zip(ours[:-1], theirs[:-1]):
        assert math.isclose(mine, other, rel_tol=1e-12), (ours, theirs)
    assert ours[-1] == theirs[-1].replace(' ', 'T') + '000Z', (ours, theirs)
    assert ask('select "a_b", "c d" from "odd name_ 50_"') == [[1, 'semi;colon\r\n--x']]
    assert ask('select count() from empty') == [[0]]
    rate = rows / seconds
    print(f'{os.path.basename(dump)}: {rows} rows in {seconds:.1f} s, {rate:,.0f} rows/s')
    if rows >= 1_000_000:
        assert rate >= rows_per_second_min, 'too slow'


def main():
    with tempfile.TemporaryDirectory() as folder:
        db = make(f'{folder}/logger.db')
        with open(f'{folder}/python.sql', 'w', encoding='utf-8', newline='') as dump:
            dump.writelines(f'{line}\n' for line in db.iterdump())
        check(db, f'{folder}/python.sql')
        if shutil.which('sqlite3'):
            with open(f'{folder}/shell.sql', 'wb') as dump:
                subprocess.run(['sqlite3', f'{folder}/logger.db', '.dump'], stdout=dump, check=True)
            check(db, f'{folder}/shell.sql')
        else:
            print('the sqlite3 shell is missing: only the dump of Python was checked')


main()
