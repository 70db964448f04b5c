// Goal: a statement with parameters that clients prepare repeatedly is parsed once, and the types of its parameters and
// columns are determined once. They are determined again when the tables have changed. Statements without parameters,
// and statements that contain secrets, are not cached.

import { expect, test } from 'vitest'
import { allRights, noRights } from '../../../engine/base/rights.js'
import type { ParsedStatement } from '../../../engine/engine.js'
import { type Dialect, nativeDialect, postgresDialect } from '../../../engine/sql/dialect.js'
import { InlineEngine } from '../../support/inline-engine.js'
import { createFaultyDisk } from '../../support/simulator/faulty-files.js'

const session = { user: 'admin', protocol: 'pg', dialect: postgresDialect, readOnly: false, rights: allRights } as const

async function opened(): Promise<InlineEngine> {
  const { files } = createFaultyDisk()
  files.makeDirectory('/db')
  files.syncDirectory('/')
  const inline = new InlineEngine({ files })
  await inline.settle()
  await inline.run('create table t (ts timestamp, s symbol, n int) timestamp(ts) partition by day')
  return inline
}

test('statements with parameters are those that the text had before, others are read anew', async () => {
  const { engine } = await opened()
  const sql = 'select n from t where s = $1'
  expect(engine.parse(sql)).toBe(engine.parse(sql))
  const literal = "select n from t where s = 'x'"
  expect(engine.parse(literal)).not.toBe(engine.parse(literal))
  expect(engine.parse(literal)).toEqual(engine.parse(literal))
  const secret = "create user u with password 'a$1'"
  expect(engine.parse(secret)).not.toBe(engine.parse(secret))
  for (let other = 0; other < 300; other++) engine.parse(`select ${other} + $1`)
  const before = engine.parse(sql)
  for (let other = 0; other < 200; other++) engine.parse(`select ${other} - $1`)
  expect(engine.parse(sql)).toBe(before)
  for (let other = 0; other < 100; other++) engine.parse(`select ${other} * $1`)
  expect(engine.parse(sql)).toBe(before)
})

test('a description is kept until the tables change, for each who asks', async () => {
  const inline = await opened()
  const { engine } = inline
  const [query] = engine.parse('select *, current_schema() from t where n < $1') as readonly [ParsedStatement]
  const [insert] = engine.parse('insert into t (ts, n) values ($1, $2)') as readonly [ParsedStatement]
  const first = engine.describe(query, session, [])
  expect(engine.describe(query, session, [])).toBe(first)
  expect(first.parameters.map(({ type }) => type.name)).toEqual(['INT'])
  expect(engine.describe(query, session, [20]).parameters.map(({ oid }) => oid)).toEqual([20])
  const names = (dialect: Dialect): string[] =>
    (engine.describe(query, { ...session, dialect }, []).columns ?? []).map(({ name }) => name)
  expect(names(nativeDialect)).not.toEqual(names(postgresDialect))
  const types = (parsed: ParsedStatement): string[] =>
    engine.describe(parsed, session, []).parameters.map(({ type }) => type.name)
  expect(types(insert)).toEqual(['TIMESTAMP', 'INT'])
  expect(() => engine.describe(insert, { ...session, rights: noRights }, [])).toThrow('the right is missing')
  expect(() => engine.describe(query, { ...session, rights: noRights }, [])).toThrow('the right is missing')
  await inline.run('alter table t alter column n type double')
  await inline.run('alter table t add column more long')
  await inline.settle()
  expect([types(query), types(insert)]).toEqual([['DOUBLE'], ['TIMESTAMP', 'DOUBLE']])
  expect(names(postgresDialect)).toHaveLength(first.columns === null ? 0 : first.columns.length + 1)
  await inline.run('drop table t')
  expect(() => engine.describe(query, session, [])).toThrow('table does not exist')
})
