"""Reads the parts of a running server with pyarrow and DuckDB and compares them with the server's own answers: every
value of a table with every type (NULLs and boundary values), counts and sums of a table with many rows.

usage: parts_query.py HTTP_PORT DB_FOLDER      the server's data lies in DB_FOLDER, with no other tables than ours

Exit status 0 and a closing line `N passed, N failed`."""

import datetime
import json
import math
import os
import struct
import sys
import urllib.parse
import urllib.request

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

HTTP, FOLDER = int(sys.argv[1]), sys.argv[2]
passed = failed = 0


def query(sql):
    with urllib.request.urlopen(f"http://127.0.0.1:{HTTP}/exec?query=" + urllib.parse.quote(sql)) as answer:
        return json.load(answer)


def check(name, found, wanted):
    global passed, failed
    same = found == wanted
    if isinstance(found, float) and isinstance(wanted, (int, float)):
        same = math.isclose(found, wanted, rel_tol=1e-9)
    if same:
        passed += 1
    else:
        failed += 1
        print(f"FAILED {name}: file {found!r}, query {wanted!r}")


def files_of(table):
    return [os.path.join(FOLDER, row[0]) for row in query(f"select file from table_parts('{table}')")["dataset"]]


EVERY = """create table every (bo boolean, b8 byte, sh short, ch char, i int, l long, f float, d double, st string,
 vc varchar, sy symbol, dt date, tn timestamp_ns, u uuid, l2 long256, ip ipv4, g7 geohash(7b), g15 geohash(3c),
 g31 geohash(31b), g60 geohash(12c), a1 double[], a2 double[][], d8 decimal(18,4), d16 decimal(38,10),
 d32 decimal(76,0), ts timestamp) timestamp(ts) partition by year"""
NINES = "9" * 76
ROWS = [
    "(ts) values ('2024-01-01')",
    f"""values (true, -128, -32768, 'A', -2147483647, -9223372036854775807, -3.4028234663852886e38, -1.7976931348623157e308,
 'text', 'varied', 'symbol', '1970-01-01T00:00:00.001Z', '1970-01-01T00:00:00.000000001Z',
 '00000000-0000-0000-0000-000000000001', 0x01, '0.0.0.1', ##0000000, #000, ##0000000000000000000000000000000,
 #000000000000, ARRAY[1.5, -0.5, 1e300], ARRAY[[1.0,2.0],[3.0,4.0]], -99999999999999.9999m, -0.0000000001m,
 -{NINES}m, '1970-01-01')""",
    f"""values (false, 127, 32767, 'é', 2147483647, 9223372036854775807, 3.4028234663852886e38, 1.7976931348623157e308, '', '', '',
 '2262-04-11T23:47:16.854Z', '2262-04-11T23:47:16.854775807Z', 'ffffffff-ffff-ffff-ffff-ffffffffffff',
 0x7fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff, '255.255.255.255', ##1111111, #zzz,
 ##1111111111111111111111111111111, #zzzzzzzzzzzz, ARRAY[0.0], ARRAY[[5e-324]], 99999999999999.9999m,
 0.0000000001m, {NINES}m, '2099-12-31T23:59:59.999999Z')""",
    "(ts, st, f, d) values ('2024-01-02', 'sn☃w', 0.1, -0.0)",
]
LETTERS = "0123456789bcdefghjkmnpqrstuvwxyz"


def instant(ticks, digits):
    seconds, rest = divmod(ticks, 10**digits)
    when = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=seconds)
    return f"{when:%Y-%m-%dT%H:%M:%S}.{rest:0{digits}d}Z"


def geohash(bits, width):
    if width % 5:
        return f"{bits:0{width}b}"
    return "".join(LETTERS[(bits >> shift) & 31] for shift in range(width - 5, -1, -5))


def array(data):
    dims = struct.unpack_from("<I", data)[0]
    shape = struct.unpack_from(f"<{dims}I", data, 4)
    at = (4 + 4 * dims + 7) // 8 * 8
    values = list(struct.unpack_from(f"<{math.prod(shape)}d", data, at))
    for size in reversed(shape[1:]):
        values = [values[i : i + size] for i in range(0, len(values), size)]
    return values


