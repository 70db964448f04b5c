// Goal: with the option `widen.numbers` of the Kafka connector, a column that was created for integers becomes DOUBLE
// when fractions arrive. Its earlier values stay, and the change survives a restart; columns of other types, and
// columns that cannot be changed, stay. Method: a real engine stores the lines that the connector would send, and its
// rejections are passed to widenColumns().

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { widenColumns } from '../../../connectors/kafka/widen-columns.js'
import type { Engine, Receipt } from '../../../engine/engine.js'
import { openTestEngine, rowsFrom } from '../../support/test-engine.js'

let directory: string
let engine: Engine
let logged: string[]

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'penstock-test-'))
  engine = await openTestEngine(directory)
  logged = []
})

afterEach(async () => {
  await engine.close()
  rmSync(directory, { recursive: true })
})

function send(lines: string): Promise<Receipt> {
  const blocks = [Buffer.from(lines)]
  return engine.lines({ blocks, precision: 'n', connectionId: 0, atomic: true, skipBadLines: true }).receipt
}

async function widen({ rejects }: Receipt) {
  return widenColumns(rejects, { engine, log: (level, _logger, message) => logged.push(`${level} ${message}`) })
}

async function rows(sql: string): Promise<unknown[]> {
  return rowsFrom(engine, sql)
}

test('a column of whole numbers becomes DOUBLE, and stays it', async () => {
  await send('a\\ t v=9007199254740991i,n=1i 1000\n')
  const receipt = await send('a\\ t v=2i,n=1.5 2000\na\\ t v=2.5,n=2i 3000\na\\ t v=3.5 4000\n')
  expect(receipt.error?.name).toBe('RowError')
  expect(await widen(receipt)).toBe('widened')
  expect((await send('a\\ t v=2i,n=1.5 2000\na\\ t v=2.5,n=2i 3000\na\\ t v=3.5 4000\n')).error).toBeNull()
  const expected = [
    [9007199254740991, 1],
    [2, 1.5],
    [2.5, 2],
    [3.5, null],
  ]
  expect(await rows('select v, n from "a t"')).toEqual(expected)
  expect(logged.map((line) => line.slice(0, 1))).toEqual(['I', 'I'])
  await engine.close()
  engine = await openTestEngine(directory)
  expect(await rows('select v, n from "a t"')).toEqual(expected)
  expect(await rows(`select "type" from table_columns('a t') where "column" in ('v', 'n')`)).toEqual([
    ['DOUBLE'],
    ['DOUBLE'],
  ])
})

test('narrow types and names in another case', async () => {
  await rows('create table t (b byte, "S" short, i int, ts timestamp) timestamp(ts) partition by day')
  expect(await widen(await send('t b=1.5 1000\nt s=1.5 1000\nt I=1.5 1000\n'))).toBe('widened')
  expect((await send('t b=1.5,s=2.5,I=3.5 1000\n')).error).toBeNull()
  expect(await rows('select b, "S", i from t')).toEqual([[1.5, 2.5, 3.5]])
})

test('rows that create the column in the same request are to be stored first', async () => {
  const receipt = await send('t v=1i 1000\nt v=2i 2000\nt v=2.5 3000\n')
  expect(await widen(receipt)).toBe(3)
  await send('t v=1i 1000\nt v=2i 2000\n')
  expect(await widen(await send('t v=2.5 3000\n'))).toBe('widened')
  expect((await send('t v=2.5 3000\n')).error).toBeNull()
  expect(await rows('select v from t')).toEqual([[1], [2], [2.5]])
})

test('what cannot be widened: other types, other reasons', async () => {
  await rows('create table t (v long, k uuid, ts timestamp) timestamp(ts) partition by day')
  expect(await widen(await send('t k=1.5 1000\nt v="text" 1000\nt v=1i -5\nt v=\n bad\n'))).toBe('none')
  expect(logged).toEqual([])
})

test('a change that the server refuses is reported, and the lines are bad', async () => {
  const receipt = await send('t v=1i 1000\n').then(() => send('t v=1.5 1000\n'))
  const execute = () => Promise.reject(new Error('not now'))
  const outcome = await widenColumns(receipt.rejects, {
    engine: { table: (name) => engine.table(name), execute },
    log: (level, _logger, message) => logged.push(`${level} ${message}`),
  })
  expect(outcome).toBe('none')
  expect(logged).toEqual(['W a column cannot be widened: ALTER TABLE t ALTER COLUMN v TYPE DOUBLE: not now'])
})
