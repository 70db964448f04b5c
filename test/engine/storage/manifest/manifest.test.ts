// Goal: the manifest (the log of all tables' schemas and data files) is restored after any sequence of records, reopens
// and checkpoints; a torn tail is ignored, damage is reported, and the format on disk does not change.

import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { CorruptionError, FileError } from '../../../../engine/base/errors.js'
import { nodeFiles } from '../../../../engine/base/files.js'
import { silentLog } from '../../../../engine/base/log.js'
import { Manifest, type ManifestRecord } from '../../../../engine/storage/manifest/manifest.js'
import { applyRecord, emptyManifestState } from '../../../../engine/storage/manifest/manifest-format.js'
import type { PartDescriptor, TableSchema } from '../../../../engine/storage/schema/schema.js'
import { dataType } from '../../../../engine/types/column-types.js'
import { createRandom } from '../../../support/random.js'
import { atOperation, createFaultyDisk, type Fault, SimulatedCrash } from '../../../support/simulator/faulty-files.js'

let root: string
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'manifest-'))
})
afterEach(() => rmSync(root, { recursive: true }))

function open(checkpointBytesMin?: number): Manifest {
  const options = { files: nodeFiles(), directory: join(root, 'm'), log: silentLog }
  return Manifest.open(checkpointBytesMin === undefined ? options : { ...options, checkpointBytesMin })
}

function currentFile(): string {
  return join(root, 'm', readdirSync(join(root, 'm')).at(-1) ?? '')
}

function schemaOf(id: number, name: string): TableSchema {
  return {
    id,
    name,
    version: 1,
    columns: [{ id: 0, name: 'ts', type: dataType('TIMESTAMP'), dropped: false }],
    timestampId: 0,
    partitionBy: 'DAY',
    bypassWal: false,
    dedupKeys: [],
    ttl: null,
    maxUncommittedRows: 500_000,
    o3MaxLagMicros: 0,
    createdMicros: 1,
  }
}

function partOf(id: number, txn: number): PartDescriptor {
  const file = `t/${id}.parquet`
  const [minTs, maxTs] = [-(2n ** 63n) + 1n, 2n ** 63n - 1n]
  return { id, file, partition: 'default', rows: 9, bytes: 8, minTs, maxTs, minTxn: txn, maxTxn: txn, columnIds: [0] }
}

test('what was committed is there after a reopen, 64-bit bounds included', () => {
  const manifest = open()
  manifest.commit([
    { kind: 'schema', schema: schemaOf(1, 'trades') },
    { kind: 'ids', table: 2, part: 8 },
  ])
  manifest.commit([{ kind: 'parts', tableId: 1, added: [partOf(7, 3), partOf(5, 1)], removed: [], flushedTxn: 3 }])
  manifest.commit([{ kind: 'log', lsn: 2 ** 40 }])
  manifest.close()
  const again = open()
  expect(again.tables.get(1)?.parts).toEqual([partOf(5, 1), partOf(7, 3)])
  expect(again.tables.get(1)?.flushedTxn).toBe(3)
  expect(again.ids).toEqual({ table: 2, part: 8, generation: 1 })
  expect(again.lsn).toBe(2 ** 40)
  again.close()
})

const recordArbitrary = fc.array(
  fc.record({ table: fc.nat(4), action: fc.constantFrom('schema', 'add', 'merge', 'drop', 'reopen', 'checkpoint') }),
  { maxLength: 40 },
)

test('any sequence of changes, reopens and checkpoints gives the state of a plain model', () => {
  fc.assert(
    fc.property(recordArbitrary, (steps) => {
      rmSync(join(root, 'm'), { recursive: true, force: true })
      let manifest = open(600)
      const model = emptyManifestState()
      let nextId = 1
      for (const { table, action } of steps) {
        const known = model.tables.get(table)
        const records: ManifestRecord[] = []
        if (action === 'schema') records.push({ kind: 'schema', schema: schemaOf(table, `t${nextId++}`) })
        if (action === 'drop') records.push({ kind: 'drop', tableId: table })
        if (action === 'add' && known) {
          records.push({ kind: 'parts', tableId: table, added: [partOf(nextId, nextId++)], removed: [] })
        }
        if (action === 'merge' && known) {
          const removed = known.parts.slice(0, 2).map((part) => part.id)
          records.push({ kind: 'parts', tableId: table, added: [partOf(nextId, nextId++)], removed })
        }
        if (records.length > 0) manifest.commit(records)
        for (const record of records) applyRecord(model, record)
        if (action === 'checkpoint') manifest.checkpoint()
        if (action === 'reopen') {
          manifest.close()
          manifest = open(600)
        }
        expect([...manifest.tables].sort()).toEqual([...model.tables].sort())
      }
      manifest.close()
    }),
    { numRuns: 40 },
  )
})

test('a torn tail of any length is cut off and the manifest goes on', () => {
  const manifest = open()
  manifest.commit([{ kind: 'schema', schema: schemaOf(1, 'a') }])
  manifest.commit([{ kind: 'log', lsn: 1 }])
  manifest.append([{ kind: 'log', lsn: 2 }])
  manifest.close()
  const whole = readFileSync(currentFile())
  const first = currentFile()
  for (let cut = 1; cut < 40; cut++) {
    rmSync(currentFile(), { force: true })
    writeFileSync(first, whole)
    truncateSync(first, whole.length - cut)
    const again = open()
    expect(again.lsn).toBe(1)
    again.commit([{ kind: 'log', lsn: 3 }])
    again.close()
    expect(open().lsn).toBe(3)
  }
})

