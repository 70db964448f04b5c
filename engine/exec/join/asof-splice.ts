// Operator: SPLICE JOIN, an ASOF JOIN in both directions. Returns the rows of both inputs in time order, each with the
// latest row of the other input at or before its timestamp. At equal timestamps left rows come first, and a right row
// that has been joined with a left row of the same timestamp is not returned a second time.
//
// Both inputs are read in time order. While an input has further rows, only rows before the last timestamp read from it
// are joined, since more rows of that timestamp may follow. Of the joined rows, the latest of each key stay in memory.

import { assert, nonNull } from '../../base/assert.js'
import { spliceStateBytes } from '../../kernels/join.js'
import type { Plan } from '../../sql/plan/plan.js'
import { type DataType, dataType } from '../../types/column-types.js'
import type { ExecContext } from '../batch/context.js'
import { RowBuffer } from '../batch/row-buffer.js'
import { rowsFor } from '../batch/small-batches.js'
import { type Batch, batchRowsMax, isBatch, type Operator, type Vector } from '../batch/vector.js'
import { inTimeOrder, keepReferred, LastRows, timeReader, timeScales } from './asof-times.js'
import { operatorOf, type Steps } from './join-build.js'
import { codeType, JoinKeys } from './join-keys.js'
import { nullVectors, SideGather } from './join-pairs.js'

type JoinPlan = Extract<Plan, { kind: 'join' }>

/** Rows buffered in addition to twice the referenced ones before they are pruned. */
const pruneRowsMin = 65_536
const longType = dataType('LONG')

export function spliceJoin(context: ExecContext, left: Operator, right: Operator, plan: JoinPlan): Operator {
  assert(plan.residual === null, 'B2: a SPLICE join has no condition but equal keys')
  return operatorOf(spliced(context, left, right, plan))
}

function* spliced(context: ExecContext, left: Operator, right: Operator, plan: JoinPlan): Steps {
  const { kernels } = context
  const rowsMax = rowsFor(plan.left.columns.length + plan.right.columns.length)
  const splice = new Splice(context, left, right, plan)
  for (;;) {
    const pulled = splice.read()
    if (pulled !== 'ready') {
      yield pulled
      continue
    }
    splice.limit()
    for (;;) {
      const first = splice.left.first
      const count = kernels.join.splice(splice.state, splice.left.found, splice.right.found, rowsMax)
      if (count === 0) break
      yield splice.result(count, first)
    }
    if (splice.left.isComplete && splice.right.isComplete) return
    splice.left.prune()
    splice.right.prune()
  }
}

// Word indexes of a side in the structure of the kernel: {times, codes, rows, first row that was not joined}.
const [timesWord, codesWord, rowsWord, firstWord] = [0, 1, 2, 3] as const
const [lastWord, endWord] = [8, 10] as const

class Splice {
  readonly state: number
  readonly left: Side
  readonly right: Side
  readonly #context: ExecContext
  readonly #keys: JoinKeys
  readonly #placed: number
  readonly #place: readonly number[]

