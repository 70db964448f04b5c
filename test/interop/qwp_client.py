# Goal: what the official Python client sends by QWP is what /exec returns: rows of every type, data frames, several
# tables, NULLs, symbols over many messages; and a refusal reaches the caller with its reason. What it reads by QWP is
# what was written: every type, data frames, parameters; statements report what they changed, errors and cancellation
# reach the caller, and the connection goes on.
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


def fails(code, work):
    try:
        work()
    except questdb.QuestDBError as error:
        assert error.code == code, f'expected {code}, found {error.code}: {error}'
        return str(error)
    raise AssertionError(f'expected {code}')


def every_type_back(client):
    frame = client.query('select b,i,f,s,k,t,u,ip,bin,c,day,l,d,a,timestamp from every').to_arrow()
    check('rows read', frame.num_rows, 2)
    first = {name: frame.column(name)[0].as_py() for name in frame.column_names}
    utc = datetime.timezone.utc
    expected = {
        'b': True, 'i': 42, 'f': 2.5, 's': 'größe', 'k': 'one', 't': FIRST, 'bin': b'\x01\x00\xff', 'c': ord('x'),
        'day': FIRST, 'd': Decimal('123.456'), 'a': [[1.0, 2.0], [3.0, 4.0]], 'timestamp': FIRST,
        'u': uuid.UUID('11111111-2222-3333-4444-555555555555'), 'ip': int(ipaddress.IPv4Address('10.0.0.1')),
        'l': (2**200).to_bytes(32, 'little'),
    }
    for name, value in expected.items():
        found = first[name]
        if isinstance(found, datetime.datetime):
            found = found.astimezone(utc) if found.tzinfo else found.replace(tzinfo=utc)
        check(f'column {name}', found, value)
    second = {name: frame.column(name)[1].as_py() for name in ('k', 'f', 's', 'u', 'd', 'a')}
    check('NULLs', list(second.values()), [None] * 6)


def frames_back(client):
    frame = client.query('select * from frame').to_pandas()
    count = 100_000
    check('a data frame read', [len(frame), int(frame['i'].sum()), float(frame['f'].sum())],
          [count, sum(range(count)), sum(range(count)) / 4])
    check('its symbols', sorted(frame['sym'].unique()), [f's{number}' for number in range(7)])
    batches = list(client.query('select i from frame').iter_arrow())
    check('in batches', sum(batch.num_rows for batch in batches), count)
    for zstd in ('', 'compression=zstd;'):
        with questdb.connect(f'ws::addr={ADDRESS};{zstd}') as other:
            check(f'a sum over all [{zstd}]', int(other.query('select i from frame').to_pandas()['i'].sum()),
                  sum(range(count)))


def parameters(client):
    values = [None, True, 42, 2.5, 'größe', FIRST, TimestampMicros(5), TimestampNanos(7), datetime.date(2024, 5, 6),
              Decimal('12.345'), uuid.UUID('11111111-2222-3333-4444-555555555555')]
    columns = ', '.join(f'${index + 1} c{index}' for index in range(len(values)))
    row = client.query(f'select {columns}', values).to_arrow()
    found = [row.column(index)[0].as_py() for index in range(row.num_columns)]
    check('parameters', found[:5] + found[9:], values[:5] + values[9:])
    check('a filter', client.query('select count() c from frame where i < $1 and sym = $2', [700, 's3']).to_pandas()['c'][0], 100)


def statements(client):
    client.execute('drop table if exists made')
    client.execute('create table made (x long, k symbol, ts timestamp) timestamp(ts) partition by day')
    check('rows inserted', client.execute("insert into made select x, 'k' || x, x::timestamp from long_sequence(10)").rows_affected, 10)
    check('rows updated', client.execute('update made set x = x + $1 where x > 5', [100]).rows_affected, 5)
    check('rows read back', int(client.query('select sum(x) s from made').to_pandas()['s'][0]), 555)
    client.execute('drop table made')


def errors(client):
    codes = questdb.QuestDBErrorCode
    check('an error with its reason', 'nowhere' in fails(codes.ServerParseError, lambda: client.query('select * from nowhere').to_pandas()), True)
    slow = 'select count() from long_sequence(1000000000000) where x % 7 = 3'
    fails(codes.QueryTimeout, lambda: client.query(slow, timeout=200).to_pandas())
    result = client.query('select x from long_sequence(1000000000)')
    check('a first batch', next(result.iter_arrow()).num_rows > 0, True)
    result.cancel()
    result.close()
    check('after a cancelled statement', client.query('select 1 one').to_pandas()['one'][0], 1)


with questdb.connect(f'ws::addr={ADDRESS};') as client:
    rows_of_every_type(client)
    many_symbols(client)
    frames(client)
    every_type_back(client)
    frames_back(client)
    parameters(client)
    statements(client)
    errors(client)
refusal()
