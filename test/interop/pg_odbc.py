"""Goal: psqlODBC, through pyodbc, works against a running server in each of its ways to prepare and to fetch: values and
rows of parameters, the catalog functions of ODBC, transactions, errors. Argument: host:port of the wire protocol."""

import datetime
import sys

import pyodbc

host, port = sys.argv[1].rsplit(":", 1)
driver = next(name for name in pyodbc.drivers() if name.startswith("PostgreSQL Unicode"))
base = f"DRIVER={{{driver}}};SERVER={host};PORT={port};DATABASE=qdb;UID=admin;PWD=quest;"
first = datetime.datetime(2024, 1, 1, 1, 2, 3, 456789)
types = [("ts", "timestamp"), ("s", "varchar"), ("d", "float8"), ("i", "int4"), ("l", "int8"), ("b", "bool")]
types += [("v", "varchar"), ("u", "uuid")]


def rows_from(day):
    start = datetime.datetime(2024, 1, day)
    return [(start + datetime.timedelta(seconds=n), f"s{n % 3}", n / 2, n) for n in range(50)]


def run(options):
    connection = pyodbc.connect(base + options, autocommit=True)
    cursor = connection.cursor()
    cursor.execute("drop table if exists odbc_t")
    cursor.execute(
        "create table odbc_t (ts timestamp, s symbol, d double, i int, l long, b boolean, v varchar, u uuid)"
        " timestamp(ts) partition by day"
    )
    uuid = "11111111-2222-3333-4444-555555555555"
    cursor.execute("insert into odbc_t values (?,?,?,?,?,?,?,?)", first, "a", 1.5, 3, 2**40, True, "it's", uuid)
    assert cursor.rowcount == 1, cursor.rowcount
    for day, fast in ((2, False), (3, True)):
        cursor.fast_executemany = fast
        cursor.executemany("insert into odbc_t (ts,s,d,i) values (?,?,?,?)", rows_from(day))
    assert cursor.execute("select count(*) from odbc_t").fetchone()[0] == 101
    row = cursor.execute("select * from odbc_t limit 1").fetchone()
    assert list(row)[:5] == [first, "a", 1.5, 3, 2**40] and row[5] in (True, "1"), row
    assert list(row)[6:] == ["it's", uuid], row
    assert len(cursor.execute("select * from odbc_t where i > ?", 10).fetchall()) == 78

    assert "odbc_t" in [found.table_name for found in cursor.tables(tableType="TABLE").fetchall()]
    assert [(found.column_name, found.type_name) for found in cursor.columns(table="odbc_t").fetchall()] == types
    assert cursor.primaryKeys("odbc_t").fetchall() == [] and cursor.foreignKeys("odbc_t").fetchall() == []
    cursor.statistics("odbc_t").fetchall()
    assert len(cursor.getTypeInfo().fetchall()) > 10 and len(cursor.procedures().fetchall()) > 100
    assert connection.getinfo(pyodbc.SQL_DBMS_NAME) == "PostgreSQL"

    connection.autocommit = False
    cursor.execute("insert into odbc_t (ts,i) values ('2025-01-01', 1)")
    connection.rollback()
    assert cursor.execute("select count(*) from odbc_t").fetchone()[0] == 101
    connection.commit()
    try:
        cursor.execute("select * from nope")
        raise AssertionError("a missing table was found")
    except pyodbc.Error as error:
        assert error.args[0] == "42P01", error
    connection.rollback()
    cursor.execute("update odbc_t set d = 7 where i = ?", 5)
    assert cursor.rowcount == 2, cursor.rowcount
    connection.commit()
    connection.close()


for options in ("", "UseServerSidePrepare=0;", "UseDeclareFetch=1;Fetch=10;", "Protocol=7.4-2;", "BoolsAsChar=0;"):
    run(options)
    print("psqlODBC", options or "as it comes")
