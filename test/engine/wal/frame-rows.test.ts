// Goal: the codec of log frames (records) with rows encodes and decodes a transaction without loss, for every column
// type and NULL, wherever its values are in memory; it rejects a truncated or changed payload with CorruptionError and
// never reads beyond its end. Method: properties over random transactions.

import fc from 'fast-check'
import { expect, test } from 'vitest'
import { CorruptionError } from '../../../engine/base/errors.js'
import {
  type ColumnType,
  columnTypes,
  type DataType,
  dataType,
  isVariable,
  widthOf,
} from '../../../engine/types/column-types.js'
import {
  type ColumnValues,
  decodeRows,
  describePayload,
  encodeJson,
  encodeRows,
  type RowsTransaction,
  type TableRows,
  type ValuesPlace,
} from '../../../engine/wal/frame-rows.js'
import {
  decodeKafkaPosition,
  encodeKafkaPosition,
  noSourcePosition,
  sourcePositionKinds,
} from '../../../engine/wal/source-position.js'
import { frameKinds } from '../../../engine/wal/types.js'
import { createRandom, type Random } from '../../support/random.js'

const storedTypes = (Object.keys(columnTypes) as ColumnType[]).filter((name) => name !== 'INTERVAL')

function typeOf(name: ColumnType, random: Random): DataType {
  if (name === 'GEOHASH') return dataType(name, random.between(1, 60))
  if (name === 'DECIMAL') return dataType(name, random.between(1, 76), 1)
  return name === 'ARRAY' ? dataType(name, random.between(1, 32)) : dataType(name)
}

function randomBytes(random: Random, bytes: number): Uint8Array {
  return random.fill(new Uint8Array(bytes))
}

function randomTable(random: Random): { table: TableRows; strings: Map<number, (Uint8Array | null)[]> } {
  const rowCount = random.pick([0, 1, 2, 7, 300])
  const strings = new Map<number, (Uint8Array | null)[]>()
  const columns = storedTypes
    .filter(() => random.chance(0.6))
    .map((name, id) => {
      const type = typeOf(name, random)
      if (!isVariable(type)) return { id, type, values: fixedValues(random, rowCount * widthOf(type), widthOf(type)) }
      const column = Array.from({ length: rowCount }, () => randomText(random))
      strings.set(id, column)
      return { id, type, values: entriesValues(random, column) }
    })
  const symbols = [
    { columnId: 2, firstId: random.below(1000), count: 2, lengths: int32s([3, 0]), bytes: randomBytes(random, 3) },
  ]
  const numbers = {
    tableId: random.below(2 ** 32),
    structureVersion: random.below(2 ** 32),
    transaction: random.below(2 ** 50),
  }
  const table = { ...numbers, rowCount, minTimestamp: -(2n ** 63n), maxTimestamp: 2n ** 63n - 1n, symbols, columns }
  return { table, strings }
}

function randomText(random: Random): Uint8Array | null {
  return random.chance(0.2) ? null : randomBytes(random, random.pick([0, 1, 5, 40, 3000]))
}

/** One piece or two, given as bytes or as places. */
function fixedValues(random: Random, bytes: number, width: number): ColumnValues {
  const data = randomBytes(random, bytes)
  if (random.chance(0.5)) return { kind: 'places', places: placesOf(random, 0, bytes / width, width), memory: data }
  const cut = width * random.below(bytes / width + 1)
  return { kind: 'fixed', chunks: random.chance(0.5) ? [data] : [data.subarray(0, cut), data.subarray(cut)] }
}

/** Strings in shared memory, next to each other or with gaps, before their entries in one run or two. */
function entriesValues(random: Random, strings: readonly (Uint8Array | null)[]): ColumnValues {
  const total = strings.reduce((sum, text) => sum + (text?.length ?? 0) + 8, 8)
  const entriesAt = Math.ceil(total / 8) * 8
  const memory = new Uint8Array(new SharedArrayBuffer(entriesAt + strings.length * 8))
  const entries = new DataView(memory.buffer, entriesAt)
  let at = random.below(8)
  for (const [row, text] of strings.entries()) {
    entries.setUint32(row * 8, text === null ? 0 : at, true)
    entries.setInt32(row * 8 + 4, text?.length ?? -1, true)
    if (text !== null) memory.set(text, at)
    at += (text?.length ?? 0) + (random.chance(0.3) ? random.below(8) : 0)
  }
  return { kind: 'places', places: placesOf(random, entriesAt, strings.length, 8), memory }
}

/** One run of values or two. */
function placesOf(random: Random, address: number, count: number, width: number): ValuesPlace[] {
  const cut = random.below(count + 1)
  return [
    { address, filled: cut },
    { address: address + cut * width, filled: count - cut },
  ]
}

function int32s(values: number[]): Uint8Array {
  return new Uint8Array(new Int32Array(values).buffer)
}

/** What decoding must yield: everything in one piece, texts packed. */
function decodedForm(table: TableRows, strings: Map<number, (Uint8Array | null)[]>): TableRows {
  const columns = table.columns.map((column) => {
    const column_ = strings.get(column.id)
    const { values, type } = column
    if (values.kind === 'fixed') return { ...column, values: { ...values, chunks: [concat(values.chunks)] } }
    if (values.kind === 'places' && !isVariable(type)) {
      return { ...column, values: { kind: 'fixed' as const, chunks: [values.memory] } }
    }
    const lengths = int32s((column_ ?? []).map((text) => text?.length ?? -1))
    return {
      ...column,
      values: {
        kind: 'packed' as const,
        lengths,
        bytes: concat((column_ ?? []).map((text) => text ?? new Uint8Array(0))),
      },
    }
  })
  return { ...table, columns }
}

