"""Writes Parquet files of every encoding, codec, page version and nesting that pyarrow knows into a folder, for
parquet-fuzz.ts: python parquet_files.py FOLDER [ROWS]. Prints a name a line."""

import datetime
import decimal
import itertools
import os
import sys

import pyarrow as pa
import pyarrow.parquet as pq

folder = sys.argv[1]
rows = int(sys.argv[2]) if len(sys.argv) > 2 else 300
os.makedirs(folder, exist_ok=True)


def holes(make, nulls=True):
    return [None if nulls and i % 7 == 3 else make(i) for i in range(rows)]


def table(nulls):
    day = datetime.date(2024, 1, 1)
    start = datetime.datetime(2024, 1, 1)
    columns = {
        "i8": (pa.int8(), lambda i: i % 100 - 50),
        "i16": (pa.int16(), lambda i: i * 3 - 500),
        "i32": (pa.int32(), lambda i: i * 1000003 % 2**30),
        "i64": (pa.int64(), lambda i: i * 1000000007 - 10**11),
        "u8": (pa.uint8(), lambda i: i % 256),
        "u16": (pa.uint16(), lambda i: i * 200 % 65536),
        "u32": (pa.uint32(), lambda i: 2**32 - 1 - i),
        "u64": (pa.uint64(), lambda i: i * 10**15),
        "f32": (pa.float32(), lambda i: i / 4),
        "f64": (pa.float64(), lambda i: i / 3),
        "b": (pa.bool_(), lambda i: i % 3 == 0),
        "s": (pa.string(), lambda i: "text %d" % (i // 5)),
        "long": (pa.large_string(), lambda i: "é" * (i % 20)),
        "raw": (pa.binary(), lambda i: bytes([i % 256, 255, 0])),
        "fixed": (pa.binary(5), lambda i: b"%05d" % i),
        "d": (pa.date32(), lambda i: day + datetime.timedelta(days=i)),
        "s_ms": (pa.timestamp("ms"), lambda i: start + datetime.timedelta(milliseconds=i)),
        "s_us": (pa.timestamp("us"), lambda i: start + datetime.timedelta(microseconds=i)),
        "s_ns": (pa.timestamp("ns"), lambda i: start + datetime.timedelta(microseconds=i)),
        "t": (pa.time64("us"), lambda i: datetime.time(1, 2, 3, i)),
        "dec9": (pa.decimal128(9, 2), lambda i: decimal.Decimal(i - 100).scaleb(-2)),
        "dec18": (pa.decimal128(18, 4), lambda i: decimal.Decimal(i * 10**9).scaleb(-4)),
        "dec38": (pa.decimal128(38, 10), lambda i: decimal.Decimal(i * 10**25).scaleb(-10)),
        "dec60": (pa.decimal256(60, 10), lambda i: decimal.Decimal(i - 5).scaleb(-10)),
        "half": (pa.float16(), lambda i: i / 8),
    }
    import numpy

    arrays = {}
    for name, (kind, make) in columns.items():
        values = holes(make, nulls)
        if name == "half":
            values = [None if value is None else numpy.float16(value) for value in values]
        arrays[name] = pa.array(values, kind)
    return pa.table(arrays)


def lists():
    return pa.table({
        "l": pa.array(holes(lambda i: [float(k) for k in range(i % 5)]), pa.list_(pa.float64())),
        "li": pa.array(holes(lambda i: [None if k == 2 else k for k in range(i % 4)]), pa.list_(pa.int32())),
        "m": pa.array(holes(lambda i: [[1.0, i], [2.0, i]]), pa.list_(pa.list_(pa.float64()))),
        "x": pa.array(list(range(rows)), pa.int64()),
    })


def nested():
    return pa.table({
        "x": pa.array(list(range(rows)), pa.int64()),
        "s": pa.array([{"a": i, "b": "t%d" % i} for i in range(rows)]),
    })


encodings = {
    "PLAIN": None,
    "DELTA_BINARY_PACKED": ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "d", "s_ms", "s_us", "s_ns", "t"],
    "DELTA_LENGTH_BYTE_ARRAY": ["s", "long", "raw"],
    "DELTA_BYTE_ARRAY": ["s", "long", "raw", "fixed", "dec38"],
    "BYTE_STREAM_SPLIT": ["f32", "f64", "i32", "i64", "fixed", "half", "dec38"],
    "RLE": ["b"],
}
codecs = ["NONE", "SNAPPY", "GZIP", "ZSTD", "BROTLI", "LZ4"]


def save(name, data, **options):
    path = os.path.join(folder, name + ".parquet")
    pq.write_table(data, path, row_group_size=max(1, rows // 2), data_page_size=1024, **options)
    print(name + ".parquet")


for version, codec, nulls in itertools.product(["1.0", "2.0"], codecs, [True, False]):
    data = table(nulls)
    shared = dict(compression=codec, data_page_version=version)
    tag = "v%s-%s-%s" % (version[0], codec.lower(), "nulls" if nulls else "whole")
    save("dictionary-" + tag, data, use_dictionary=True, **shared)
    for encoding, names in encodings.items():
        some = data if names is None else data.select(names)
        wanted = {name: encoding for name in some.column_names}
        if encoding == "PLAIN" and nulls:
            save("checksum-" + tag, some, use_dictionary=False, write_page_checksum=True, **shared)
        save(encoding.lower() + "-" + tag, some, use_dictionary=False, column_encoding=wanted, **shared)
    save("lists-" + tag, lists(), use_dictionary=False, **shared)
    save("lists-coded-" + tag, lists(), use_dictionary=True, **shared)
    save("int96-" + tag, data.select(["s_ns", "s_us"]), use_deprecated_int96_timestamps=True, **shared)
save("nested", nested())
save("decimals", table(True).select(["dec9", "dec18", "dec38"]), store_decimal_as_integer=True)
save("old", table(True).drop_columns(["s_ns", "half"]), version="1.0")
