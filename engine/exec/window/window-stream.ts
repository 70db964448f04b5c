// Executes window functions without buffering all rows, if the input is already ordered and each call looks back a
// bounded number of rows. The input is processed in blocks; of earlier blocks only the last rows of each partition stay
// in memory, as many as the calls look back. Counts and sums from the first row of the partition on, such as
// row_number(), store a running value for each partition instead.

import type { WindowCall } from '../../sql/plan/plan.js'
import { finite } from '../batch/values.js'
import { isBatch, type Operator, type Vector } from '../batch/vector.js'
import type { Steps } from '../join/join-build.js'
import { computed, type Prepared } from './window-calls.js'
import type { WindowOrder } from './window-order.js'
import { emitted, putLong, ResultReader } from './window-result.js'
import type { WindowRows } from './window-rows.js'
import { halvesReader, IntegerSums, isInteger, isNumeric, nullReader, numberReader } from './window-values.js'

/** Small, so that a query with a small limit returns soon; later blocks are larger. */
const blockRowsFirst = 16_384
const blockRowsMax = 262_144

export interface StreamedCall extends Prepared {
  /** Rows of the partition that the call looks back; -1: it has a running state. */
  readonly lookback: number
}

/** null when a call cannot be streamed. */
export function streamedCalls(prepared: readonly Prepared[]): StreamedCall[] | null {
  const streamed: StreamedCall[] = []
  for (const call of prepared) {
    const lookback = call.keys.sorted ? lookbackOf(call.call) : null
    if (lookback === null || lookback > blockRowsMax) return null
    streamed.push({ ...call, lookback })
  }
  return streamed
}

function lookbackOf({ name, args, frame, ignoreNulls, type }: WindowCall): number | null {
  if (name === 'row_number') return -1
  if (name === 'lag') {
    const [, offset] = args
    if (ignoreNulls || (offset !== undefined && offset.kind !== 'constant')) return null
    const distance = offset === undefined ? 1 : Number(offset.value)
    return distance >= 0 ? distance : null
  }
  const looksBack = frame.unit === 'rows' && frame.hi !== null && frame.hi <= 0n
  if (!looksBack || unstreamed.has(name)) return null
  if (frame.lo !== null)
    return frame.exclude === 'none' || frame.exclude === 'current' ? Math.max(0, Number(-frame.lo)) : null
  const runs = frame.hi === 0n && frame.exclude === 'none'
  if (runs && name === 'count') return -1
  const sums = (name === 'sum' || name === 'avg') && type.name === 'DOUBLE' && args.length === 1
  return runs && sums && args[0] !== undefined && isNumeric(args[0].type) ? -1 : null
}

/** Functions without a frame that need the whole partition. */
const unstreamed: ReadonlySet<string> = new Set(['lead', 'rank', 'dense_rank', 'percent_rank', 'cume_dist', 'ntile'])

export function* streamedBlocks(rows: WindowRows, input: Operator, calls: readonly StreamedCall[]): Steps {
  const running = calls.map((call) => (call.lookback < 0 ? new RunningState(rows, call) : null))
  const looking = calls.filter(({ lookback }) => lookback >= 0)
  let blockRows = blockRowsFirst
  let retained = 0
  for (let ended = false; !ended; ) {
    while (!ended && rows.rows - retained < blockRows) {
      const batch = input.pull()
      if (isBatch(batch)) rows.append(batch)
      ended = batch === null
      if (ended) rows.complete()
      if (batch !== null) yield batch === 'waiting' ? batch : 'working'
    }
    if (rows.rows === retained) return
    const { results, orders } = yield* computed(rows, looking)
    const looked = [...results]
    const all = running.map((state) => state?.advance(retained) ?? (looked.shift() as ResultReader))
    yield* emitted(rows, all, retained)
    if (ended) return
    retained = keepLast(
      rows,
      orders.map((order, index) => ({ order, count: looking[index]?.lookback ?? 0 })),
    )
    rows.forgetWork()
    blockRows = Math.max(Math.min(blockRows * 2, blockRowsMax), retained)
  }
}

