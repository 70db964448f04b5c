"""The extensions of DuckDB that packages of Python bring: duckdb-ext-iceberg, -avro and -httpfs."""

import glob
import importlib.util

try:
    import duckdb
except ImportError:
    duckdb = None


def extension_paths():
    """Those for this version of DuckDB; None: some are missing."""
    places = importlib.util.find_spec("duckdb_ext")
    if duckdb is None or places is None:
        return None
    found = []
    for name in ["avro", "httpfs", "iceberg"]:
        pattern = f"extensions/v{duckdb.__version__}/*/{name}.duckdb_extension"
        found += [path for place in places.submodule_search_locations for path in glob.glob(f"{place}/{pattern}")][:1]
    return found if len(found) == 3 else None


def iceberg_connection(paths, endpoint, warehouse="", secret=""):
    """A connection with the tables of a catalog in `lake`."""
    connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    for path in paths:
        connection.execute(f"load '{path}'")
    if secret:
        connection.execute(f"create secret ({secret})")
    connection.execute("set timezone = 'UTC'")
    connection.execute(f"attach '{warehouse}' as lake (type iceberg, endpoint '{endpoint}', authorization_type 'none')")
    return connection
