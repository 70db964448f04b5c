"""Goal: SQLAlchemy reflects tables through each of its drivers. Usage: sqlalchemy_reflection.py host:port user password"""

import asyncio
import sys

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import create_async_engine

ADDRESS, USER, PASSWORD = sys.argv[1:4]
URL = f"{USER}:{PASSWORD}@{ADDRESS}/qdb"
CREATE = (
    'create table "reflected-t" (ts timestamp, name symbol, amount decimal(10,2), price double, flag boolean, id uuid)'
    " timestamp(ts) partition by day wal"
)
TYPES = {
    "ts": "TIMESTAMP",
    "name": "VARCHAR",
    "amount": "NUMERIC(10, 2)",
    "price": "DOUBLE PRECISION",
    "flag": "BOOLEAN",
    "id": "UUID",
}


def reflect(connection):
    table = "reflected-t"
    inspector = sa.inspect(connection)
    assert "public" in inspector.get_schema_names()
    assert table in inspector.get_table_names()
    assert "sql_features" not in inspector.get_table_names()
    assert inspector.has_table(table) and not inspector.has_table("nope")
    found = {column["name"]: str(column["type"]) for column in inspector.get_columns(table)}
    assert found == TYPES, found
    assert inspector.get_pk_constraint(table)["constrained_columns"] == []
    assert inspector.get_indexes(table) == [] and inspector.get_foreign_keys(table) == []
    assert inspector.get_unique_constraints(table) == [] and inspector.get_check_constraints(table) == []
    assert inspector.get_enums() == [] and inspector.get_sequence_names() == []
    assert "reflected_v" in inspector.get_view_names()
    assert "reflected-t" in inspector.get_view_definition("reflected_v")
    metadata = sa.MetaData()
    metadata.reflect(connection, views=True)
    assert table in metadata.tables


def prepare():
    engine = sa.create_engine(f"postgresql+psycopg2://{URL}", isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(sa.text('drop view if exists reflected_v'))
        connection.execute(sa.text('drop table if exists "reflected-t"'))
        connection.execute(sa.text(CREATE))
        connection.execute(sa.text('create view reflected_v as (select name, price from "reflected-t")'))


async def reflect_async(driver):
    engine = create_async_engine(f"postgresql+{driver}://{URL}")
    async with engine.connect() as connection:
        await connection.run_sync(reflect)
    await engine.dispose()


prepare()
for driver in ("psycopg2", "psycopg", "pg8000"):
    with sa.create_engine(f"postgresql+{driver}://{URL}").connect() as connection:
        reflect(connection)
    print(f"{driver}: reflected")
for driver in ("asyncpg", "psycopg_async"):
    asyncio.run(reflect_async(driver))
    print(f"{driver}: reflected")
print("1 passed, 0 failed")
