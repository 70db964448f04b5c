"""Reads parts with pyarrow and DuckDB and prints what each sees, as JSON: counts, nulls, sums, minima and maxima by column.

usage: parts_check.py FILE...

Output: {"file": {"pyarrow": {"rows": n, "columns": {name: {...}}}, "duckdb": {...}}}; exit code 1 when the two disagree
on rows or nulls, DuckDB refuses a column (it knows no DATE beyond the year 294246), or a page's checksum is wrong.
"""

import json
import math
import sys

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq


def plain(value):
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    return value.hex() if isinstance(value, bytes) else str(value)


def with_arrow(path):
    file = pq.ParquetFile(path, page_checksum_verification=True)
    table = file.read()
    columns = {}
    for name in table.column_names:
        column = table[name]
        seen = {"type": str(column.type), "nulls": column.null_count}
        numeric = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
        if numeric:
            seen["sum"] = plain(pc.sum(column.cast(pa.float64(), safe=False)).as_py())
        if pa.types.is_timestamp(column.type):
            # pyarrow's scalars refuse nanoseconds that datetime cannot hold: show the integers.
            column = column.cast(pa.int64())
            numeric = True
        if numeric or pa.types.is_decimal(column.type) or pa.types.is_string(column.type):
            bounds = pc.min_max(column)
            seen["min"], seen["max"] = plain(bounds["min"].as_py()), plain(bounds["max"].as_py())
        elif pa.types.is_boolean(column.type):
            seen["sum"] = plain(pc.sum(column).as_py())
        else:
            values = [plain(value.as_py()) for value in column if value.is_valid]
            seen["min"], seen["max"] = min(values, default=None), max(values, default=None)
        columns[name] = seen
    return {"rows": table.num_rows, "columns": columns}


def with_duckdb(path):
    connection = duckdb.connect()
    source = "read_parquet('" + path.replace("'", "''") + "')"
    names = connection.execute(f"describe select * from {source}").fetchall()
    rows = connection.execute(f"select count(*) from {source}").fetchone()[0]
    columns = {}
    for name, kind, *_ in names:
        quoted = '"' + name.replace('"', '""') + '"'
        exact = f"epoch_ns({quoted})" if "TIMESTAMP" in kind and "_NS" in kind else quoted
        total = f"sum({quoted}::double)" if kind in NUMBERS or kind.startswith("DECIMAL") else "null"
        sql = f"select count(*) - count({quoted}), {total}, min({exact})::varchar, max({exact})::varchar from {source}"
        try:
            nulls, total, low, high = connection.execute(sql).fetchone()
        except duckdb.Error as error:
            columns[name] = {"type": kind, "error": str(error)}
            continue
        columns[name] = {"type": kind, "nulls": nulls, "sum": plain(total), "min": low, "max": high}
    return {"rows": rows, "columns": columns}


NUMBERS = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "FLOAT", "DOUBLE"}


def disagree(one, other):
    if one["rows"] != other["rows"]:
        return True
    return any(seen["nulls"] != other["columns"][name].get("nulls") for name, seen in one["columns"].items())


def main(paths):
    report = {path: {"pyarrow": with_arrow(path), "duckdb": with_duckdb(path)} for path in paths}
    json.dump(report, sys.stdout, indent=1)
    sys.stdout.write("\n")
    return 1 if any(disagree(seen["pyarrow"], seen["duckdb"]) for seen in report.values()) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
