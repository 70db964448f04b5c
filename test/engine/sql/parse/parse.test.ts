// Goal: the shape of the syntax tree, clause by clause: operator precedence, literals, queries, statements, positions.

import { describe, expect, it } from 'vitest'
import type { Expression, Query, Select, Statement } from '../../../../engine/sql/ast/ast.js'
import { parseScript, parseStatement } from '../../../../engine/sql/parse/parse.js'
import { shape } from './shape.js'

function query(sql: string): Query {
  const statement = parseStatement(sql)
  if (statement.kind !== 'query') throw new Error(`no query but ${statement.kind}: ${sql}`)
  return statement
}

function select(sql: string): Select {
  const { body } = query(sql)
  if (body.kind !== 'select') throw new Error(`no select but ${body.kind}: ${sql}`)
  return body
}

function expression(sql: string): Expression {
  const item = select(`select ${sql}`).items[0]
  if (item === undefined) throw new Error('no item')
  return item.expression
}

function statement<Kind extends Statement['kind']>(kind: Kind, sql: string): Extract<Statement, { kind: Kind }> {
  const parsed = parseStatement(sql)
  if (parsed.kind !== kind) throw new Error(`no ${kind} but ${parsed.kind}: ${sql}`)
  return parsed as Extract<Statement, { kind: Kind }>
}

describe('expressions', () => {
  it.each([
    ['a or b and not c = d', '(or a (and b (not (= c d))))'],
    ['a = b < c', '(= a (< b c))'],
    ['a - b - c * d', '(- (- a b) (* c d))'],
    ['-a::int + 1', '(+ (- (cast a int)) 1)'],
    ['a + b between 1 and 2 and c', '(and (between (+ a b) 1 2) c)'],
    ['not a in (1, 2) or b', '(or (not (in a 1 2)) b)'],
    ['a not like b || c', '(not like a (|| b c))'],
    ['a | b ^ c & d << 1', '(| a (^ b (& c (<< d 1))))'],
    ['a is not null = true', '(= (is not null a) true)'],
    ['a <> any(b)', '(<> any a b)'],
    ['a[1, 2:3]', '([] a 1 2:3)'],
    ['a[1:n]', '([] a 1:n)'],
    ['(f(x)).n', '(. (f x) n)'],
    ['extract(hour from ts)', "(extract 'hour' ts)"],
    ['substring(s from 2 for 3)', '(substring s 2 3)'],
    ["a operator(pg_catalog.~) 'x'", "(~ a 'x')"],
    ['case a when 1 then 2 else 3 end', '(case a 1 2 3)'],
    ['sum(distinct a) filter (where b)', '(sum distinct a filter b)'],
    ['array[[1, 2], [3]]', '(array (array 1 2) (array 3))'],
  ])('%s', (sql, expected) => expect(shape(expression(sql))).toBe(expected))

  it('reads literals', () => {
    expect(expression('1_000L')).toMatchObject({ kind: 'integer', digits: '1000', long: true, text: '1_000L' })
    expect(expression('9223372036854775808')).toMatchObject({ kind: 'integer', digits: '9223372036854775808' })
    expect(expression('1.5e3f')).toMatchObject({ kind: 'float', value: 1500, single: true })
    expect(expression('1.50m')).toMatchObject({ kind: 'decimal', digits: '1.50' })
    expect(expression('0xFF')).toMatchObject({ kind: 'hex', digits: 'FF' })
    expect(expression('#u33/12')).toMatchObject({ kind: 'geohash', digits: 'u33', bits: 12, binary: false })
    expect(expression('##1010')).toMatchObject({ kind: 'geohash', digits: '1010', bits: 4, binary: true })
    expect(expression("'it''s'")).toMatchObject({ kind: 'string', value: "it's" })
    expect(expression("E'a\\n\\x41\\''")).toMatchObject({ kind: 'string', value: "a\nA'" })
    expect(expression('$12')).toMatchObject({ kind: 'parameter', index: 12 })
    expect(expression(':name')).toMatchObject({ kind: 'parameter', index: 0, name: 'name' })
  })

  it('puts positions on operators and names', () => {
    expect(expression('a + f(b)')).toMatchObject({
      position: 9,
      left: { position: 7 },
      right: { position: 11, args: [{ position: 13 }] },
    })
    expect(expression('a not in (1)')).toMatchObject({ position: 13 })
    expect(expression('a :: int')).toMatchObject({ position: 9, type: { position: 12 } })
  })

  it('balances long chains of AND and OR', () => {
    const sql = Array.from({ length: 2_000 }, (_, i) => `a = ${i}`).join(' or ')
    expect(height(expression(sql))).toBeLessThan(20)
  })

  it('reads window functions', () => {
    const call = expression(
      'sum(a) ignore nulls over (partition by b order by c desc nulls last rows between 1 preceding and current row exclude ties)',
    )
    expect(call).toMatchObject({
      ignoreNulls: true,
      over: {
        partitionBy: [{ path: ['b'] }],
        orderBy: [{ descending: true, nulls: 'last' }],
        frame: { mode: 'rows', start: { kind: 'preceding' }, end: { kind: 'current row' }, exclude: 'ties' },
      },
    })
    expect(expression('sum(a) over (range 10 minutes preceding)')).toMatchObject({
      over: { frame: { start: { unit: 'm' } } },
    })
  })
})

