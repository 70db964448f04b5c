// Builds the hash table of a join from the rows of one side. A bucket lists the numbers of the rows whose key has a
// certain hash. Each number is stored with the key itself if that is a single integer, else with the full hash. If the
// keys are unique integers within a small range, an array indexed by the key is used instead. The result is plain data
// in shared memory, so every thread of the query can look rows up in it.

import { aggregateKinds, initStats, statsBytes } from '../../kernels/aggregate.js'
import { bucketsBytes, noRow, rangeBytes, writeBuckets, writeRange } from '../../kernels/join.js'
import type { DataType } from '../../types/column-types.js'
import type { ExecContext } from '../batch/context.js'
import { RowBuffer } from '../batch/row-buffer.js'
import { isBatch, type Operator, type Vector } from '../batch/vector.js'
import { listByCode } from './join-build.js'
import type { Buckets } from './join-built.js'
import type { JoinColumns } from './join-columns.js'
import { codeType } from './join-keys.js'
import { nullVectors } from './join-pairs.js'

const bucketsMin = 1024
/** Ranges of up to this many keys, or this many per row, use an array indexed by key. */
const rangeKeysMin = 16_384
const rangePerRow = 4
/** Rows or buckets processed in a step. */
const stepRows = 262_144

/** `rowsKnown`: upper bound of the rows if the plan has one, to allocate memory once. */
export function* buildBuckets(
  context: ExecContext,
  input: Operator,
  types: readonly DataType[],
  keyColumns: readonly number[],
  keys: JoinColumns,
  rowsKnown: number,
): Generator<'working' | 'waiting', Buckets, undefined> {
  const own = keys.columns.flatMap(({ retained }) => (retained === null ? [] : [retained]))
  const store = new RowBuffer(context, [...types, ...own, codeType])
  let bases: number[] = []
  for (;;) {
    const batch = input.pull()
    if (batch === null) break
    if (isBatch(batch)) {
      if (store.rows === 0) store.reserve(rowsKnown)
      const vectors = keyColumns.map((index) => batch.vectors[index] as Vector)
      bases = vectors.map(({ dictionary }) => dictionary)
      const values = keys.values(vectors, batch.rows)
      const made = keys.columns.flatMap(({ retained: type }, index) =>
        type === null ? [] : [{ type, address: values[index] as number, dictionary: 0 }],
      )
      const hashes = { type: codeType, address: keys.hashes(values, batch.rows), dictionary: 0 }
      store.append({ rows: batch.rows, vectors: [...batch.vectors.slice(0, types.length), ...made, hashes] })
    }
    yield batch === 'waiting' ? batch : 'working'
  }
  const { rows } = store
  const none = { table: 0, range: 0, keys: [], bases, unique: true }
  if (rows === 0) return { rows, vectors: nullVectors(context, types), ...none }
  const vectors = store.columns(types.length)
  let next = types.length
  const addresses = keys.columns.map(
    ({ retained }, index) =>
      (retained === null ? (vectors[keyColumns[index] as number] as Vector) : store.column(next++)).address,
  )
  const hashes = store.column(next).address
  const range = keys.exact ? yield* rangeOfKeys(context, addresses[0] as number, keys.width, rows) : 0
  if (range !== 0) return { ...none, rows, vectors, range }
  const stored = keys.exact ? (addresses[0] as number) : hashes
  const { table, unique } = yield* listByHash(context, hashes, stored, keys.width, rows)
  return { ...none, rows, vectors, table, keys: addresses, unique }
}

function* listByHash(
  context: ExecContext,
  hashes: number,
  words: number,
  width: 4 | 8,
  rows: number,
): Generator<'working', { readonly table: number; readonly unique: boolean }, undefined> {
  const { arena, memory, kernels } = context
  const buckets = 2 ** Math.ceil(Math.log2(Math.max(bucketsMin, rows)))
  const codes = arena.take(rows * 4)
  for (let from = 0; from < rows; from += stepRows) {
    const count = Math.min(stepRows, rows - from)
    kernels.join.maskWords(hashes + from * 4, count, buckets - 1, codes + from * 4)
    yield 'working'
  }
  const { starts, list } = yield* listByCode(context, codes, 0, rows, buckets)
  arena.give(codes)
  const stored = arena.take(rows * width)
  for (let from = 0; from < rows; from += stepRows) {
    kernels.sort.gather(width, words, list + from * 4, Math.min(stepRows, rows - from), stored + from * width)
    yield 'working'
  }
  const table = arena.keep(bucketsBytes)
  writeBuckets(memory, table, { starts, mask: buckets - 1, list, stored, width })
  let unique = true
  for (let from = 0; unique && from < buckets; from += stepRows) {
    unique = kernels.join.repeatsKeys(table, from, Math.min(buckets, from + stepRows)) === 0
    yield 'working'
  }
  return { table, unique }
}

/** Builds the array indexed by key; 0 when the range is too large, or a key has several rows. */
function* rangeOfKeys(
  context: ExecContext,
  keys: number,
  width: 4 | 8,
  rows: number,
): Generator<'working', number, undefined> {
  const { arena, memory, kernels } = context
  const stats = arena.keep(statsBytes)
  initStats(memory, stats, width === 8 ? 'i64' : 'i32')
  for (let from = 0; from < rows; from += stepRows) {
    const count = Math.min(stepRows, rows - from)
    kernels.aggregate.stats(aggregateKinds[width === 8 ? 'i64' : 'i32'], keys + from * width, 0, count, stats)
    yield 'working'
  }
  const [min, max] = memory.i64.subarray((stats >>> 3) + 2, (stats >>> 3) + 4) as unknown as [bigint, bigint]
  const count = max < min ? 0 : Number(max - min) + 1
  if (count > Math.max(rangeKeysMin, rows * rangePerRow)) return 0
  const map = arena.take((count + 1) * 4)
  for (let from = 0; from <= count; from += stepRows) {
    memory.u32.fill(noRow, (map >>> 2) + from, (map >>> 2) + Math.min(count + 1, from + stepRows))
    yield 'working'
  }
  const range = arena.keep(rangeBytes)
  writeRange(memory, range, count === 0 ? 0n : min, count, map)
  for (let from = 0; from < rows; from += stepRows) {
    if (kernels.join.fillRange(range, width, keys, from, Math.min(rows, from + stepRows)) === 0) {
      arena.give(map)
      return 0
    }
    yield 'working'
  }
  return range
}
