"""Statements to the Trino server in PENSTOCK_TRINO, and catalogs by the properties that docs/lake.md lists."""

import json
import os
import re
import urllib.request

address = os.environ.get("PENSTOCK_TRINO", "")


def rows(sql):
    headers = {"X-Trino-User": "penstock", "X-Trino-Time-Zone": "UTC"}
    request = urllib.request.Request(f"{address}/v1/statement", data=sql.encode(), headers=headers)
    found = []
    while request is not None:
        with urllib.request.urlopen(request, timeout=300) as answer:
            page = json.loads(answer.read())
        if "error" in page:
            raise RuntimeError(f"{sql}: {page['error']['message']}")
        found += page.get("data", [])
        request = page.get("nextUri")
    return found


def documented(heading):
    """The first properties of a catalog below a heading of docs/lake.md."""
    page = open(os.path.join(os.path.dirname(__file__), "../../docs/lake.md"), encoding="utf-8").read()
    section = page[page.index(f"\n{heading}\n") :]
    block = re.search(r"```\n(connector\.name=iceberg\n.*?)```", section, re.S).group(1)
    return dict(line.split("=", 1) for line in block.splitlines())


def attach(name, properties):
    """Creates a catalog as a file of these properties does, in place of one with this name."""
    rest = ", ".join(f"\"{key}\" = '{value}'" for key, value in properties.items() if key != "connector.name")
    rows(f"drop catalog if exists {name}")
    rows(f"create catalog {name} using {properties['connector.name']} with ({rest})")
