// Goal: a query whose client stops reading holds little more memory than its limit for unsent results (`windowBytes`),
// however its rows are produced, and returns the same rows when the client continues.
//
// Method: formats and statements that one or several threads encode, from Parquet files, memtables and merges of both.
// The client stops reading after a few blocks, so long that the query frees the memory that it can rebuild, then
// continues, and stops once more.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Encoding, Engine } from '../../../engine/engine.js'
import { parquetDefaults } from '../../../engine/exec/encode/parquet-encoding.js'
import { runs } from '../../support/runs.js'
import { executeOptions, openTestEngine } from '../../support/test-engine.js'

const MIB = 1024 * 1024
const directory = mkdtempSync(join(tmpdir(), 'penstock-stopped-'))
const rows = 400_000
/** What a reader that stopped holds at most, while no other query runs. */
const heldBytesMax = 5 * MIB
/** Row groups of one morsel, which stay until they are written. */
const morselBytesMax = 6 * MIB
let calmBytes = Number.POSITIVE_INFINITY
let engine: Engine

beforeAll(async () => {
  engine = await openTestEngine(directory, { queryThreads: 2 })
  const columns = `('2024-01-01'::timestamp + x * 700000) ts, ('s' || (x % 7))::symbol s, x * 3 l, (x % 9) / 4.0 d,
    'a text "' || x || '"' v, x::int i`
  await engine.execute(
    `create table t as (select ${columns} from long_sequence(${rows})) timestamp(ts) partition by day`,
    executeOptions,
  )
  await engine.execute('checkpoint', executeOptions)
  await engine.execute(`insert into t select dateadd('m', 7, ts), s, l, d, v, i from t limit 3000`, executeOptions)
})

afterAll(async () => {
  await engine?.close()
  rmSync(directory, { recursive: true, force: true })
})

const csv: Encoding = { kind: 'csv', delimiter: 44, header: true }
const pg: Encoding = { kind: 'pg', binary: Array.from({ length: 6 }, () => false) } as Encoding

/** The bytes of the result; the reader stops behind so many blocks, for longer each time. */
async function read(sql: string, encoding: Encoding, stops: readonly number[], held: number[] = []): Promise<Buffer> {
  const result = await engine.execute(sql, { ...executeOptions, encoding, windowBytes: 2 * MIB })
  if (result.kind !== 'rows') throw new Error(`no rows [kind=${result.kind}]`)
  const blocks: Buffer[] = []
  for await (const block of result.blocks) {
    blocks.push(Buffer.from(block))
    if (!stops.includes(blocks.length)) continue
    await wait(1200)
    // A busy machine takes longer until what was under way has come to rest.
    for (let turn = 0; turn < 600 && engine.metrics().memory.queries.used > calmBytes; turn++) await wait(100)
    held.push(engine.metrics().memory.queries.used)
  }
  return Buffer.concat(blocks)
}

const parquet: Encoding = { ...parquetDefaults, rowGroupRows: 20_000 }

const cases: readonly (readonly [string, string, Encoding])[] = [
  ['a whole table as CSV', 't', csv],
  ['a whole table over the wire', 'select * from t', pg],
  ['a whole table as Parquet', 'select * from t', parquet],
  ['the newest rows first', 'select * from t order by ts desc', csv],
  ['filtered and computed rows', 'select ts, l + i a, d * 2 b, upper(v) c, s e, i f from t where l % 3 = 0', csv],
  ['an interval as JSON', `select l, ts, v from t where ts < '2024-01-04'`, { kind: 'ndjson' }],
  ['a whole table as Arrow', 'select * from t', { kind: 'arrow' }],
  ['filtered rows as Parquet', 'select * from t where l % 7 > 0', parquet],
  ['the newest rows first, over the wire', 'select * from t order by ts desc', pg],
]

describe('a reader that stops', () => {
  test.each(cases.slice(0, runs(cases.length, 5)))('%s', async (_, sql, encoding) => {
    const idle = engine.metrics().memory.queries.used
    const bytesMax = heldBytesMax + (encoding.kind === 'parquet' ? morselBytesMax : 0)
    calmBytes = idle + bytesMax
    const whole = await read(sql, encoding, [])
    const held: number[] = []
    const stopped = await read(sql, encoding, [3, 9], held)
    // What Arrow batches hold depends on where they are cut.
    if (encoding.kind !== 'arrow') expect(stopped.equals(whole)).toBe(true)
    else expect(Math.abs(stopped.length - whole.length)).toBeLessThan(whole.length / 50)
    expect(held.length).toBe(2)
    for (const bytes of held) expect(bytes - idle).toBeLessThanOrEqual(bytesMax)
    await expect.poll(() => engine.metrics().memory.queries.used - idle).toBeLessThan(MIB / 4)
  })
})

test('many readers that stop share little memory, and each gets all', async () => {
  const small = await openTestEngine(join(directory, 'small'), { queryThreads: 2, memoryBytes: 512 * MIB })
  try {
    const columns = `timestamp_sequence('2024-01-01', 1000000) ts, x l, x * 1.5 d, ('s' || (x % 50))::symbol s,
      'a text of the row ' || x v, x::int i, (x * 7)::timestamp t, x * 2.5 e`
    await small.execute(
      `create table t as (select ${columns} from long_sequence(300000)) timestamp(ts) partition by month`,
      executeOptions,
    )
    await small.execute('checkpoint', executeOptions)
    const open = async (encoding: Encoding) => {
      const result = await small.execute('t', { ...executeOptions, encoding, windowBytes: MIB })
      if (result.kind !== 'rows') throw new Error(`no rows [kind=${result.kind}]`)
      return result.blocks
    }
    const bytesOf = async (blocks: AsyncIterable<Uint8Array>, stopped: Promise<unknown>): Promise<number> => {
      let bytes = 0
      for await (const block of blocks) {
        if (bytes === 0) await stopped
        bytes += block.length
      }
      return bytes
    }
    const wire = { kind: 'pg', binary: Array.from({ length: 8 }, () => false) } as Encoding
    const encodings = [csv, csv, csv, csv, csv, csv, wire, wire, wire, parquet, parquet, csv]
    const whole = new Map<Encoding, number>()
    for (const encoding of new Set(encodings))
      whole.set(encoding, await bytesOf(await open(encoding), Promise.resolve()))
    const readings = await Promise.all(encodings.map(async (encoding) => bytesOf(await open(encoding), wait(1500))))
    readings.forEach((bytes, index) => {
      const encoding = encodings[index] as Encoding
      // Row groups are cut by the memory that is left.
      if (encoding.kind !== 'parquet') expect(bytes).toBe(whole.get(encoding))
      else expect(bytes).toBeGreaterThan(MIB)
    })
  } finally {
    await small.close()
  }
})
