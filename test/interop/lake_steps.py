"""What the tests of query engines over the lake share: tables that are changed in every way, and the comparison of counts, sums
and bounds with SQL after each change.

Tables have format version 2 of Iceberg, or 3.

An engine is an object with
    row(sql)          the first row of a query
    table(name)       its name of a table in the lake
    refresh(name)     before a table is read again
    micros(x)         microseconds of a time
    nanos(x)          nanoseconds of a time, if it has the type
    item(array, i..)  an element, whose indices count from 1
    quoted(name)      a column that is a keyword"""

import json
import os
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request


class Server:
    def __init__(self, port, authorization=None):
        self.base = f"http://127.0.0.1:{port}"
        self.headers = {} if authorization is None else {"Authorization": authorization}

    def execute(self, query):
        url = f"{self.base}/exec?{urllib.parse.urlencode({'query': query})}"
        try:
            with urllib.request.urlopen(urllib.request.Request(url, headers=self.headers), timeout=300) as answer:
                return json.loads(answer.read()).get("dataset", [])
        except urllib.error.HTTPError as error:
            sys.exit(f"{query}: {error.read().decode()}")

    def follow(self, table):
        """Until the lake has everything that the table had at the call."""
        calm = 0
        for _ in range(1200):
            state, failure = self.execute(f"select state, failure from lake_tables() where table_name = '{table}'")[0]
            calm = calm + 1 if state == "committed" else 0
            if calm == 5:
                return
            time.sleep(0.1)
        sys.exit(f"{table} is not committed: {state}, {failure}")


def close(x, y):
    if isinstance(x, float) or isinstance(y, float):
        return abs(float(x) - float(y)) <= 1e-9 * max(1.0, abs(float(x)))
    return str(x) == str(y)


def check(name, expected, found):
    if len(expected) != len(found):
        sys.exit(f"{name}: expected {expected}, found {found}")
    for place, (x, y) in enumerate(zip(expected, found)):
        if not close(x, y):
            sys.exit(f"{name}: value {place} is {y}, not {x}, of {found}")
    print(f"{name}: {found}", flush=True)


# Trades ------------------------------------------------------------------------------------------------------------


def lake_on(version):
    return "lake on" if version == 2 else f"lake on format version {version}"


def insert_trades(server, table, first, count):
    server.execute(
        f"insert into {table} select dateadd('s', (x * 37)::int, '2024-01-01'::timestamp), 's' || x % 9,"
        f" case when x % 11 = 0 then null else x / 7.0 end, x + {first}, 'n' || x from long_sequence({count})"
    )


def compare_trades(server, engine, table, name, column="amount"):
    server.follow(table)
    engine.refresh(table)
    shared = f"sum({column}), min({column}), max({column}), count(price), sum(price), min(price), max(price), min(symbol), max(symbol)"
    expected = server.execute(f"select count(), {shared}, min(ts)::long, max(ts)::long, count_distinct(symbol) from {table}")[0]
    found = engine.row(
        f"select count(*), {shared}, {engine.micros('min(ts)')}, {engine.micros('max(ts)')}, count(distinct symbol)"
        f" from {engine.table(table)}"
    )
    check(f"{table}, {name}", expected, found)


def change_trades(server, engine, version=2):
    table = "trades" if version == 2 else f"trades{version}"

    def step(name, *statements, column="amount"):
        for statement in statements:
            server.execute(statement)
        compare_trades(server, engine, table, name, column)

    server.execute(
        f"create table {table} (ts timestamp, symbol symbol, price double, amount long, note varchar) timestamp(ts)"
        f" partition by day {lake_on(version)}"
    )
    insert_trades(server, table, 0, 20_000)
    step("inserted")
    step("late rows", f"insert into {table} values ('2023-12-31T23:59:59', 'late', 1.5, 7, 'late')")
    step("updated", f"update {table} set price = price * 2 where symbol = 's3'")
    step("deleted", f"delete from {table} where symbol = 's4'")
    columns = ["add column flag boolean", "drop column note", "rename column amount to volume"]
    row = f"insert into {table} values ('2024-01-05T01:00', 'new', 2.5, 8, true)"
    step("other columns", *[f"alter table {table} {change}" for change in columns], row, column="volume")
    check("a new column", [1], engine.row(f"select count(flag) from {engine.table(table)}"))
    step("another type", f"alter table {table} alter column volume type double", column="volume")
    step("without a partition", f"alter table {table} drop partition list '2024-01-02'", column="volume")


# While rows arrive -------------------------------------------------------------------------------------------------

