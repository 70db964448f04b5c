// WindowOrder: the sort order of rows for one OVER clause: by partition, then by ORDER BY, and rows with equal keys in
// input order. The other files of window functions call an index in this order a position.

import type { SharedMemory } from '../../memory/shared-memory.js'
import type { Plan, SortKey, WindowCall } from '../../sql/plan/plan.js'
import { storageOf, widthOf } from '../../types/column-types.js'
import { sortedOrder } from '../batch/sort-order.js'
import { bufferOf } from '../batch/text-at.js'
import type { Vector } from '../batch/vector.js'
import { listByCode } from '../join/join-build.js'
import { isAscending } from '../join/join-sides.js'
import type { WindowRows } from './window-rows.js'

type WindowPlan = Extract<Plan, { kind: 'window' }>

/** Positions processed in a step. */
const stepRows = 65_536

export type Working<Result = void> = Generator<'working', Result, undefined>

export interface OrderKeys {
  /** Column of partition codes; -1 = a single partition. */
  readonly partition: number
  readonly keys: readonly SortKey[]
  /** Whether the input has this order already. */
  readonly sorted: boolean
  /** Whether the rows of a partition come together, in this order. */
  readonly together: boolean
}

/** The sort order of an OVER clause. Must be called before rows are read, because it adds columns. */
export function orderKeys(rows: WindowRows, plan: WindowPlan, { partitionBy, orderBy }: WindowCall): OrderKeys {
  const keys = orderBy.map(({ expression, ...key }) => ({ ...key, index: rows.slotOf(expression) }))
  const [key] = keys
  const inOrder =
    key !== undefined &&
    keys.length === 1 &&
    !key.descending &&
    key.nullsFirst &&
    key.index < plan.input.columns.length &&
    isAscending(rows.context, plan.input, key.index)
  return {
    partition: partitionBy.length === 0 ? -1 : rows.partitionSlot(partitionBy),
    keys,
    sorted: keys.length === 0 || inOrder,
    together: false,
  }
}

export class WindowOrder {
  readonly rows: WindowRows
  readonly keys: OrderKeys
  /** u32 row number by position. */
  readonly order: number
  /** u32[partitions + 1]: the first position of each partition. */
  readonly starts: number
  readonly partitions: number
  #peers: { readonly starts: number; readonly ends: number } | null = null

  private constructor(rows: WindowRows, keys: OrderKeys, order: number, starts: number, partitions: number) {
    this.rows = rows
    this.keys = keys
    this.order = order
    this.starts = starts
    this.partitions = partitions
  }

  static *make(rows: WindowRows, keys: OrderKeys): Working<WindowOrder> {
    const { arena, memory, kernels } = rows.context
    if (keys.together && keys.partition >= 0) return yield* WindowOrder.#ofGroups(rows, keys)
    const sorted = keys.sorted ? 0 : sortedOrder(rows.context, rows.store, keys.keys)
    yield 'working'
    if (keys.partition >= 0) {
      const count = rows.partitionCount(keys.partition)
      const codes = rows.column(keys.partition).address
      const { starts, list } = yield* listByCode(rows.context, codes, sorted, rows.rows, count)
      if (sorted !== 0) arena.give(sorted)
      return new WindowOrder(rows, keys, list, starts, count)
    }
    const starts = arena.take(8)
    memory.u32[starts >>> 2] = 0
    memory.u32[(starts >>> 2) + 1] = rows.rows
    if (sorted !== 0) return new WindowOrder(rows, keys, sorted, starts, 1)
    const order = arena.take(rows.rows * 4)
    kernels.sort.identity(rows.rows, order)
    return new WindowOrder(rows, keys, order, starts, 1)
  }