function height(node: Expression): number {
  return node.kind === 'binary' ? 1 + Math.max(height(node.left), height(node.right)) : 1
}

describe('queries', () => {
  it('reads implicit selects', () => {
    expect(query('trades limit -5')).toMatchObject({
      body: { implicit: true, from: { table: { name: 'trades' } } },
      limit: { high: null },
    })
    expect(select('from "db"."public"."t"').from).toMatchObject({ table: { schema: null, name: 't', quoted: true } })
    expect(select('(select 1 a) where a > 0')).toMatchObject({ implicit: true, from: { kind: 'query source' } })
    expect(select("'a-b'").from).toMatchObject({ table: { name: 'a-b' } })
  })

  it('reads joins', () => {
    const { joins } = select('select * from a, b left join c on a.x = c.x asof join d on (s, t) tolerance 10s')
    expect(joins).toMatchObject([
      { kind: 'cross' },
      { kind: 'left', on: { operator: '=' } },
      {
        kind: 'asof',
        on: null,
        using: [{ name: 's' }, { name: 't' }],
        tolerance: { count: { digits: '10' }, unit: 's' },
      },
    ])
    expect(select('select * from a join b on (x) = 1').joins).toMatchObject([{ on: { operator: '=' }, using: [] }])
  })

  it('reads the clauses of time series', () => {
    const { sampleBy } = select(
      "select avg(a) from t sample by 5m from '2024' to '2025' fill(prev, 1.5) align to calendar time zone 'UTC' with offset '01:00'",
    )
    expect(sampleBy).toMatchObject({
      interval: { unit: 'm' },
      from: { value: '2024' },
      fill: [{ kind: 'prev' }, { kind: 'value' }],
      align: { kind: 'calendar', timeZone: { value: 'UTC' }, offset: { value: '01:00' } },
    })
    expect(select('t where a latest on ts partition by b, c').latestOn).toMatchObject({
      partitionBy: [{}, {}],
    })
    expect(select('select a from t latest by b where c').latestOn).toMatchObject({ timestamp: null })
  })

  it('applies ORDER BY and LIMIT to the whole set operation', () => {
    const whole = query('select 1 union all select 2 except select 3 order by 1 limit 2, 5')
    expect(whole).toMatchObject({
      body: { operation: 'except', left: { operation: 'union', all: true } },
      orderBy: [{}],
      limit: { low: {}, high: {} },
    })
    expect(query('select 1 limit 1 union select 2').body).toMatchObject({
      left: { kind: 'nested', query: { limit: {} } },
    })
  })

  it('reads DECLARE, WITH and sub-queries', () => {
    expect(query('declare @x := 1, @y := @x with a as (select @x) select * from a')).toMatchObject({
      declarations: [{ name: 'x' }, { name: 'y' }],
      commonTables: [{ name: 'a' }],
    })
    expect(expression('((select 1) union (select 2))')).toMatchObject({
      kind: 'subquery',
      query: { body: { operation: 'union' } },
    })
    expect(expression('((select 1) + 2)')).toMatchObject({ operator: '+', left: { kind: 'subquery' } })
  })
})