BATCH = 500


def read_while_rows_arrive(server, engine, seconds=15):
    """Every snapshot has a prefix of the inserts, each of them whole."""
    server.execute("create table running (ts timestamp, batch long) timestamp(ts) partition by hour lake on")
    done = threading.Event()

    def ingest():
        batch = 0
        while not done.is_set():
            server.execute(f"insert into running select dateadd('s', x::int, '2024-01-01'::timestamp), {batch} from long_sequence({BATCH})")
            batch += 1

    thread = threading.Thread(target=ingest)
    thread.start()
    try:
        while not server.execute("select 1 from lake_tables() where table_name = 'running' and rows > 0"):
            time.sleep(0.2)
        seen, last, end = set(), -1, time.time() + seconds
        while time.time() < end:
            engine.refresh("running")
            count, batches, newest = engine.row(f"select count(*), count(distinct batch), max(batch) from {engine.table('running')}")
            if count != batches * BATCH or (batches > 0 and newest != batches - 1) or batches < last:
                sys.exit(f"a snapshot has {count} rows of {batches} batches up to {newest}, after {last}")
            last = batches
            seen.add(batches)
    finally:
        done.set()
        thread.join()
    if len(seen) < 2:
        sys.exit(f"nothing arrived in the lake: {seen}")
    server.follow("running")
    engine.refresh("running")
    check(
        f"{len(seen)} snapshots while rows arrived, and their end",
        server.execute("select count(), sum(batch) from running")[0],
        engine.row(f"select count(*), sum(batch) from {engine.table('running')}"),
    )


# Every type --------------------------------------------------------------------------------------------------------

COLUMNS_OF_KINDS = {
    "ts": ("timestamp", "timestamp_sequence('2024-01-01', 10000000000L)"),
    "bo": ("boolean", "x % 2 = 0"),
    "by": ("byte", "(x % 100)::byte"),
    "sh": ("short", "(x * 3)::short"),
    "ch": ("char", "'z'"),
    "i": ("int", "x::int"),
    "l": ("long", "x * 1000000007"),
    "f": ("float", "x / 4.0f"),
    "d": ("double", "x / 8.0"),
    "da": ("date", "(x * 86400000)::date"),
    "ns": ("timestamp_ns", "(x * 1000000000 + 789)::timestamp_ns"),
    "st": ("string", "'str' || x"),
    "va": ("varchar", "'va' || x"),
    "sy": ("symbol", "'sym' || x % 7"),
    "uu": ("uuid", "rnd_uuid4()"),
    "ip": ("ipv4", "rnd_ipv4()"),
    "ge": ("geohash(8c)", "rnd_geohash(40)"),
    "bi": ("binary", "rnd_bin(4, 4, 0)"),
    "lo": ("long256", "rnd_long256()"),
    "de": ("decimal(20, 4)", "(x || '.1234')::decimal(20, 4)"),
    "hu": ("decimal(50, 2)", "(x || '.25')::decimal(50, 2)"),
    "ar": ("double[]", "ARRAY[x / 2.0, 1]"),
    "ar2": ("double[][]", "ARRAY[[1.0, x], [2.0, 3.0]]"),
}


def figures_of_kinds(engine, version, has_nanos):
    """Pairs of expressions, of SQL here and of the engine."""

    def both(expression):
        return expression, expression

    pairs = [("count()", "count(*)"), both("sum(case when bo then 1 else 0 end)")]
    for column in ["by", "sh", "i", "l"]:
        pairs += [(f"{name}({column})", f"{name}({engine.quoted(column)})") for name in ["sum", "min", "max", "count"]]
    for column in ["f", "d"]:
        double = f"cast({column} as double)"
        pairs += [both(f"{name}({double})") for name in ["sum", "min", "max", "count"]]
    for column, scale in [("ts", ""), ("da", " * 1000"), *([("ns", " / 1000")] if version == 2 else [])]:
        pairs += [(f"{name}({column})::long{scale}", engine.micros(f"{name}({column})")) for name in ["min", "max"]]
    if version > 2 and has_nanos:
        pairs += [(f"{name}(ns)::long", engine.nanos(f"{name}(ns)")) for name in ["min", "max"]]
    pairs += [both(f"{name}(de)") for name in ["sum", "min", "max", "count"]]
    pairs += [(f"{name}(hu)::double", f"{name}(cast(hu as double))") for name in ["min", "max"]]
    for column in ["st", "va", "sy", "uu", "ip", "ge"]:
        # NULL geohashes are empty as text.
        text = f"nullif(cast({column} as string), '')" if column in ("uu", "ip", "ge") else column
        pairs += [(f"{name}({text})", f"{name}({column})") for name in ["count", "min", "max"]]
    pairs += [(f"sum(ar[{i}])", f"sum({engine.item('ar', i)})") for i in (1, 2)]
    pairs += [("sum(ar2[1][2])", f"sum({engine.item('ar2', 1, 2)})")]
    return pairs


