# Goal: what the official Python client sends by QWP is what /exec returns: rows of every type, data frames, several
# tables, NULLs, symbols over many messages; and a refusal reaches the caller with its reason.
#
#   qwp_client.py http://127.0.0.1:9000

import datetime
import ipaddress
import json
import sys
import urllib.parse
import urllib.request
import uuid
from decimal import Decimal

import numpy as np
import pandas as pd
import questdb
from questdb import Char, DateMillis, Geohash, Long256, TimestampMicros, TimestampNanos

HTTP = sys.argv[1].rstrip('/')
ADDRESS = HTTP.split('//')[1]
FIRST = datetime.datetime(2024, 1, 1, tzinfo=datetime.timezone.utc)
MICROS = 1704067200_000000


def dataset(sql):
    with urllib.request.urlopen(f'{HTTP}/exec?query={urllib.parse.quote(sql)}') as response:
        return json.load(response).get('dataset')


def check(what, found, expected):
    assert found == expected, f'{what}: expected {expected}, found {found}'
    print(f'ok {what}')


def rows_of_every_type(client):
    columns = {
        'b': True, 'i': 42, 'f': 2.5, 's': 'größe', 't': TimestampMicros(MICROS), 'd': Decimal('123.456'),
        'u': uuid.UUID('11111111-2222-3333-4444-555555555555'), 'ip': ipaddress.IPv4Address('10.0.0.1'),
        'bin': b'\x01\x00\xff', 'c': Char('x'), 'day': DateMillis(MICROS // 1000), 'l': Long256(2**200),
        'g': Geohash.from_string('u33d8'), 'a': np.array([[1.0, 2.0], [3.0, 4.0]]),
    }
    with client.sender() as sender:
        sender.row('every', symbols={'k': 'one'}, columns=columns, at=FIRST)
        sender.row('every', symbols={'k': None}, columns={'i': 1}, at=FIRST + datetime.timedelta(seconds=1))
        sender.row('other', symbols={'k': 'two'}, columns={'i': 7}, at=TimestampNanos(MICROS * 1000))
        sender.flush(wait=True)
    check('rows of every type', dataset('select k,b,i,f,s,t,d,u,ip,c,day,l,g,a,timestamp from every'), [
        ['one', True, 42, 2.5, 'größe', '2024-01-01T00:00:00.000000Z', '123.456',
         '11111111-2222-3333-4444-555555555555', '10.0.0.1', 'x', '2024-01-01T00:00:00.000Z', '0x01' + '00' * 25, 'u33d8',
         [[1.0, 2.0], [3.0, 4.0]], '2024-01-01T00:00:00.000000Z'],
        [None, False, 1, None, None, None, None, None, None, '', None, '', None, None, '2024-01-01T00:00:01.000000Z'],
    ])
    check('rows of two tables', dataset('select k, i from other'), [['two', 7]])


def many_symbols(client):
    with client.sender() as sender:
        for row in range(20_000):
            sender.row('symbols', symbols={'k': f'k{row % 5000}'}, columns={'v': row},
                       at=TimestampNanos((MICROS + row) * 1000))
        sender.flush(wait=True)
    check('symbols over many messages', dataset('select count(), count_distinct(k), sum(v) from symbols'),
          [[20_000, 5000, sum(range(20_000))]])
    check('each row with its symbol', dataset("select count() from symbols where k <> concat('k', v % 5000)"), [[0]])


def frames(client):
    count = 100_000
    frame = pd.DataFrame({
        'sym': pd.Categorical([f's{row % 7}' for row in range(count)]),
        'i': np.arange(count, dtype='int64'),
        'small': (np.arange(count) % 100).astype('int32'),
        'f': np.arange(count) / 4,
        'text': pd.Series([None if row % 5 == 0 else f'text {row}' for row in range(count)], dtype='string'),
        'flag': np.arange(count) % 2 == 0,
        'ts': pd.date_range('2024-01-01', periods=count, freq='ms'),
    })
    client.dataframe(frame, table_name='frame', at='ts')
    check('a data frame', dataset('select count(), sum(i), sum(small), sum(f), count(text), count_distinct(sym) from frame'),
          [[count, sum(range(count)), sum(row % 100 for row in range(count)), sum(range(count)) / 4, count * 4 // 5, 7]])
    check('its last row', dataset('select sym, i, text, flag, timestamp from frame limit -1'),
          [[f's{(count - 1) % 7}', count - 1, f'text {count - 1}', False, '2024-01-01T00:01:39.999000Z']])


def refusal():
    client = questdb.connect(f'ws::addr={ADDRESS};lazy_connect=true;')
    dataset("create table strict (v uuid, timestamp timestamp) timestamp(timestamp) partition by day")
    try:
        with client.sender() as sender:
            sender.row('strict', columns={'v': 5}, at=FIRST)
            sender.flush(wait=True)
    except questdb.QuestDBError as error:
        assert 'v' in str(error) and 'UUID' in str(error), error
        print('ok a refusal with its reason')
        return
    raise AssertionError('a value that does not fit was accepted')


with questdb.connect(f'ws::addr={ADDRESS};lazy_connect=true;') as client:
    rows_of_every_type(client)
    many_symbols(client)
    frames(client)
refusal()
