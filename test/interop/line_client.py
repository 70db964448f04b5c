"""Writes every column type with the official Python line-protocol client (PyPI: questdb) over TCP and HTTP, in every
protocol version that both sides speak, and reads the values back over /exec.

  python3 line_client.py HTTP_PORT LINE_PORT

Exit status 0 and a closing line `N passed, N failed`."""
import datetime
import json
import sys
import urllib.parse
import urllib.request
import time

import numpy
try:
    from questdb import Sender, TimestampMicros, TimestampNanos
except ImportError:
    from questdb.ingress import Sender, TimestampMicros, TimestampNanos

HTTP, LINE = int(sys.argv[1]), int(sys.argv[2])
passed = failed = 0


def query(sql):
    url = f'http://127.0.0.1:{HTTP}/exec?query=' + urllib.parse.quote(sql)
    with urllib.request.urlopen(url) as answer:
        return json.load(answer)


def check(name, got, wanted):
    global passed, failed
    if got == wanted:
        passed += 1
    else:
        failed += 1
        print(f'FAILED {name}: wanted {wanted!r}, got {got!r}')


def wait_rows(table, rows):
    for _ in range(500):
        try:
            if query(f"select count() from '{table}'")['dataset'][0][0] >= rows:
                return
        except urllib.error.HTTPError:
            pass
        time.sleep(0.02)


def write(conf, table, arrays):
    when = datetime.datetime(2024, 2, 3, 4, 5, 6, 789012, tzinfo=datetime.timezone.utc)
    columns = {
        'whole': -9007199254740993, 'half': 0.5, 'tiny': 5e-324, 'huge': 1.7976931348623157e308, 'yes': True, 'no': False,
        'text': 'quote " back \\ new\nline, comma = snow \u2603', 'empty': '', 'micros': TimestampMicros(1700000000123456),
        'day': when,
    }
    if arrays:
        columns['grid'] = numpy.array([[1.5, -2.0], [3.25, 1e300]])
    with Sender.from_conf(conf) as sender:
        sender.row(table, symbols={'plain': 'a', 'odd': 'sp ace,com=ma\\'}, columns=columns, at=TimestampNanos(1700000000000001000))
        sender.row(table, symbols={'plain': 'b'}, columns={'whole': 9223372036854775807, 'half': -0.0}, at=TimestampNanos(1700000000000002000))
        sender.flush()


def verify(name, table, arrays):
    wait_rows(table, 2)
    rows = query(f"select plain, odd, whole, half, tiny, huge, yes, no, text, empty, micros, day, timestamp from '{table}'")['dataset']
    check(f'{name} rows', len(rows), 2)
    first, second = rows
    check(f'{name} symbols', first[:2], ['a', 'sp ace,com=ma\\'])
    check(f'{name} numbers', first[2:8], [-9007199254740993, 0.5, 5e-324, 1.7976931348623157e308, True, False])
    check(f'{name} texts', first[8:10], ['quote " back \\ new\nline, comma = snow \u2603', ''])
    check(f'{name} times', first[10][:26], '2023-11-14T22:13:20.123456')
    check(f'{name} datetime', first[11][:26], '2024-02-03T04:05:06.789012')
    check(f'{name} designated', first[12][:26], '2023-11-14T22:13:20.000001')
    check(f'{name} missing', second[1:4] + second[4:6] + second[8:12], [None, 9223372036854775807, -0.0, None, None, None, None, None, None])
    if arrays:
        check(f'{name} array', query(f"select grid from '{table}'")['dataset'][0][0], [[1.5, -2.0], [3.25, 1e300]])


for version in (1, 2):
    for protocol, port in (('http', HTTP), ('tcp', LINE)):
        table = f'client {protocol} v{version}'
        write(f'{protocol}::addr=127.0.0.1:{port};protocol_version={version};', table, version >= 2)
        verify(table, table, version >= 2)
table = 'client auto'
write(f'http::addr=127.0.0.1:{HTTP};', table, True)
verify(table, table, True)
print(f'{passed} passed, {failed} failed')
sys.exit(1 if failed else 0)
