// Generates the WebAssembly code of aggregation without GROUP BY. A step of the loop processes one or two lane groups
// (four adjacent rows each), and each has accumulators of its own in SIMD registers, so that they do not wait for each
// other. At the end of the call they are combined and added to the result in memory.

import { nonNull } from '../../base/assert.js'
import type { FunctionBuilder } from './assembler.js'
import { type Cell, mergedExtremes, pairsOf, type RecordLayout } from './cells.js'
import type { Local } from './code-writer.js'
import { promoted } from './lane-casts.js'
import { numbersOf } from './lane-numbers.js'
import {
  asNarrow,
  bothMasks,
  extended,
  intMaximum,
  intMinimum,
  invertMask,
  isWide,
  type LaneGroup,
  longMaximum,
  longMinimum,
  type Mask,
  maskFor,
  missingMask,
  type Numbers,
  presentMask,
  splatDouble,
  splatFloat,
  splatInt,
  splatLong,
  upperHalf,
} from './lanes.js'
import type { Kind } from './lower.js'
import type { Operation } from './opcodes.js'
import type { RowLoop } from './rows.js'

export interface Accumulator {
  /** Adds four rows; `slot` is the index of the lane group within the step. */
  add(laneGroup: LaneGroup, slot: number, mask: Mask | null): void
  /** Adds the accumulators to the cell of the record at the address. */
  finish(state: Local): void
}

export interface TotalContext {
  readonly loop: RowLoop
  /** Parameter: number of the first row, i64. */
  readonly firstRow: Local
  /** Whether there is no predicate. */
  readonly everyRow: boolean
}

export function accumulators(context: TotalContext, { cells }: RecordLayout): Accumulator[] {
  return cells.map((cell) => {
    switch (cell.kind) {
      case 'sums':
        return sumsOf(context, cell)
      case 'wide':
        return wideSumsOf(context, cell)
      case 'extremes':
        return extremesOf(context, cell)
      case 'count':
        return countOf(context, cell)
      case 'rows':
        return rowsOf(context, cell)
    }
  })
}

/** Local variables that are created at their first use, by slot and part. */
function variables(
  f: FunctionBuilder,
  start: () => Local | null,
): { at(slot: number, part: number): Local; all(): Local[] } {
  const made = new Map<string, Local>()
  return {
    at: (slot, part) => {
      const key = `${slot},${part}`
      const known = made.get(key)
      if (known !== undefined) return known
      const variable = f.local('v128')
      const first = start()
      if (first !== null) f.hoist(() => f.move(variable, first))
      made.set(key, variable)
      return variable
    },
    all: () => [...made.values()],
  }
}

/** Combines all variables into one vector by a commutative operation. */
function combined(f: FunctionBuilder, locals: readonly Local[], combine: (a: Local, b: Local) => Local): Local {
  return locals.length === 0 ? splatInt(f, 0) : locals.reduce(combine)
}

function applying(f: FunctionBuilder, operation: Operation): (a: Local, b: Local) => Local {
  return (a, b) => f.apply(operation, a, b)
}

// Counts ------------------------------------------------------------------------------------------------------------

interface Counter {
  add(slot: number, mask: Mask | null): void
  /** i64 */
  total(): Local
}

/** Counts lanes of masks, which are -1. `null` masks count all rows of the call. */
function counter({ loop }: TotalContext): Counter {
  const { f } = loop.env
  const narrow = variables(f, () => null)
  const wide = variables(f, () => null)
  let everyRow = false
  return {
    add: (slot, mask) => {
      if (mask === null) everyRow = true
      else if (everyRow) return
      else if (mask.wide !== null && mask.narrow === null)
        mask.wide.forEach((part, index) => {
          const variable = wide.at(slot, index)
          f.assign(variable, 'i64x2.sub', variable, part)
        })
      else {
        const variable = narrow.at(slot, 0)
        f.assign(variable, 'i32x4.sub', variable, asNarrow(f, mask))
      }
    },
    total: () => {
      if (everyRow) return f.apply('i64.extend_i32_u', loop.rows)
      const parts = wide.all()
      for (const variable of narrow.all()) parts.push(...extended(f, variable))
      return laneSum(f, combined(f, parts, applying(f, 'i64x2.add')))
    },
  }
}