describe('statements', () => {
  it('reads CREATE TABLE', () => {
    const sql = `create table if not exists "t" (ts timestamp(6) not null, s symbol capacity 16 nocache, u symbol index capacity 32, g geohash(8c), d decimal(10,2), a double[][], v varchar(20) default 'x'), index(s)
      timestamp(ts) partition by day ttl 2 weeks wal with maxUncommittedRows=10, o3MaxLag=1s dedup upsert keys(ts, s)`
    const created = statement('create table', sql)
    expect(created).toMatchObject({
      ifNotExists: true,
      timestamp: { name: 'ts' },
      partitionBy: { unit: 'day' },
      ttl: { count: 2, unit: 'week' },
      wal: { enabled: true },
      dedupKeys: [{ name: 'ts' }, { name: 's' }],
      options: [{ name: 'maxUncommittedRows' }, { name: 'o3MaxLag', value: '1s' }],
      indexes: [{ column: { name: 's' } }],
    })
    expect(created.source).toMatchObject({
      columns: [
        { name: 'ts', notNull: true, type: { parameters: [6] } },
        { symbol: { capacity: { value: 16 }, cache: false } },
        { index: { capacity: 32 } },
        { type: { name: 'geohash', parameters: [8], unit: 'c' } },
        { type: { name: 'decimal', parameters: [10, 2] } },
        { type: { name: 'double', dimensions: 2 } },
        { defaultValue: { expression: { value: 'x' }, text: "'x'" } },
      ],
    })
  })

  it('reads changes of rows', () => {
    expect(statement('insert', 'insert batch 5 o3MaxLag 1s into t (a, b) values (1, $1), (2, null)')).toMatchObject({
      columns: [{ name: 'a' }, { name: 'b' }],
      source: { rows: [{ values: [{}, { index: 1 }] }, { values: [{}, { kind: 'null' }] }] },
    })
    expect(statement('update', 'update t a set x = b.y from u b where a.k = b.k')).toMatchObject({
      alias: { name: 'a' },
      from: { alias: { name: 'b' } },
    })
    expect(statement('delete', "delete from t where ts < '2020'").where).not.toBeNull()
  })

  it.each([
    [
      'alter table t add column if not exists a int, b symbol',
      { kind: 'add columns', columns: [{ ifNotExists: true }, { ifNotExists: true }] },
    ],
    ['alter table t drop column a, b', { kind: 'drop columns', columns: [{ name: 'a' }, { name: 'b' }] }],
    ['alter table t alter column a type long', { kind: 'change type' }],
    ["alter table t drop partition list '2024', '2025'", { kind: 'partitions', operation: 'drop' }],
    ['alter table t detach partition where ts < 5', { operation: 'detach', partitions: { list: [] } }],
    ['alter table t set param o3MaxLag = 5s', { kind: 'set parameter', option: { name: 'o3MaxLag' } }],
    ['alter table t resume wal from txn 5', { kind: 'resume wal' }],
  ])('%s', (sql, action) => expect(statement('alter table', sql).actions).toMatchObject([action]))

  it.each([
    ['add if not exists a int, add b symbol', ['add columns', 'add columns']],
    ['add a int, b long, add c int', ['add columns', 'add columns']],
    ['add a int, drop int, alter long', ['add columns']],
    ['add (a int, b long), drop constraint c', ['add columns', 'drop constraint']],
    ['drop a, drop "b", drop c cascade', ['drop columns', 'drop columns', 'drop columns']],
    ['drop column a, drop, alter', ['drop columns']],
    ['alter column a type long using a::long, alter column a drop not null', ['change type', 'set nullable']],
    ['alter column a set default 1, add constraint c unique (a)', ['set default', 'add key']],
  ])('tells actions from names: %s', (actions, kinds) =>
    expect(statement('alter table', `alter table t ${actions}`).actions.map(({ kind }) => kind)).toEqual(kinds),
  )

  it('reads statements of sessions', () => {
    expect(statement('set', "set time zone 'UTC'")).toMatchObject({ name: 'time zone', values: ['UTC'] })
    expect(statement('set', 'SET SESSION search_path TO a, "B"')).toMatchObject({
      name: 'search_path',
      values: ['a', 'B'],
    })
    expect(statement('transaction', 'rollback to savepoint x')).toMatchObject({ action: 'rollback to', name: 'x' })
    expect(statement('fetch', 'fetch forward 100 from c')).toMatchObject({ rows: 100, name: 'c' })
    expect(statement('declare cursor', 'declare c no scroll cursor for select 1')).toMatchObject({ scroll: false })
    expect(statement('copy', "copy t (a) from stdin with (format csv, header, delimiter ';')")).toMatchObject({
      target: { kind: 'connection' },
      options: [
        { name: 'format', value: 'csv' },
        { name: 'header', value: 'true' },
        { name: 'delimiter', value: ';' },
      ],
    })
    expect(statement('explain', 'explain (analyze, format json) select 1')).toMatchObject({
      analyze: true,
      format: 'json',
    })
  })

  it('keeps the text of a view', () => {
    expect(statement('create view', 'create view v as (select a from t limit 5 /* all */ )').queryText).toBe(
      'select a from t limit 5',
    )
  })

  it('divides scripts', () => {
    const text = '; select 1 ;; -- none\n begin; select \';\' "a;b"'
    expect(parseScript(text).map(({ start, end }) => text.slice(start, end))).toEqual([
      'select 1',
      'begin',
      'select \';\' "a;b"',
    ])
    expect(parseStatement(' /* */ ; ')).toEqual({ kind: 'empty', position: 0 })
  })
})