test('a garbled byte in front of a durable frame is damage', () => {
  const manifest = open()
  manifest.commit([{ kind: 'schema', schema: schemaOf(1, 'a') }])
  const bad = readFileSync(currentFile()).length - 20
  manifest.commit([{ kind: 'log', lsn: 1 }])
  manifest.commit([{ kind: 'log', lsn: 2 }])
  manifest.close()
  const bytes = readFileSync(currentFile())
  bytes.writeUInt8(bytes.readUInt8(bad) ^ 1, bad)
  writeFileSync(currentFile(), bytes)
  expect(() => open()).toThrow(CorruptionError)
})

test('an unfinished checkpoint is removed, its predecessor counts', () => {
  const manifest = open()
  manifest.commit([{ kind: 'log', lsn: 5 }])
  manifest.close()
  const torn = join(root, 'm', 'manifest-0000000002.log')
  appendFileSync(torn, readFileSync(currentFile()).subarray(0, 60))
  expect(open().lsn).toBe(5)
  expect(readdirSync(join(root, 'm'))).toEqual(['manifest-0000000003.log'])
})

test.each(['7/2024-01-01', 'symbols/7-0.symbols', 'wal/0000000001.wal'])(
  'a lost manifest of data is no empty database: %s',
  (path) => {
    mkdirSync(join(root, path), { recursive: true })
    expect(() => open()).toThrow(/^there is no readable manifest, but there is data/)
    // Nothing was begun that a second start would take for the manifest.
    expect(() => open()).toThrow(/^there is no readable manifest, but there is data/)
    rmSync(join(root, path.split('/')[0] ?? ''), { recursive: true })
    open().close()
  },
)

test('a first manifest whose header has changed is damage, not an empty database', () => {
  const manifest = open()
  manifest.commit([{ kind: 'schema', schema: schemaOf(7, 'trades') }])
  manifest.close()
  mkdirSync(join(root, '7'))
  const bytes = readFileSync(currentFile())
  bytes.writeUInt8(0, 0)
  writeFileSync(currentFile(), bytes)
  expect(() => open()).toThrow(CorruptionError)
})

test('a checkpoint that is unreadable and has no predecessor is damage, not an empty database', () => {
  const manifest = open()
  manifest.commit([{ kind: 'log', lsn: 5 }])
  manifest.checkpoint()
  manifest.close()
  const bytes = readFileSync(currentFile())
  bytes.writeUInt8(0, 24)
  writeFileSync(currentFile(), bytes)
  expect(() => open()).toThrow(CorruptionError)
})

test('the bytes on disk', () => {
  const manifest = open()
  manifest.commit([{ kind: 'log', lsn: 300 }])
  manifest.close()
  // Zeros up to the next block are left out.
  const bytes = readFileSync(currentFile())
    .toString('hex')
    .replace(/(00){256,}/, '..')
  expect(bytes).toMatchInlineSnapshot(
    `"504d4631020000000100000000000000504d465268000000e0b73f4c0200000010000000000000005b7b226b696e64223a22696473222c227461626c65223a312c2270617274223a312c2267656e65726174696f6e223a317d2c7b226b696e64223a226c6f67222c226c736e223a307d2c7b226b696e64223a227573657273222c226578697374223a66616c73657d5d..504d46521a000000bbb377d10300000090000000000000005b7b226b696e64223a226c6f67222c226c736e223a3330307d5d000000000000"`,
  )
})

test('after a crash at any operation everything committed is there, and nothing is there by half', () => {
  for (let seed = 1; seed <= 400; seed++) {
    const random = createRandom(seed)
    const disk = createFaultyDisk(seed)
    const openFaulty = () =>
      Manifest.open({ files: disk.files, directory: 'db/manifest', log: silentLog, checkpointBytesMin: 9000 })
    disk.files.makeDirectory('db')
    disk.files.syncDirectory('.')
    let txn = 0
    let attempted = 0
    for (let round = 0; round < 4; round++) {
      const fault: Fault = random.chance(0.5) ? { kind: 'crash' } : { kind: 'error', code: 'EIO' }
      disk.inject(atOperation(disk.operations + 1 + random.below(60), fault))
      try {
        const manifest = openFaulty()
        for (let i = 0; i < 12; i++) {
          attempted = txn + 1
          const records: ManifestRecord[] = [
            { kind: 'schema', schema: schemaOf(1, `t${attempted}`) },
            { kind: 'parts', tableId: 1, added: [partOf(attempted, attempted)], removed: [], flushedTxn: attempted },
          ]
          manifest.commit(records)
          txn = attempted
        }
      } catch (error) {
        // A process that met an error opens again, as the writer does; the machine may stop soon after.
        if (!(error instanceof SimulatedCrash) && !(error instanceof FileError)) throw error
      }
      disk.inject(undefined)
      if (fault.kind === 'crash' || random.chance(0.5)) disk.crash(seed * 31 + round)
      else disk.kill()
      const after = openFaulty()
      const table = after.tables.get(1)
      const found = table?.flushedTxn ?? 0
      expect(found === txn || found === attempted, `seed ${seed}: ${found} of ${txn} or ${attempted}`).toBe(true)
      expect(table?.parts.map((part) => part.id) ?? []).toEqual(Array.from({ length: found }, (_, i) => i + 1))
      if (found > 0) expect(table?.schema.name).toBe(`t${found}`)
      txn = found
      after.close()
      if (random.chance(0.5)) disk.crash(seed)
    }
  }
})