def compare_kinds(server, engine, version=2, has_nanos=True):
    """`has_nanos`: the engine has the type of TIMESTAMP_NS in format version 3. One without it reads no column beside it."""
    table = "kinds" if version == 2 else f"kinds{version}"
    columns = {name: own for name, own in COLUMNS_OF_KINDS.items() if name != "ns" or version == 2 or has_nanos}
    types = ", ".join(f"{name} {own}" for name, (own, _) in columns.items())
    server.execute(f"create table {table} ({types}) timestamp(ts) partition by month {lake_on(version)}")
    server.execute(f"insert into {table} select {', '.join(value for _, value in columns.values())} from long_sequence(700)")
    server.execute(f"insert into {table} (ts) values ('2024-06-01')")
    server.follow(table)
    engine.refresh(table)
    pairs = figures_of_kinds(engine, version, has_nanos)
    expected = server.execute(f"select {', '.join(ours for ours, _ in pairs)} from {table}")[0]
    found = engine.row(f"select {', '.join(theirs for _, theirs in pairs)} from {engine.table(table)}")
    check(f"every type, format version {version}", expected, found)
    other, wanted = "max(ch), max(length(lo)), max(length(bi))", [122, 32, 4]
    if version == 2:
        other, wanted = f"{other}, max(ns_nanos)", [*wanted, 789]
    check("other representations", wanted, engine.row(f"select {other} from {engine.table(table)}"))


# Format version 3 --------------------------------------------------------------------------------------------------


def read_version_3(server, engine, no_nanos=None):
    """`no_nanos`: what an engine says that has no type for TIMESTAMP_NS in format version 3; docs/lake.md has it, too."""
    change_trades(server, engine, 3)
    compare_kinds(server, engine, 3, no_nanos is None)
    raise_version(server, engine)
    server.execute("create table ticks (ts timestamp_ns, x long) timestamp(ts) partition by day lake on format version 3")
    server.execute(
        "insert into ticks select ('2024-01-01T00:00:00.000000789Z'::timestamp_ns::long + x * 60000000007)::timestamp_ns, x"
        " from long_sequence(5000)"
    )
    server.follow("ticks")
    if no_nanos is not None:
        refuse(engine, "ticks", no_nanos)
        return
    engine.refresh("ticks")
    expected = server.execute("select count(), sum(x), min(ts)::long, max(ts)::long from ticks")[0]
    figures = f"count(*), sum(x), {engine.nanos('min(ts)')}, {engine.nanos('max(ts)')}"
    check("nanoseconds", expected, engine.row(f"select {figures} from {engine.table('ticks')}"))


def raise_version(server, engine):
    """A table of version 2 that gets version 3 with its files and snapshots."""
    server.execute("create table raised (ts timestamp, x long) timestamp(ts) partition by day lake on")
    server.execute("insert into raised select timestamp_sequence('2024-01-01', 10000000L), x from long_sequence(20000)")
    server.follow("raised")
    server.execute("alter table raised set lake on format version 3")
    server.execute("update raised set x = x + 1 where x < 100")
    server.follow("raised")
    server.execute("insert into raised values ('2024-02-01', 7)")
    server.follow("raised")
    engine.refresh("raised")
    check(
        "raised to format version 3",
        server.execute("select count(), sum(x), min(ts)::long, max(ts)::long from raised")[0],
        engine.row(f"select count(*), sum(x), {engine.micros('min(ts)')}, {engine.micros('max(ts)')} from {engine.table('raised')}"),
    )


def refuse(engine, table, message):
    """The engine cannot read the table, and docs/lake.md says with which message."""
    page = open(os.path.join(os.path.dirname(__file__), "../../docs/lake.md"), encoding="utf-8").read()
    if message not in page:
        sys.exit(f"docs/lake.md does not say: {message}")
    try:
        row = engine.row(f"select count(*) from {engine.table(table)}")
    except Exception as error:
        if message not in str(error):
            raise
        print(f"{table} is refused: {message}")
        return
    sys.exit(f"{table} is read, say so in docs/lake.md: {row}")
