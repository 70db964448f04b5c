// Blocks of rows in the order of a window, as window-ordered.ts computes them: the interface of a call over blocks, and
// two kinds of calls: those whose frames have two bounds (with lag() and lead()), and those whose frames begin with the
// partition.

import type { WindowCall } from '../../sql/plan/plan.js'
import type { DataType } from '../../types/column-types.js'
import { callResult, hasFrame } from './window-calls.js'
import { type Frames, framesOf } from './window-frames.js'
import type { WindowOrder, Working } from './window-order.js'
import { ResultColumn, type WindowResult } from './window-result.js'
import { expressionKey, type WindowRows } from './window-rows.js'
import { distanceOf, type Fold, foldOf } from './window-running.js'

/** Rows computed in a step. */
const stepRows = 8192

/** The rows [from, to) of the rows in memory, whose results are computed. */
export interface Block {
  readonly from: number
  readonly to: number
  readonly startsPartition: (row: number) => boolean
  /** Whether the row differs from the one before by ORDER BY, or starts a partition. */
  readonly startsPeers: (row: number) => boolean
  /** The first row in memory of the row's partition; for the row after the last, of the last partition. */
  readonly startOf: (row: number) => number
}

export interface OrderedCall {
  readonly type: DataType
  /** null if results depend on no other rows in memory. */
  readonly reach: Reach | null
  /** Results of the block's rows. */
  result(order: WindowOrder, block: Block): Working<WindowResult>
  /** The first row that results from row `to` on need; called after result(). */
  neededFor(to: number): number
  /** The first rows in memory were dropped. */
  drop(count: number): void
}

export function blockOf(order: WindowOrder, from: number, to: number): Block {
  const { rows, keys } = order
  const { u32 } = rows.context.memory
  const codes = keys.partition < 0 ? -1 : rows.column(keys.partition).address >>> 2
  const isFirst = from === 0
  const startsPartition = (row: number): boolean =>
    row === 0 ? isFirst : codes >= 0 && u32[codes + row] !== u32[codes + row - 1]
  const isPeer = order.isPeer()
  return {
    ...{ from, to, startsPartition },
    startsPeers: (row) => startsPartition(row) || !isPeer(row, row - 1),
    startOf: (row) => lastStart(order, row),
  }
}

/** The first position of the partition of a row, which is one of the last partition that has rows. */
function lastStart({ starts, partitions, rows }: WindowOrder, row: number): number {
  const { u32 } = rows.context.memory
  let partition = partitions - 1
  while (partition > 0 && u32[(starts >>> 2) + partition]! > Math.min(row, rows.rows - 1)) partition--
  return u32[(starts >>> 2) + partition]!
}

/** The frames of the rows in memory, and which rows they need. */
export class Reach {
  readonly #call: WindowCall
  #frames: Frames | null = null
  #order: WindowOrder | null = null
  #peers: { readonly starts: number; readonly ends: number } | null = null

  constructor(call: WindowCall) {
    this.#call = call
  }

  get frames(): Frames | null {
    return this.#frames
  }