function laneSum(f: FunctionBuilder, vector: Local): Local {
  const lanes = [0, 1].map((lane) => f.extract('i64x2.extract_lane', vector, lane))
  return f.apply('i64.add', nonNull(lanes[0]), nonNull(lanes[1]))
}

/** The rows whose values a cell uses; null = all. */
function takenRows(context: TotalContext, laneGroup: LaneGroup, cell: Cell, mask: Mask | null): Mask | null {
  const { f } = context.loop.env
  const { node } = cell
  if (node === null || node.missing === 'never') return context.everyRow && cell.kind === 'count' ? null : mask
  return bothMasks(f, presentMask(f, numbersOf(laneGroup, node)), mask)
}

function countOf(context: TotalContext, cell: Cell): Accumulator {
  const { f } = context.loop.env
  const count = counter(context)
  return {
    add: (laneGroup, slot, mask) => count.add(slot, takenRows(context, laneGroup, cell, mask)),
    finish: (state) => increaseLong(f, state, cell.offset, count.total()),
  }
}

function increaseLong(f: FunctionBuilder, state: Local, offset: number, by: Local): void {
  f.store('i64.store', state, offset, f.apply('i64.add', f.load('i64.load', state, offset), by))
}

function increaseDouble(f: FunctionBuilder, state: Local, offset: number, by: Local): void {
  f.store('f64.store', state, offset, f.apply('f64.add', f.load('f64.load', state, offset), by))
}

// Sums --------------------------------------------------------------------------------------------------------------

/** The values, with 0 for unused rows. */
export function takenValues(f: FunctionBuilder, { kind, parts }: Numbers, taken: Mask | null): readonly Local[] {
  const values = taken === null ? parts : zeroed(f, kind, parts, taken)
  if (kind === 'f32') return promoted(f, nonNull(values[0]))
  return isWide(kind) ? values : extended(f, nonNull(values[0]))
}

function zeroed(f: FunctionBuilder, kind: Kind, parts: readonly Local[], taken: Mask): readonly Local[] {
  const bits = maskFor(f, taken, kind)
  return parts.map((part, index) => f.apply('v128.and', part, nonNull(bits[index])))
}

function sumsOf(context: TotalContext, cell: Cell): Accumulator {
  const { f } = context.loop.env
  const node = cell.node as NonNullable<Cell['node']>
  const count = counter(context)
  const sums = variables(f, () => null)
  const add: Operation = cell.floating ? 'f64x2.add' : 'i64x2.add'
  return {
    add: (laneGroup, slot, mask) => {
      const taken = takenRows(context, laneGroup, cell, mask)
      takenValues(f, numbersOf(laneGroup, node), taken).forEach((part, index) => {
        const variable = sums.at(slot, index)
        f.assign(variable, add, variable, part)
      })
      count.add(slot, node.missing === 'never' && context.everyRow ? null : taken)
    },
    finish: (state) => {
      const vector = combined(f, sums.all(), applying(f, add))
      if (!cell.floating) {
        increaseLong(f, state, cell.offset, laneSum(f, vector))
        increaseLong(f, state, cell.offset + 8, count.total())
        return
      }
      const lanes = [0, 1].map((lane) => f.extract('f64x2.extract_lane', vector, lane))
      increaseDouble(f, state, cell.offset, f.apply('f64.add', nonNull(lanes[0]), nonNull(lanes[1])))
      increaseDouble(f, state, cell.offset + 8, f.apply('f64.convert_i64_s', count.total()))
    },
  }
}

/** High words, sign-extended to 64 bits. */
export function signedHighWords(f: FunctionBuilder, values: readonly Local[]): readonly Local[] {
  const bits = f.number('i32', 32)
  return values.map((part) => f.apply('i64x2.shr_s', part, bits))
}

