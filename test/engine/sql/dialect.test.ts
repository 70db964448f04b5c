// Goal: each member of a dialect (the table of differences between SQL over HTTP and SQL over the PostgreSQL protocol)
// controls the behaviour that it names, independently of the others. Method: the dialect of HTTP with a single member
// exchanged for PostgreSQL's must give another result for a statement about that member. The member `copyStatements`
// has a test elsewhere.

import { expect, test } from 'vitest'
import { type Dialect, nativeDialect } from '../../../engine/sql/dialect.js'
import { MemoryDatabase } from '../../support/memory-database.js'

type Behaviour = Exclude<keyof Dialect, 'name'>

const prepared = [
  'create table t (i int, s string, ts timestamp) timestamp(ts)',
  "insert into t values (1, 'a', '2024-01-01')",
]

/** `copyStatements` is checked where the statement is carried out: test/pipeline/copy-files.test.ts. */
const statements: Readonly<Record<Exclude<Behaviour, 'copyStatements'>, readonly string[]>> = {
  dateIsDay: ["select '2024-01-02T03:04:05'::date"],
  intervalValues: ["select ts - '2023-12-31'::timestamp from t"],
  exactTimeParts: ["select extract(second from '2024-01-01T00:00:01.5'::timestamp)"],
  unboundedNumeric: ['select 1m / 3m'],
  exactNumbers: ['select 1m + 0.5'],
  strictCasts: ['select 300::byte'],
  roundsFractions: ['update t set i = 2.5', 'select i from t'],
  storesNumbersAsText: ['update t set s = 5', 'select s from t'],
  countsCharacters: ["select length('a😀')"],
  typedArrays: ['select array[1, 2]'],
  rowValues: ['select row(1, 2)'],
  anyFunctionInFrom: ["select * from upper('a') as x"],
  postgresNames: ['select version()'],
  postgresCatalog: ["select count() from information_schema.tables where table_name = 'pg_class'"],
  repeatedDeclarations: ['alter table t alter column i type int'],
}

function resultOf(dialect: Dialect, strings: readonly string[]): unknown {
  const database = new MemoryDatabase()
  database.dialect = dialect
  for (const sql of prepared) database.run(sql)
  try {
    return strings.map((sql) => database.run(sql))
  } catch (error) {
    return String(error)
  }
}

test.each(Object.entries(statements))('%s', (member, strings) => {
  const native = resultOf(nativeDialect, strings)
  expect(resultOf({ ...nativeDialect }, strings)).toEqual(native)
  expect(resultOf({ ...nativeDialect, [member]: true }, strings)).not.toEqual(native)
})
