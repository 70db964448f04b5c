// Returns the result of an aggregation in generated code (WebAssembly compiled for the query; fragment-aggregate.ts):
// converts its arrays of accumulators to batches, one column at a time. Symbols stay ids of the table's dictionary, so
// no strings are created.

import type { Output } from '../../kernels/jit/cells.js'
import { readResult } from '../../kernels/jit/results.js'
import type { SharedMemory } from '../../memory/shared-memory.js'
import type { PlanColumn } from '../../sql/plan/plan.js'
import { type DataType, widthOf } from '../../types/column-types.js'
import { longMin } from '../../types/number.js'
import type { Value } from '../../types/value.js'
import { wideSum } from '../../types/wide-sum.js'
import type { Bucket } from '../aggregate/buckets.js'
import type { DenseQuery } from '../aggregate/dense-query.js'
import type { ExecContext } from '../batch/context.js'
import { rowsFor } from '../batch/small-batches.js'
import { StringHeap } from '../batch/string-heap.js'
import { finite, type WriteTarget, writeValue } from '../batch/values.js'
import type { Batch, Vector } from '../batch/vector.js'

/** The groups with rows in a bucket, in the order of their first rows, and the accumulators of all groups. */
export interface BucketResult {
  readonly bucket: Bucket | null
  readonly total: number
  readonly groups: readonly number[]
}

/** Adds buckets between and around those with rows. `blank`: a group without rows. */
export type FillBuckets = (bucketResults: Iterable<BucketResult>, blank: BucketResult) => Iterable<BucketResult>

/** The rows of a batch: address of the accumulators, group id, and bucket of each. */
interface ResultRows {
  readonly records: Uint32Array
  readonly groups: Uint32Array
  readonly buckets: (Bucket | null)[]
  count: number
}

/** Writes a column for all rows. */
type ColumnWriter = (address: number, rows: ResultRows) => void

/** If the high words are smaller than this, the sum of two numbers is rounded once only. */
const exactHigh = 1 << 20
const word32 = 2 ** 32

export class FragmentColumns {
  readonly #recordBytes: number
  readonly #rowsMax: number
  readonly #rows: ResultRows
  readonly #columns: readonly { readonly vector: Vector; readonly write: ColumnWriter }[]
  readonly #heap: StringHeap
  readonly #bucketResults: Iterator<BucketResult>
  #result: BucketResult | null = null
  #next = 0

  /** Columns: the start of the bucket (if `timed`), the keys, the aggregates. */
  constructor(
    context: ExecContext,
    columns: readonly PlanColumn[],
    query: DenseQuery,
    timed: boolean,
    bucketResults: Iterable<BucketResult>,
  ) {
    const rowsMax = rowsFor(columns.length)
    this.#rowsMax = rowsMax
    this.#recordBytes = query.fragment.recordBytes
    this.#bucketResults = bucketResults[Symbol.iterator]()
    const { memory, symbols, arena } = context
    const numbers = (): Uint32Array => {
      const word = arena.take(rowsMax * 4) >>> 2
      return memory.u32.subarray(word, word + rowsMax)
    }
    this.#rows = { records: numbers(), groups: numbers(), buckets: [], count: 0 }
    this.#heap = new StringHeap(arena)
    const target = { memory, symbols, heap: this.#heap }
    const writers = [
      ...(timed ? [startWriter(memory)] : []),
      ...keyWriters(target, query, columns.slice(timed ? 1 : 0)),
    ]
    this.#columns = columns.map(({ type }, index) => {
      const known = writers[index]
      const address = arena.take(Math.ceil(rowsMax / 64) * 64 * widthOf(type))
      const write = known?.write ?? aggregateWriter(target, query, index - writers.length, type)
      const dictionary = type.name === 'SYMBOL' ? known?.dictionary || symbols.dictionary : 0
      return { vector: { type, address, dictionary }, write }
    })
  }

  /** null at the end. */
  batch(): Batch | null {
    this.#fill()
    const rows = this.#rows.count
    if (rows === 0) return null
    this.#heap.reset()
    for (const { vector, write } of this.#columns) write(vector.address, this.#rows)
    return { rows, vectors: this.#columns.map(({ vector }) => vector) }
  }

  #fill(): void {
    const rows = this.#rows
    rows.count = 0
    while (rows.count < this.#rowsMax) {
      if (this.#result === null || this.#next >= this.#result.groups.length) {
        const next = this.#bucketResults.next()
        if (next.done === true) return
        this.#result = next.value
        this.#next = 0
      }
      this.#next += addRows(rows, this.#result, this.#next, this.#rowsMax, this.#recordBytes)
    }
  }
}

/** Adds groups from index `from` on, as many as fit the batch; returns how many. */
function addRows(
  rows: ResultRows,
  { bucket, total, groups }: BucketResult,
  from: number,
  rowsMax: number,
  recordBytes: number,
): number {
  const count = Math.min(groups.length - from, rowsMax - rows.count)
  for (let index = 0; index < count; index++) {
    const group = groups[from + index] as number
    rows.groups[rows.count] = group
    rows.records[rows.count] = total + group * recordBytes
    rows.buckets[rows.count] = bucket
    rows.count++
  }
  return count
}

interface KnownWriter {
  readonly write: ColumnWriter
  /** The dictionary of a symbol; 0 = the query's own. */
  readonly dictionary: number
}