function concat(chunks: readonly Uint8Array[]): Uint8Array {
  return new Uint8Array(Buffer.concat(chunks))
}

/** As text: comparing byte arrays element by element took a minute. */
function plain(value: unknown): string {
  return JSON.stringify(value, (_key, part: unknown) => {
    if (part instanceof Uint8Array) return Buffer.from(part).toString('latin1')
    if (typeof part !== 'object' || part === null || Array.isArray(part))
      return typeof part === 'bigint' ? `${part}n` : part
    return Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)))
  })
}

const seeds = fc.integer({ min: 0, max: 2 ** 31 })

test('what is encoded is decoded', () => {
  fc.assert(
    fc.property(seeds, (seed) => {
      const random = createRandom(seed)
      const tables = Array.from({ length: random.below(4) }, () => randomTable(random))
      const ddl = random.chance(0.5) ? [] : [{ create: 'tafel ✓', id: seed }, { add: [1, null] }]
      const sourcePosition = random.pick([
        noSourcePosition,
        encodeKafkaPosition({ connector: '', topic: 'tägliches', partition: -1, offset: 2 ** 52 }),
      ])
      const payload = concat(encodeRows({ sourcePosition, ddl, tables: tables.map(({ table }) => table) }))
      const expected = { sourcePosition, ddl, tables: tables.map(({ table, strings }) => decodedForm(table, strings)) }
      expect(plain(decodeRows(payload))).toBe(plain(expected))
    }),
    { numRuns: 150 },
  )
})

test('decoded transactions can be encoded again, to the same bytes', () => {
  fc.assert(
    fc.property(seeds, (seed) => {
      const payload = concat(
        encodeRows({ sourcePosition: noSourcePosition, ddl: [], tables: [randomTable(createRandom(seed)).table] }),
      )
      expect(Buffer.compare(concat(encodeRows(decodeRows(payload))), payload)).toBe(0)
    }),
    { numRuns: 50 },
  )
})

test('columns begin at multiples of 8 bytes of the payload', () => {
  const payload = concat(
    encodeRows({ sourcePosition: noSourcePosition, ddl: [{}], tables: [randomTable(createRandom(5)).table] }),
  )
  for (const { values } of decodeRows(payload).tables[0]?.columns ?? []) {
    const start = values.kind === 'fixed' ? values.chunks[0] : values.kind === 'packed' ? values.bytes : undefined
    expect((start?.byteOffset ?? 1) % 8).toBe(0)
  }
})

test('fixed columns are not copied', () => {
  const data = new Uint8Array(new SharedArrayBuffer(8000))
  const column = { id: 1, type: dataType('DOUBLE'), values: { kind: 'fixed' as const, chunks: [data] } }
  const chunks = encodeRows({ ...smallTransaction(), tables: [{ ...smallTable(), rowCount: 1000, columns: [column] }] })
  expect(chunks).toContain(data)
})

test('a payload that is cut or spoilt is refused', () => {
  const payload = concat(encodeRows({ ...smallTransaction(), tables: [randomTable(createRandom(8)).table] }))
  fc.assert(
    fc.property(fc.nat(payload.length - 1), fc.nat(255), (at, flip) => {
      expect(() => decodeRows(payload.subarray(0, at))).toThrow(CorruptionError)
      const spoilt = payload.slice()
      spoilt[at] = spoilt[at]! ^ flip
      expect(refusalOf(() => decodeRows(spoilt))).toBeUndefined()
      expect(describePayload(frameKinds.rows, spoilt)).toContain('rows')
    }),
  )
})

/** Undefined when it works or fails as it should. */
function refusalOf(work: () => unknown): unknown {
  try {
    work()
    return undefined
  } catch (error) {
    return error instanceof CorruptionError ? undefined : error
  }
}

function smallTable(): TableRows {
  const numbers = { tableId: 3, structureVersion: 1, transaction: 17, rowCount: 0 }
  return { ...numbers, minTimestamp: 0n, maxTimestamp: 0n, symbols: [], columns: [] }
}

function smallTransaction(): RowsTransaction {
  return {
    sourcePosition: encodeKafkaPosition({ connector: '', topic: 'ticks', partition: 3, offset: 77 }),
    ddl: [],
    tables: [smallTable()],
  }
}

test('frames are described for people', () => {
  const payload = concat(encodeRows(smallTransaction()))
  expect(describePayload(frameKinds.rows, payload)).toBe(
    'rows, kafka ticks-3 offset 77, table 3 transaction 17 (0 rows)',
  )
  const key = { kind: sourcePositionKinds.idempotencyKey, bytes: new Uint8Array(Buffer.from('k1')) }
  const keyed = concat(encodeRows({ ...smallTransaction(), sourcePosition: key }))
  expect(describePayload(frameKinds.relocation, keyed)).toBe(
    'relocated rows, idempotency key k1, table 3 transaction 17 (0 rows)',
  )
  expect(describePayload(frameKinds.ddl, encodeJson({ drop: 't' }))).toBe('ddl {"drop":"t"}')
  expect(describePayload(frameKinds.rows, new Uint8Array(3))).toBe('rows, the rest is unreadable')
})

test('a kafka origin', () => {
  const sourcePosition = { connector: 'plant', topic: 'ticks', partition: 12, offset: 2 ** 40 + 5 }
  expect(decodeKafkaPosition(encodeKafkaPosition(sourcePosition))).toEqual(sourcePosition)
  expect(() => decodeKafkaPosition(noSourcePosition)).toThrow(CorruptionError)
})