def long256(data):
    digits = f"{int.from_bytes(data, 'little'):x}"
    return "0x" + digits.zfill(len(digits) + len(digits) % 2)


def single(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


AS_QUERIED = {
    "ch": lambda value: "" if value == 0 else chr(value),
    "dt": lambda value: instant(value, 3),
    "ts": lambda value: instant(value, 6),
    "tn": lambda value: instant(value, 9),
    "u": lambda value: str(value) if not isinstance(value, bytes) else str(__import__("uuid").UUID(bytes=value)),
    "l2": long256,
    "ip": lambda value: ".".join(str(part) for part in value.to_bytes(4, "big")),
    "g7": lambda value: geohash(value, 7),
    "g15": lambda value: geohash(value, 15),
    "g31": lambda value: geohash(value, 31),
    "g60": lambda value: geohash(value, 60),
    "a1": array,
    "a2": array,
    "d8": lambda value: f"{value:f}",
    "d16": lambda value: f"{value:f}",
    "d32": lambda value: f"{value:f}",
}


def column_values(table, name):
    column = table[name]
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    text = AS_QUERIED.get(name, lambda value: value)
    return [None if value.as_py() is None else text(value.as_py()) for value in column]


def check_every():
    query(EVERY)
    for row in ROWS:
        query(f"insert into every {row}")
    before = query("select * from every")
    query("checkpoint")
    answer = query("select * from every")
    check("rows before and after the checkpoint", before["dataset"], answer["dataset"])
    tables = [pq.ParquetFile(file, page_checksum_verification=True).read() for file in files_of("every")]
    table = pa.concat_tables(tables).sort_by("ts")
    check("every: rows", table.num_rows, answer["count"])
    connection = duckdb.connect()
    source = f"read_parquet({files_of('every')!r})"
    for index, column in enumerate(answer["columns"]):
        name = column["name"]
        wanted = [row[index] for row in answer["dataset"]]
        if name == "l2":
            wanted = [value or None for value in wanted]
        if name == "f":
            wanted = [None if value is None else single(value) for value in wanted]
        check(f"every.{name} {column['type']}", column_values(table, name), wanted)
        nulls = connection.execute(f'select count(*) - count("{name}") from {source}').fetchone()[0]
        check(f"every.{name} nulls in DuckDB", nulls, sum(value is None for value in wanted))


def send_lines(table, rows):
    lines = []
    for row in range(rows):
        late = 90_000_000 if row % 11 == 0 else 0
        micros = 1_700_000_000_000_000 + row * 1000 - late
        price = "" if row % 13 == 0 else f",price={row * 0.25}"
        lines.append(f"{table},sym=s{row % 97} n={row}i{price},flag={'t' if row % 3 else 'f'} {micros}000")
    body = "\n".join(lines).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{HTTP}/write", data=body, method="POST")
    urllib.request.urlopen(request).close()


def check_many():
    for _ in range(3):
        send_lines("many", 100_000)
    query("checkpoint")
    sums = "sum(n), count(price), sum(price), min(price), max(price)"
    ours = query(f"select count(), {sums}, count_distinct(sym) from many")["dataset"][0]
    source = f"read_parquet({files_of('many')!r})"
    connection = duckdb.connect()
    theirs = connection.execute(f"select count(*), {sums}, count(distinct sym) from {source}").fetchone()
    for name, found, wanted in zip(["count", "n", "count price", "sum", "min", "max", "symbols"], theirs, ours):
        check(f"many: {name}", int(found) if name in ("count", "n") else found, wanted)
    ours = query("select sym, sum(n), sum(price) from many where flag group by sym order by sym")["dataset"]
    sql = f"select sym, sum(n), sum(price) from {source} where flag group by sym order by sym"
    theirs = connection.execute(sql).fetchall()
    check("many: groups", [(row[0], int(row[1])) for row in theirs], [(row[0], row[1]) for row in ours])
    for found, wanted in zip(theirs, ours):
        check(f"many: price of {found[0]}", found[2], wanted[2])
    rows = sum(pq.ParquetFile(file).metadata.num_rows for file in files_of("many"))
    check("many: rows in the files", rows, 300_000)


check_every()
check_many()
print(f"{passed} passed, {failed} failed")
sys.exit(1 if failed else 0)
