"""Every function over every kind of extreme argument: each statement is answered soon, and never by an internal error.

python3 extreme_arguments.py HTTP_PORT [seed]

A loop that counts to an argument, a length that is asked for, a bound that 64 bits cannot hold: one such statement stops
a server. Constants and columns are both used, since a plan is checked where a column is only met.
"""

import http.client
import json
import random
import sys
import time
import urllib.parse

ANSWER_SECONDS = 20

TABLE = """create table if not exists extremes (ts timestamp, b boolean, y byte, s short, c char, i int, l long, f float, d double,
  str string, v varchar, sym symbol, dt date, u uuid, ip ipv4, g geohash(20b), arr double[], dec decimal(38,10))
  timestamp(ts) partition by day"""
NAMES = "ts,b,y,s,c,i,l,f,d,str,v,sym,dt,u,ip,g,arr,dec"
ROWS = [
    "9223372036854775000,true,127,32767,'z',2147483647,9223372036854775807,3e38,1e308,rpad('x',1000,'y'),"
    "rpad('%',1000,'_'),'s',9000000000000000,'ffffffff-ffff-ffff-ffff-ffffffffffff','255.255.255.255','zzzz',"
    "ARRAY[1e308,-1e308],9999999999999999999999999999.9m",
    "1,false,-127,-32767,'a',-2147483647,-9223372036854775807,-3e38,-1e308,'','','',-9000000000000000,null,'1.1.1.1',"
    "'0000',ARRAY[0.0],-9999999999999999999999999999.9m",
    "0" + ",null" * 17,
]
CONSTANTS = [
    "2147483647", "-2147483648", "9223372036854775807L", "-1", "0", "1e308", "-1e308", "1000000000", "null",
    "'x'", "rpad('x',5000,'y')", "'%'", "'d'", "'1y'", "'yyyy'", "'a'::char", "'Europe/Berlin'",
    "'2024-01-01'::timestamp", "9223372036854775807::timestamp", "true", "ARRAY[1.0,2.0]",
]  # fmt: skip
ODD = ("nternal", "undefined", "is not a function", "BigInt", "Cannot read", "Invalid array length", "assert",
       "memory access", "unreachable", "out of bounds")


class Server:
    def __init__(self, address):
        self.address = address
        self.connection = None

    def ask(self, query):
        if self.connection is None:
            self.connection = http.client.HTTPConnection(self.address, timeout=ANSWER_SECONDS)
        try:
            self.connection.request("GET", "/exec?" + urllib.parse.urlencode({"query": query}))
            return json.loads(self.connection.getresponse().read(), strict=False)
        except Exception:
            self.connection = None
            raise


# One call of it works for minutes, and nobody can ask it to stop.
STUCK = "select sum(length(replace(lpad(x::string, 4000000, 'a'), 'b', 'c'))) from long_sequence(100000)"


def stuck_query(server):
    """A deadline holds for a query that never looks at the clock; its thread is replaced and its memory comes back."""
    begin = time.time()
    connection = http.client.HTTPConnection(server.address, timeout=ANSWER_SECONDS)
    path = "/exec?" + urllib.parse.urlencode({"query": STUCK})
    connection.request("GET", path, headers={"Statement-Timeout": "100"})
    answer = json.loads(connection.getresponse().read())
    seconds = time.time() - begin
    assert "timeout" in answer.get("error", "").lower() and seconds < ANSWER_SECONDS, (answer, seconds)
    assert server.ask("select sum(x) from long_sequence(5000000)")["dataset"] == [[12500002500000]]
    print(f"a query that does not stop was ended after {seconds:.1f} s")


def main():
    server = Server(f"127.0.0.1:{sys.argv[1]}")
    choice = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    for statement in [TABLE, *(f"insert into extremes ({NAMES}) values ({row})" for row in ROWS)]:
        answer = server.ask(statement)
        assert "error" not in answer, answer
    functions = sorted({row[0] for row in server.ask("select name from functions()")["dataset"]})
    columns = NAMES.split(",")
    asked, answered, slowest, failures = 0, 0, (0.0, ""), []
    for function in functions:
        # They do what their argument says.
        if function in ("sleep", "pg_sleep") or not function.replace("_", "").isalnum():
            continue
        for count in range(5):
            for _ in range(1 if count == 0 else 6):
                arguments = [choice.choice(columns if choice.random() < 0.55 else CONSTANTS) for _ in range(count)]
                query = f"select {function}({', '.join(arguments)}) from extremes"
                begin = time.time()
                try:
                    answer = server.ask(query)
                except Exception as error:
                    failures.append(f"{query}: {error!r}")
                    if len(failures) > 3:
                        break
                    continue
                asked += 1
                slowest = max(slowest, (time.time() - begin, query))
                error = answer.get("error", "")
                answered += error == ""
                if any(word in error for word in ODD):
                    failures.append(f"{query}: {error}")
    stuck_query(server)
    print(f"{asked} statements over {len(functions)} functions, {answered} with rows, slowest {slowest[0]:.2f} s {slowest[1]}")
    for failure in failures:
        print(f"FAILED {failure}")
    return 1 if failures or answered < asked / 50 or server.ask("select 1")["dataset"] != [[1]] else 0


sys.exit(main())