  /** Called first for each block. `known`: frames of other calls. */
  *prepare(order: WindowOrder, known: Map<string, Frames>): Working {
    this.#order = order
    this.#peers = this.#needsPeers ? yield* order.peers() : null
    if (!hasFrame(this.#call)) return
    const key = expressionKey(this.#call.frame)
    this.#frames = known.get(key) ?? (yield* framesOf(order, this.#call))
    known.set(key, this.#frames)
  }

  /** Whether frames depend on the values of rows, and not on their places only. */
  get #needsPeers(): boolean {
    const { unit, exclude } = this.#call.frame
    return hasFrame(this.#call) && (unit !== 'rows' || exclude === 'group' || exclude === 'ties')
  }

  /** Rows before this one have all rows of their frames in memory. */
  completeTo(from: number): number {
    const { name, frame } = this.#call
    const rows = this.#order?.rows.rows ?? 0
    if (name === 'lag') return rows
    const start = this.#order === null ? 0 : Math.max(from, lastStart(this.#order, rows))
    if (name === 'lead') return Math.max(start, rows - distanceOf(this.#call))
    const to = frame.unit === 'rows' ? Math.max(start, rows - Math.max(0, Number(frame.hi))) : rows
    return this.#peers === null ? to : this.#closedTo(start, to)
  }

  #closedTo(start: number, to: number): number {
    const { u32 } = this.#order?.rows.context.memory ?? { u32: new Uint32Array() }
    const rows = this.#order?.rows.rows ?? 0
    const ends = (this.#peers?.ends ?? 0) >>> 2
    const hi = (this.#frames?.hi ?? 0) >>> 2
    const isRows = this.#call.frame.unit === 'rows'
    let last = to
    while (last > start && (u32[ends + last - 1] === rows || (!isRows && u32[hi + last - 1] === rows))) last--
    return last
  }

  /** The first row of the frames from row `to` on. */
  neededFor(to: number): number {
    const { name, frame } = this.#call
    if (name === 'lag') return to - distanceOf(this.#call)
    if (name === 'lead' || this.#order === null) return to
    const { u32 } = this.#order.rows.context.memory
    if (this.#peers === null || to >= this.#order.rows.rows) return to + Math.min(0, Number(frame.lo ?? 0))
    const lo = frame.lo === null ? to : u32[((this.#frames?.lo ?? 0) >>> 2) + to]!
    return Math.min(lo, u32[(this.#peers.starts >>> 2) + to]!)
  }
}

/** A call whose frames have two bounds. */
export class FrameCall implements OrderedCall {
  readonly type: DataType
  readonly #call: WindowCall
  readonly #slots: readonly number[]
  readonly reach: Reach

  constructor(call: WindowCall, slots: readonly number[]) {
    this.type = call.type
    this.#call = call
    this.#slots = slots
    this.reach = new Reach(call)
  }

  *result(order: WindowOrder): Working<WindowResult> {
    return yield* callResult(order, this.#call, this.#slots, this.reach.frames)
  }

  neededFor(to: number): number {
    return this.reach.neededFor(to)
  }

  drop(): void {}
}

/** A call whose frames begin with the partition. */
export class RunningCall implements OrderedCall {
  readonly type: DataType
  readonly #rows: WindowRows
  readonly #call: WindowCall
  readonly #fold: Fold
  readonly reach: Reach
  /** The first row that was not added to the state. */
  #next = 0

  constructor(rows: WindowRows, call: WindowCall, slots: readonly number[]) {
    this.type = call.type
    this.#rows = rows
    this.#call = call
    this.#fold = foldOf(rows, call, slots)
    this.reach = new Reach(call)
  }

  *result(_order: WindowOrder, { from, to, startsPartition }: Block): Working<WindowResult> {
    const { u32 } = this.#rows.context.memory
    const column = new ResultColumn(this.#rows, this.type)
    const fold = this.#fold
    const ends = this.reach.frames === null ? -1 : this.reach.frames.hi >>> 2
    const repeats = this.#call.name !== 'lag'
    // Without a frame, lag() looks at the rows before, and a moving average at the current row, too.
    const own = repeats ? 1 : 0
    fold.bind()
    for (let row = from, changed = true; row < to; row++) {
      if ((row - from) % stepRows === stepRows - 1) yield 'working'
      if (startsPartition(row)) {
        fold.reset()
        this.#next = row
        changed = true
      }
      for (const end = ends < 0 ? row + own : u32[ends + row]!; this.#next < end; this.#next++) {
        fold.add(this.#next)
        changed = true
      }
      if (repeats && !changed) column.repeat(row)
      else column.set(row, fold.value(row))
      changed = false
    }
    return column.result
  }

  neededFor(to: number): number {
    return Math.min(this.#next, this.reach.neededFor(to))
  }

  drop(count: number): void {
    this.#next -= count
  }
}
