// Functions that all joins by time share (ASOF, LT, SPLICE): sort an input by its timestamp, convert the timestamps of
// both sides to a common unit, keep a table of the latest row of each key, and drop the rows to which nothing refers.

import { noRow } from '../../kernels/join.js'
import type { Plan } from '../../sql/plan/plan.js'
import type { DataType } from '../../types/column-types.js'
import { longMax, longMin, longOrNull } from '../../types/number.js'
import type { ExecContext } from '../batch/context.js'
import type { RowBuffer } from '../batch/row-buffer.js'
import { batchRowsMax, type Operator, type Vector } from '../batch/vector.js'
import { sortOperator } from '../sort/sort.js'
import { isAscending } from './join-sides.js'

type JoinPlan = Extract<Plan, { kind: 'join' }>

const nanosPerMicro = 1000n

/** The input itself if the plan guarantees its order; else the input, sorted. */
export function inTimeOrder(context: ExecContext, input: Operator, plan: Plan, timestamp: number): Operator {
  if (isAscending(context, plan, timestamp)) return input
  const keys = [{ index: timestamp, descending: false, nullsFirst: true }]
  return sortOperator(context, input, { columns: plan.columns, keys, limit: null })
}

export interface TimeScales {
  readonly left: boolean
  readonly right: boolean
  /** In the common unit; -1 = unlimited. */
  readonly tolerance: bigint
}

/** Which input has microseconds while the other one has nanoseconds, and so must be scaled. */
export function timeScales({ left, right, leftTimestamp, rightTimestamp, tolerance }: JoinPlan): TimeScales {
  const [own, other] = [left.columns[leftTimestamp]?.type, right.columns[rightTimestamp]?.type]
  const isNanos = (type: DataType | undefined): boolean => type?.name === 'TIMESTAMP_NS'
  const scaleLeft = !isNanos(own) && isNanos(other)
  const inUnit = tolerance === null ? -1n : scaleLeft ? tolerance * nanosPerMicro : tolerance
  return { left: scaleLeft, right: isNanos(own) && !isNanos(other), tolerance: inUnit }
}

/** Address of a batch's timestamps in the common unit; valid until the next call. */
export function timeReader({ memory, arena }: ExecContext, scaled: boolean): (vector: Vector, rows: number) => number {
  if (!scaled) return ({ address }) => address
  const area = arena.take(batchRowsMax * 8)
  return ({ address }, rows) => {
    for (let row = 0; row < rows; row++) {
      const value = memory.i64[(address >>> 3) + row]!
      memory.i64[(area >>> 3) + row] = value === longMin ? value : nanosOf(value)
    }
    return area
  }
}

/** Microseconds beyond the range of nanoseconds become the end of the range, so that they keep their order. */
function nanosOf(micros: bigint): bigint {
  const nanos = micros * nanosPerMicro
  return longOrNull(nanos) ?? (micros < 0n ? longMin + 1n : longMax)
}

/** The latest row number (u32) by key code; noRow if there is none. */
export class LastRows {
  address = 0
  size = 0
  readonly #context: ExecContext

  constructor(context: ExecContext) {
    this.#context = context
  }

  /** Ensures room for codes below `size`. */
  reserve(size: number): void {
    if (size <= this.size) return
    const { arena, memory } = this.#context
    const capacity = Math.max(size, this.size * 2, 1024)
    const address = arena.take(capacity * 4)
    memory.u32.fill(noRow, address >>> 2, (address >>> 2) + capacity)
    if (this.size > 0) {
      memory.u8.copyWithin(address, this.address, this.address + this.size * 4)
      arena.give(this.address)
    }
    this.address = address
    this.size = capacity
  }
}

/** Lists of row numbers (u32); noRow refers to none. */
type RowList = Pick<LastRows, 'address' | 'size'>

/**
 * Drops the rows before `from` to which no list refers, and gives the lists the new numbers of the others. Returns how
 * many rows are left.
 */
export function keepReferred(
  { arena, memory, kernels }: ExecContext,
  store: RowBuffer,
  lists: readonly RowList[],
  from: number,
): number {
  const { rows } = store
  const [marks, index, places] = [arena.take(rows), arena.take(rows * 4), arena.take(rows * 4)]
  memory.u8.fill(0, marks, marks + from)
  memory.u8.fill(1, marks + from, marks + rows)
  for (const { address, size } of lists) kernels.join.markRows(address, size, marks)
  const live = kernels.join.rowsMarked(marks, 1, 0, rows, rows, index)
  for (let place = 0; place < live; place++) {
    memory.u32[(places >>> 2) + memory.u32[(index >>> 2) + place]!] = place
  }
  for (const { address, size } of lists) kernels.join.renumber(address, size, places)
  store.keepGathered(index, live)
  for (const address of [marks, index, places]) arena.give(address)
  return live
}