function wideSumsOf(context: TotalContext, cell: Cell): Accumulator {
  const { f } = context.loop.env
  const node = cell.node as NonNullable<Cell['node']>
  const count = counter(context)
  const sums = variables(f, () => null)
  const highs = variables(f, () => null)
  const addAll = (target: typeof sums, slot: number, parts: readonly Local[]): void =>
    parts.forEach((part, index) => {
      const variable = target.at(slot, index)
      f.assign(variable, 'i64x2.add', variable, part)
    })
  return {
    add: (laneGroup, slot, mask) => {
      const taken = takenRows(context, laneGroup, cell, mask)
      const values = takenValues(f, numbersOf(laneGroup, node), taken)
      addAll(sums, slot, values)
      addAll(highs, slot, signedHighWords(f, values))
      count.add(slot, node.missing === 'never' && context.everyRow ? null : taken)
    },
    finish: (state) => {
      const add = applying(f, 'i64x2.add')
      increaseLong(f, state, cell.offset, laneSum(f, combined(f, sums.all(), add)))
      increaseLong(f, state, cell.offset + 8, count.total())
      increaseLong(f, state, cell.offset + 16, laneSum(f, combined(f, highs.all(), add)))
    },
  }
}

// Extremes ----------------------------------------------------------------------------------------------------------

interface Range {
  add(slot: number, numbers: Numbers, mask: Mask | null): void
  /** {low, high} in the layout of a cell. */
  pair(): Local
}

function extremesOf(context: TotalContext, cell: Cell): Accumulator {
  const { f } = context.loop.env
  const node = cell.node as NonNullable<Cell['node']>
  const range = rangeOf(f, node.kind)
  return {
    add: (laneGroup, slot, mask) => range.add(slot, numbersOf(laneGroup, node), mask),
    finish: (state) => mergePair(f, cell, state, range.pair()),
  }
}

/** Row numbers are relative to the call; the number of its first row is added at the end. */
function rowsOf(context: TotalContext, cell: Cell): Accumulator {
  const { f } = context.loop.env
  const range = rangeOf(f, 'i32')
  return {
    add: (laneGroup, slot, mask) => {
      const parts = [positions(context.loop, laneGroup)]
      range.add(slot, { kind: 'i32', parts, missing: 'never' }, takenRows(context, laneGroup, cell, mask))
    },
    finish: (state) => {
      const base = f.apply('i64x2.splat', context.firstRow)
      mergePair(f, cell, state, range.pair(), base)
    },
  }
}

/** Row numbers of four rows within the call. */
export function positions({ env, position }: RowLoop, laneGroup: LaneGroup): Local {
  const { f } = env
  const lanes = Int32Array.of(0, 1, 2, 3).map((lane) => lane + laneGroup.row)
  return f.apply('i32x4.add', f.apply('i32x4.splat', position), f.vector(new Uint8Array(lanes.buffer)))
}

/** Merges a pair into the cell. 32-bit ranges have other neutral elements than cells, so unset ones are skipped. */
function mergePair(f: FunctionBuilder, cell: Cell, state: Local, pair: Local, base?: Local): void {
  const merge = (): void => {
    const value = base === undefined ? pair : f.apply('i64x2.add', pair, base)
    const old = f.load('v128.load', state, cell.offset)
    f.store('v128.store', state, cell.offset, mergedExtremes(f, cell.floating, old, value))
  }
  if (cell.floating) {
    merge()
    return
  }
  const [low, high] = [0, 1].map((lane) => f.extract('i64x2.extract_lane', pair, lane))
  f.get(low as Local)
  f.get(high as Local)
  f.op('i64.le_s')
  f.when(merge)
}

function rangeOf(f: FunctionBuilder, kind: Kind): Range {
  const [bottom, top] = boundsOf(f, kind)
  const lows = variables(f, () => top)
  const highs = variables(f, () => bottom)
  const least = (a: Local, b: Local): Local => lesser(f, kind, a, b)
  const most = (a: Local, b: Local): Local => greater(f, kind, a, b)
  return {
    add: (slot, numbers, mask) => {
      const [low, high] = candidates(f, numbers, mask)
      low.forEach((part, index) => f.move(lows.at(slot, index), least(lows.at(slot, index), part)))
      high.forEach((part, index) => f.move(highs.at(slot, index), most(highs.at(slot, index), part)))
    },
    pair: () => {
      const low = bestLane(f, kind, combined(f, lows.all(), least), lesser)
      const high = bestLane(f, kind, combined(f, highs.all(), most), greater)
      return pairsOf(f, low, high)[0]
    },
  }
}