  constructor(context: ExecContext, left: Operator, right: Operator, plan: JoinPlan) {
    const { arena, memory } = context
    const typesOf = (source: Plan, keys: readonly number[]): DataType[] =>
      keys.flatMap((index) => source.columns[index]?.type ?? [])
    this.#context = context
    this.#keys = new JoinKeys(context, typesOf(plan.left, plan.leftKeys), typesOf(plan.right, plan.rightKeys))
    this.state = arena.keep(spliceStateBytes)
    memory.u8.fill(0, this.state, this.state + spliceStateBytes)
    const scales = timeScales(plan)
    const common = { context, keys: this.#keys, state: this.state }
    const sides = { left: { ...common, side: 0 }, right: { ...common, side: 1 } } as const
    this.left = new Side(sides.left, left, plan.left, plan.leftKeys, plan.leftTimestamp, scales.left)
    this.right = new Side(sides.right, right, plan.right, plan.rightKeys, plan.rightTimestamp, scales.right)
    this.#placed = plan.placed ?? 0
    const columns = this.#placed === 0 ? 0 : this.#placed + 2
    this.#place = Array.from({ length: columns }, () => arena.take(batchRowsMax * 8))
  }

  /** Reads a batch of the input that is behind; 'ready' if rows can be joined. */
  read(): 'ready' | 'working' | 'waiting' {
    const { left, right } = this
    const waiting = [left, right].filter(({ isComplete }) => !isComplete)
    const empty = waiting.find(({ hasRows }) => !hasRows)
    if (empty !== undefined) return empty.read()
    const end = this.#end()
    if (end === null || left.hasRowsBefore(end) || right.hasRowsBefore(end)) return 'ready'
    const behind = waiting.find(({ lastTime }) => lastTime === end)
    return behind?.read() ?? 'ready'
  }

  /** Rows from this time on may be incomplete; null if all rows are there. */
  #end(): bigint | null {
    const times = [this.left, this.right].flatMap(({ isComplete, lastTime }) => (isComplete ? [] : [lastTime]))
    return times.reduce<bigint | null>((least, time) => (least === null || time < least ? time : least), null)
  }

  /** Tells the kernel which rows it may join. */
  limit(): void {
    const end = this.#end()
    this.left.limit(end)
    this.right.limit(end)
  }

  /** `first`: the left row that was the next one before the kernel ran. */
  result(count: number, first: number): Batch {
    const vectors = [...this.left.gathered(count), ...this.right.gathered(count)]
    return { rows: count, vectors: this.#placed === 0 ? vectors : [...vectors, ...this.#places(count, first)] }
  }

  /**
   * Columns that tell the place of each row in the result: the time, 0 for rows of the left input and 1 for those of the
   * right, and the last columns of that input.
   */
  #places(count: number, first: number): Vector[] {
    const { u32, i64 } = this.#context.memory
    const { left, right } = this
    const [times, sides, ...ranks] = this.#place
    const ranksOf = (side: Side): readonly number[] => side.addressesOfLast(this.#placed)
    const ranksBySide = [ranksOf(left), ranksOf(right)] as const
    for (let row = 0, next = first; row < count; row++) {
      const isLeft = u32[(left.found >>> 2) + row] === next
      if (isLeft) next++
      const side = isLeft ? left : right
      const from = u32[(side.found >>> 2) + row]!
      i64[((times ?? 0) >>> 3) + row] = i64[(side.times >>> 3) + from]!
      i64[((sides ?? 0) >>> 3) + row] = isLeft ? 0n : 1n
      for (const [index, address] of ranks.entries())
        i64[(address >>> 3) + row] = i64[((ranksBySide[isLeft ? 0 : 1][index] ?? 0) >>> 3) + from]!
    }
    return this.#place.map((address) => ({ type: longType, address, dictionary: 0 }))
  }
}

interface SideOf {
  readonly context: ExecContext
  readonly keys: JoinKeys
  readonly state: number
  /** 0 for the left one. */
  readonly side: 0 | 1
}

/** An input, and those of its rows that are in memory. */
class Side {
  isComplete = false
  lastTime = 0n
  /** Address of the row numbers (u32) that the kernel has found. */
  readonly found: number
  readonly #of: SideOf
  readonly #input: Operator
  readonly #types: readonly DataType[]
  readonly #keyColumns: readonly number[]
  readonly #timestamp: number
  readonly #timesOf: (vector: Vector, rows: number) => number
  readonly #codes: number
  readonly #last: LastRows
  readonly #gather: SideGather
  /** Two columns are appended: the timestamps in the common unit, and the codes of the keys. */
  readonly #store: RowBuffer
  #pruneAt = pruneRowsMin