function startWriter({ i64 }: SharedMemory): KnownWriter {
  const write: ColumnWriter = (address, { buckets, count }) => {
    for (let row = 0; row < count; row++) i64[(address >>> 3) + row] = buckets[row]?.start ?? longMin
  }
  return { write, dictionary: 0 }
}

/** Indexed by the position of each key. */
function keyWriters(
  target: WriteTarget,
  { keys, bucketPlace, keyOf }: DenseQuery,
  columns: readonly PlanColumn[],
): KnownWriter[] {
  const writers: KnownWriter[] = []
  let below = 1
  for (const { place, count: values, dictionary } of keys) {
    writers[place] = { write: partWriter(target.memory, below, values, dictionary !== 0), dictionary }
    below *= values
  }
  if (bucketPlace >= 0) {
    const keyIn = (bucket: Bucket | null): Value => (bucket === null ? null : keyOf(bucket.start))
    const { type } = columns[bucketPlace] as PlanColumn
    const write: ColumnWriter = (address, { buckets, count }) => {
      for (let row = 0; row < count; row++) writeValue(target, type, address, row, keyIn(buckets[row] ?? null))
    }
    writers[bucketPlace] = { write, dictionary: 0 }
  }
  return writers
}

/** Symbols: their id, which is -1 for NULL. Otherwise BOOLEAN. */
function partWriter({ i8, i32 }: SharedMemory, below: number, values: number, symbols: boolean): ColumnWriter {
  return (address, { groups, count }) => {
    for (let row = 0; row < count; row++) {
      const part = Math.floor(groups[row]! / below) % values
      if (symbols) i32[(address >>> 2) + row] = part - 1
      else i8[address + row] = part
    }
  }
}

function aggregateWriter(
  target: WriteTarget,
  { fragment }: DenseQuery,
  aggregate: number,
  type: DataType,
): ColumnWriter {
  const { record } = fragment.plan
  const { memory } = target
  const output = record.outputs[aggregate] as Output
  const known = type.name === 'DOUBLE' ? doubleWriter(memory, output) : undefined
  if (known !== undefined) return known
  return (address, { records, count }) => {
    for (let row = 0; row < count; row++)
      writeValue(target, type, address, row, readResult(memory, record, records[row]!, aggregate))
  }
}

/** Writers for DOUBLE that create no value objects; NaN is NULL. undefined when there is none. */
function doubleWriter(memory: SharedMemory, { name, cell, type }: Output): ColumnWriter | undefined {
  const at = cell.offset
  if (name === 'avg') return cell.floating ? meanWriter(memory, at) : exactMeanWriter(memory, at, cell.kind === 'wide')
  if (!cell.floating || type !== 'DOUBLE') return undefined
  if (name === 'sum') return sumWriter(memory, at)
  return name === 'min' || name === 'max' ? extremeWriter(memory, at, name === 'min' ? 0 : 1) : undefined
}

function meanWriter({ f64 }: SharedMemory, at: number): ColumnWriter {
  return (address, { records, count }) => {
    for (let row = 0; row < count; row++) {
      const word = (records[row]! + at) >>> 3
      f64[(address >>> 3) + row] = finite(f64[word]! / f64[word + 1]!)
    }
  }
}

/**
 * Means of integer sums; `wide` sums have two parts (types/wide-sum.ts). Sums too large for a double are divided as in
 * readResult().
 */
function exactMeanWriter(memory: SharedMemory, at: number, wide: boolean): ColumnWriter {
  const { f64, i64, i32, u32 } = memory
  const low = (word: number): number => i32[word + 1]! * word32 + u32[word]!
  const isExact = (word: number): boolean => Math.abs(i32[word + 1]!) < exactHigh
  /** The high word of the sum of the low words. */
  const lowHigh = (word: number): number => (u32[word + 1]! - u32[word + 4]!) >>> 0
  return (address, { records, count }) => {
    for (let row = 0; row < count; row++) {
      const word = (records[row]! + at) >>> 2
      const rows = low(word + 2)
      let sum: number
      if (!wide) sum = isExact(word) ? low(word) : Number(i64[word >>> 1])
      else if (isExact(word + 4) && lowHigh(word) < exactHigh)
        sum = low(word + 4) * word32 + (lowHigh(word) * word32 + u32[word]!)
      else sum = Number(wideSum(memory, word >>> 1, (word >>> 1) + 2))
      f64[(address >>> 3) + row] = sum / rows
    }
  }
}

function sumWriter({ f64 }: SharedMemory, at: number): ColumnWriter {
  return (address, { records, count }) => {
    for (let row = 0; row < count; row++) {
      const word = (records[row]! + at) >>> 3
      f64[(address >>> 3) + row] = f64[word + 1] === 0 ? Number.NaN : finite(f64[word]!)
    }
  }
}

function extremeWriter({ f64 }: SharedMemory, at: number, which: 0 | 1): ColumnWriter {
  return (address, { records, count }) => {
    for (let row = 0; row < count; row++) {
      const word = (records[row]! + at) >>> 3
      const seen = f64[word]! <= f64[word + 1]!
      f64[(address >>> 3) + row] = seen ? finite(f64[word + which]!) : Number.NaN
    }
  }
}