/** Drops all rows but the last ones of each partition; returns how many are left. */
function keepLast(
  rows: WindowRows,
  wanted: readonly { readonly order: WindowOrder; readonly count: number }[],
): number {
  const { memory, kernels, arena } = rows.context
  if (wanted.every(({ count }) => count === 0)) {
    rows.store.keepLast(0)
    return 0
  }
  const marks = arena.take(rows.rows)
  memory.u8.fill(0, marks, marks + rows.rows)
  for (const { order, count } of wanted) {
    for (let partition = 0; partition < order.partitions; partition++) {
      const start = memory.u32[(order.starts >>> 2) + partition]!
      const end = memory.u32[(order.starts >>> 2) + partition + 1]!
      const from = Math.max(start, end - count)
      kernels.join.markRows(order.order + from * 4, end - from, marks)
    }
  }
  const index = arena.take(rows.rows * 4)
  const retained = kernels.join.rowsMarked(marks, 1, 0, rows.rows, rows.rows, index)
  rows.store.keepGathered(index, retained)
  return retained
}

/** The running count and sum of each partition, by its code. */
class RunningState {
  readonly #rows: WindowRows
  readonly #call: StreamedCall
  #counts = new Float64Array(64)
  #sums = new Float64Array(64)
  readonly #integers = new IntegerSums()

  constructor(rows: WindowRows, call: StreamedCall) {
    this.#rows = rows
    this.#call = call
  }

  /** Results of the rows from `from` on, which are new. */
  advance(from: number): ResultReader {
    const { arena } = this.#rows.context
    const { call, keys } = this.#call
    const address = arena.take(this.#rows.rows * 8)
    const codes = keys.partition < 0 ? -1 : this.#rows.column(keys.partition).address >>> 2
    this.#reserve(keys.partition < 0 ? 1 : this.#rows.partitionCount(keys.partition))
    if (call.name === 'row_number' || call.name === 'count') this.#count(address, codes, from)
    else if (isInteger(this.#summed.type)) this.#sumIntegers(address, codes, from)
    else this.#sum(address, codes, from)
    return new ResultReader(this.#rows, call.type, { kind: 'values', address, dictionary: 0 })
  }

  #count(address: number, codes: number, from: number): void {
    const { memory } = this.#rows.context
    const { u32, i32 } = memory
    const counts = this.#counts
    const [slot] = this.#call.slots
    const isNull = slot === undefined ? null : nullReader(memory, this.#rows.column(slot))
    for (let row = from, word = (address >>> 2) + from * 2; row < this.#rows.rows; row++, word += 2) {
      const code = codes < 0 ? 0 : u32[codes + row]!
      if (isNull === null || !isNull(row)) counts[code] = counts[code]! + 1
      putLong(i32, word, counts[code]!)
    }
  }

  get #summed(): Vector {
    return this.#rows.column(this.#call.slots[0] ?? 0)
  }

  #sumIntegers(address: number, codes: number, from: number): void {
    const { memory } = this.#rows.context
    const { u32, f64 } = memory
    const [counts, sums] = [this.#counts, this.#integers]
    const { high, low } = halvesReader(memory, this.#summed, this.#rows.rows)
    const isSum = this.#call.call.name === 'sum'
    sums.reserve(counts.length)
    for (let row = from; row < this.#rows.rows; row++) {
      const code = codes < 0 ? 0 : u32[codes + row]!
      const part = low(row)
      if (!Number.isNaN(part)) {
        counts[code] = counts[code]! + 1
        sums.add(code, high(row), part)
      }
      const count = counts[code]!
      f64[(address >>> 3) + row] = count === 0 ? Number.NaN : isSum ? sums.value(code) : sums.value(code) / count
    }
  }

  #sum(address: number, codes: number, from: number): void {
    const { memory } = this.#rows.context
    const { u32, f64 } = memory
    const [counts, sums] = [this.#counts, this.#sums]
    const read = numberReader(memory, this.#summed, this.#rows.rows, false)
    const isSum = this.#call.call.name === 'sum'
    for (let row = from; row < this.#rows.rows; row++) {
      const code = codes < 0 ? 0 : u32[codes + row]!
      const value = read(row)
      if (!Number.isNaN(value)) {
        counts[code] = counts[code]! + 1
        sums[code] = sums[code]! + value
      }
      const count = counts[code]!
      f64[(address >>> 3) + row] = count === 0 ? Number.NaN : finite(isSum ? sums[code]! : sums[code]! / count)
    }
  }

  #reserve(size: number): void {
    if (size <= this.#counts.length) return
    const capacity = Math.max(size, this.#counts.length * 2)
    const [counts, sums] = [new Float64Array(capacity), new Float64Array(capacity)]
    counts.set(this.#counts)
    sums.set(this.#sums)
    this.#counts = counts
    this.#sums = sums
  }
}