  constructor(of: SideOf, input: Operator, source: Plan, keys: readonly number[], timestamp: number, scaled: boolean) {
    const { context } = of
    this.#of = of
    this.#input = inTimeOrder(context, input, source, timestamp)
    this.#types = source.columns.map(({ type }) => type)
    this.#keyColumns = keys
    this.#timestamp = timestamp
    this.#timesOf = timeReader(context, scaled)
    this.#codes = context.arena.take(batchRowsMax * 4)
    this.found = context.arena.take(batchRowsMax * 4)
    this.#last = new LastRows(context)
    this.#gather = new SideGather(context, this.#types)
    this.#store = new RowBuffer(context, [...this.#types, { name: 'TIMESTAMP', a: 0, b: 0 }, codeType])
  }

  read(): 'working' | 'waiting' {
    const batch = this.#input.pull()
    if (batch === null) this.isComplete = true
    else if (isBatch(batch)) this.#add(batch)
    return batch === 'waiting' ? batch : 'working'
  }

  #add({ rows, vectors }: Batch): void {
    if (rows === 0) return
    const { context, keys } = this.#of
    keys.number(
      this.#keyColumns.flatMap((index) => vectors[index] ?? []),
      rows,
      this.#codes,
    )
    const ts = nonNull(vectors[this.#timestamp])
    const times = { ...ts, address: this.#timesOf(ts, rows) }
    this.lastTime = context.memory.i64[(times.address >>> 3) + rows - 1]!
    const codes = { type: codeType, address: this.#codes, dictionary: 0 }
    this.#store.append({ rows, vectors: [...vectors.slice(0, this.#types.length), times, codes] })
  }

  /** Whether there are rows that were not joined. */
  get hasRows(): boolean {
    return this.first < this.#store.rows
  }

  hasRowsBefore(end: bigint): boolean {
    return this.hasRows && this.#of.context.memory.i64[(this.times >>> 3) + this.first]! < end
  }

  /** The first row that was not joined. */
  get first(): number {
    return this.#get(this.#word(firstWord))
  }

  get times(): number {
    return this.#store.rows === 0 ? 0 : this.#store.column(this.#types.length).address
  }

  /** Addresses of the last columns of the input. */
  addressesOfLast(count: number): number[] {
    const width = this.#types.length
    return Array.from({ length: count }, (_, index) => this.#store.column(width - count + index).address)
  }

  /** The kernel may join rows before `end`; null: all. */
  limit(end: bigint | null): void {
    const { context, keys, side } = this.#of
    const { rows } = this.#store
    const allowed =
      end === null || rows === 0 ? rows : context.kernels.sort.lowerBound(this.times, this.first, rows, end)
    this.#last.reserve(keys.size)
    this.#put(this.#word(timesWord), this.times)
    this.#put(this.#word(codesWord), rows === 0 ? 0 : this.#store.column(this.#types.length + 1).address)
    this.#put(this.#word(rowsWord), allowed)
    this.#put(lastWord + side, this.#last.address)
  }

  gathered(count: number): Vector[] {
    const { context } = this.#of
    const width = this.#types.length
    const vectors = this.#store.rows === 0 ? nullVectors(context, this.#types) : this.#store.columns(width)
    return this.#gather.gather({ vectors, index: this.found, mayLack: true }, count, null)
  }

  /** Drops the joined rows that are not the latest of their key. */
  prune(): void {
    const { rows } = this.#store
    if (rows < this.#pruneAt) return
    const { first } = this
    const live = keepReferred(this.#of.context, this.#store, [this.#last], first)
    const next = live - (rows - first)
    this.#put(this.#word(firstWord), next)
    this.#put(endWord + this.#of.side, next)
    this.#pruneAt = live * 2 + pruneRowsMin
  }

  #word(word: number): number {
    return this.#of.side * 4 + word
  }

  #get(word: number): number {
    return this.#of.context.memory.u32[(this.#of.state >>> 2) + word]!
  }

  #put(word: number, value: number): void {
    this.#of.context.memory.u32[(this.#of.state >>> 2) + word] = value
  }
}