  /** Rows whose partitions come one after the other: positions are row numbers. */
  static *#ofGroups(rows: WindowRows, keys: OrderKeys): Working<WindowOrder> {
    const { arena, memory, kernels } = rows.context
    const { u32 } = memory
    const codes = rows.column(keys.partition).address >>> 2
    const startsPartition = (row: number): boolean => row === 0 || u32[codes + row] !== u32[codes + row - 1]
    let count = 0
    for (let row = 0; row < rows.rows; row++) if (startsPartition(row)) count++
    yield 'working'
    const starts = arena.take((count + 1) * 4)
    let next = starts >>> 2
    for (let row = 0; row < rows.rows; row++) if (startsPartition(row)) u32[next++] = row
    u32[next] = rows.rows
    yield 'working'
    const order = arena.take(rows.rows * 4)
    kernels.sort.identity(rows.rows, order)
    return new WindowOrder(rows, keys, order, starts, count)
  }

  /** Calls `visit` for all positions: `from` to `to` of the partition [start, end), a limited number at a time. */
  *each(visit: (start: number, end: number, from: number, to: number) => void): Working {
    const { u32 } = this.rows.context.memory
    let done = 0
    for (let partition = 0; partition < this.partitions; partition++) {
      const start = u32[(this.starts >>> 2) + partition]!
      const end = u32[(this.starts >>> 2) + partition + 1]!
      for (let from = start; from < end; ) {
        const to = Math.min(end, from + stepRows)
        visit(start, end, from, to)
        done += to - from
        from = to
        if (done < stepRows) continue
        done = 0
        yield 'working'
      }
    }
  }

  /** Whether two rows of a partition are equal by ORDER BY. */
  isPeer(): SameValues {
    const { memory } = this.rows.context
    const same = this.keys.keys.map(({ index }) => sameNeighbours(memory, this.rows.column(index)))
    return (row, other) => {
      for (const equal of same) if (!equal(row, other)) return false
      return true
    }
  }

  /**
   * u32 by position: the first position of the row's peers (rows equal by ORDER BY), and the position after the last.
   */
  *peers(): Working<{ readonly starts: number; readonly ends: number }> {
    if (this.#peers !== null) return this.#peers
    const { memory, arena } = this.rows.context
    const { u32 } = memory
    const { rows } = this.rows
    const starts = arena.take(rows * 4)
    const ends = arena.take(rows * 4)
    const isPeer = this.isPeer()
    const order = this.order >>> 2
    yield* this.each((start, _end, from, to) => {
      for (let p = from; p < to; p++) {
        const [row, before] = [u32[order + p]!, u32[order + p - 1]!]
        const follows = p > start && isPeer(row, before)
        u32[(starts >>> 2) + p] = follows ? u32[(starts >>> 2) + p - 1]! : p
      }
    })
    // The last peer knows the end; the others take it from the next position.
    for (let p = rows - 1; p >= 0; p--) {
      const last = p === rows - 1 || u32[(starts >>> 2) + p + 1] !== u32[(starts >>> 2) + p]
      u32[(ends >>> 2) + p] = last ? p + 1 : u32[(ends >>> 2) + p + 1]!
    }
    this.#peers = { starts, ends }
    return this.#peers
  }
}

// Equality of two values of a column as in ORDER BY: NULL equals NULL, and -0 equals 0.

type SameValues = (row: number, other: number) => boolean

function sameNeighbours(memory: SharedMemory, vector: Vector): SameValues {
  const { address, type } = vector
  switch (storageOf(type)) {
    case 'f64':
      return sameFloats(memory.f64, address >>> 3)
    case 'f32':
      return sameFloats(memory.f32, address >>> 2)
    case 'i8':
      return sameWords(memory.u8, address, 1)
    case 'i16':
    case 'u16':
      return sameWords(memory.u16, address >>> 1, 1)
    case 'entry':
      return sameBytes(memory, address >>> 2)
    default:
      return sameWords(memory.u32, address >>> 2, widthOf(type) / 4)
  }
}

function sameFloats(values: Float64Array | Float32Array, first: number): SameValues {
  return (row, other) => {
    const a = values[first + row]!
    const b = values[first + other]!
    return a === b || (Number.isNaN(a) && Number.isNaN(b))
  }
}

function sameWords(values: Uint8Array | Uint16Array | Uint32Array, first: number, words: number): SameValues {
  if (words === 1) return (row, other) => values[first + row] === values[first + other]
  return (row, other) => {
    for (let word = 0; word < words; word++) {
      if (values[first + row * words + word] !== values[first + other * words + word]) return false
    }
    return true
  }
}

function sameBytes(memory: SharedMemory, first: number): SameValues {
  const { u32, i32 } = memory
  const bytes = bufferOf(memory)
  return (row, other) => {
    const length = i32[first + row * 2 + 1]!
    if (length !== i32[first + other * 2 + 1]) return false
    if (length <= 0) return true
    const a = u32[first + row * 2]!
    const b = u32[first + other * 2]!
    return a === b || bytes.compare(bytes, b, b + length, a, a + length) === 0
  }
}