/** The best of all lanes as a 64-bit lane 0. */
function bestLane(f: FunctionBuilder, kind: Kind, vector: Local, best: typeof lesser): Local {
  const wide: Kind = kind === 'f32' || kind === 'f64' ? 'f64' : 'i64'
  const parts = kind === 'f32' ? promoted(f, vector) : kind === 'i32' ? extended(f, vector) : [vector]
  const one = parts.reduce((a, b) => best(f, wide, a, b))
  return best(f, wide, one, upperHalf(f, one))
}

/** Minimum and maximum of a kind, in every lane. */
function boundsOf(f: FunctionBuilder, kind: Kind): readonly [Local, Local] {
  switch (kind) {
    case 'f64':
      return [splatDouble(f, Number.NEGATIVE_INFINITY), splatDouble(f, Number.POSITIVE_INFINITY)]
    case 'f32':
      return [splatFloat(f, Number.NEGATIVE_INFINITY), splatFloat(f, Number.POSITIVE_INFINITY)]
    case 'i64':
      return [splatLong(f, longMinimum), splatLong(f, longMaximum)]
    default:
      return [splatInt(f, intMinimum), splatInt(f, intMaximum)]
  }
}

function lesser(f: FunctionBuilder, kind: Kind, a: Local, b: Local): Local {
  if (kind === 'f64' || kind === 'f32') return f.apply(kind === 'f64' ? 'f64x2.pmin' : 'f32x4.pmin', a, b)
  return kind === 'i64' ? f.apply('v128.bitselect', b, a, f.apply('i64x2.gt_s', a, b)) : f.apply('i32x4.min_s', a, b)
}

function greater(f: FunctionBuilder, kind: Kind, a: Local, b: Local): Local {
  if (kind === 'f64' || kind === 'f32') return f.apply(kind === 'f64' ? 'f64x2.pmax' : 'f32x4.pmax', a, b)
  return kind === 'i64' ? f.apply('v128.bitselect', a, b, f.apply('i64x2.gt_s', a, b)) : f.apply('i32x4.max_s', a, b)
}

/** Replaces NULL, the smallest integer, by the largest one (all bits inverted). */
function withoutNull(f: FunctionBuilder, numbers: Numbers): readonly Local[] {
  const missing = maskFor(f, missingMask(f, numbers), numbers.kind)
  return numbers.parts.map((part, index) => f.apply('v128.xor', part, nonNull(missing[index])))
}

/**
 * The values as candidates for minimum and maximum; unused rows never win. NULL is the smallest integer, so it is only
 * excluded from the minimum; NaN is never chosen.
 */
export function candidates(
  f: FunctionBuilder,
  numbers: Numbers,
  mask: Mask | null,
): readonly [readonly Local[], readonly Local[]] {
  const { kind, parts } = numbers
  if (numbers.missing === 'nan') {
    if (mask === null) return [parts, parts]
    const gone = maskFor(f, invertMask(f, mask), kind)
    const values = parts.map((part, index) => f.apply('v128.or', part, nonNull(gone[index])))
    return [values, values]
  }
  const [bottom, top] = boundsOf(f, kind)
  if (mask === null && numbers.missing === 'minimum') return [withoutNull(f, numbers), parts]
  const taken = bothMasks(f, numbers.missing === 'never' ? null : presentMask(f, numbers), mask)
  const choose = (other: Local, bits: Mask | null): readonly Local[] => {
    if (bits === null) return parts
    const chosen = maskFor(f, bits, kind)
    return parts.map((part, index) => f.apply('v128.bitselect', part, other, nonNull(chosen[index])))
  }
  return [choose(top, taken), choose(bottom, mask)]
}
