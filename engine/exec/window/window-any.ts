// Computes any aggregate over any window frame, by the aggregate's interpreter; used where no faster implementation
// applies. If states of the aggregate are small and can be merged, and the frames exclude no rows, it uses a queue made
// of two stacks, as in window-sums.ts. Otherwise new rows are added to the aggregate's state as long as the frame only
// grows from row to row. Frames that end with the partition grow from its last row to its first one. Any other frame is
// aggregated from its first row.

import { assert } from '../../base/assert.js'
import type { Accumulator, CallSite } from '../../sql/functions/function-types.js'
import { aggregateOf, callSite } from '../../sql/functions/registry/evaluate.js'
import type { WindowCall } from '../../sql/plan/plan.js'
import { type DataType, dataType } from '../../types/column-types.js'
import { castValue } from '../../types/convert.js'
import type { Value } from '../../types/value.js'
import { type ValueReader, valueReader } from '../batch/values.js'
import { type Frames, type RangesAt, rangesOf } from './window-frames.js'
import type { WindowOrder, Working } from './window-order.js'
import { ResultColumn, type WindowResult } from './window-result.js'
import type { WindowRows } from './window-rows.js'

/** Values added in a step. */
const stepValues = 20_000

interface Interpreter {
  readonly accumulator: Accumulator<unknown>
  readonly site: CallSite
}

interface Aggregation extends Interpreter {
  readonly args: readonly ValueReader[]
  /** Row number by position. */
  readonly rowAt: (p: number) => number
}

export function* anyResult(
  order: WindowOrder,
  call: WindowCall,
  slots: readonly number[],
  frames: Frames,
): Working<WindowResult> {
  const forward = aggregationOf(order, call, slots)
  const endless = frames.exclude === 'none' && call.frame.lo !== null && call.frame.hi === null
  const name = endless && forward.accumulator.small !== true ? turnedName(call) : null
  const aggregation = name === null ? forward : aggregationOf(order, { ...call, name }, slots)
  const column = new ResultColumn(order.rows, call.type)
  const from = aggregation.site.type
  const write = (p: number, value: Value): void => column.set(aggregation.rowAt(p), castValue(value, from, call.type))
  const ranges = yield* rangesOf(order, frames)
  const slides = frames.exclude === 'none' && aggregation.accumulator.small === true
  const { u32 } = order.rows.context.memory
  for (let partition = 0; partition < order.partitions; partition++) {
    const start = u32[(order.starts >>> 2) + partition]!
    const end = u32[(order.starts >>> 2) + partition + 1]!
    if (start === end) continue
    if (name !== null) yield* growBackwards(aggregation, ranges, start, end, write)
    else yield* slides ? slide(aggregation, ranges, start, end, write) : grow(aggregation, ranges, start, end, write)
  }
  return column.result
}

function aggregationOf({ rows, order }: WindowOrder, call: WindowCall, slots: readonly number[]): Aggregation {
  const { memory, strings } = rows.context
  return {
    ...interpreterOf(rows, call),
    args: slots.map((slot) => valueReader(memory, strings, rows.column(slot))),
    rowAt: (p) => memory.u32[(order >>> 2) + p]!,
  }
}

/** The interpreter of a call's aggregate. */
export function interpreterOf(rows: WindowRows, call: WindowCall): Interpreter {
  const found = aggregateOf(call.name, call.args)
  assert(found !== undefined, `B1: no aggregate of that signature [name=${call.name}]`)
  const { evaluation } = rows.context
  return {
    accumulator: found.accumulator,
    site: callSite(aggregateType(call), call.args, call.position, evaluation),
  }
}

/** Functions that mean the same over rows in the opposite order. */
const turnedNames: ReadonlyMap<string, string> = new Map([
  ['first_value', 'last_value'],
  ['last_value', 'first_value'],
  ['lead', 'lag'],
  ['first', 'last'],
  ['last', 'first'],
  ['any_value', 'last_not_null'],
  ['first_not_null', 'last_not_null'],
  ['last_not_null', 'first_not_null'],
])

/** Aggregates that sort their points by time; points of the same time stay in the order of the rows. */
const timedNames: ReadonlySet<string> = new Set(['twap', 'haversine_dist_deg'])

/** The function that has the same value over rows in the opposite order; null if there is none. */
export function turnedName({ name, args }: WindowCall): string | null {
  const turned = turnedNames.get(name)
  if (turned !== undefined) return turned
  const aggregate = timedNames.has(name) ? undefined : aggregateOf(name, args)
  return aggregate !== undefined && aggregate.ordered !== true ? name : null
}

/** SQL sums of integers are DOUBLE in window functions; the interpreter sums in a wide DECIMAL, without overflow. */
function aggregateType({ name, args, type }: WindowCall): DataType {
  const integers = ['BYTE', 'SHORT', 'INT', 'LONG'].includes(args[0]?.type.name ?? '')
  return name === 'sum' && integers ? dataType('DECIMAL', 76) : type
}

function add({ accumulator, args, rowAt, site }: Aggregation, state: unknown, p: number): void {
  const row = rowAt(p)
  accumulator.add(
    state,
    args.map((read) => read(row)),
    site,
  )
}

/** Keeps the state as long as the frame only grows at its end. */
function* grow(
  aggregation: Aggregation,
  ranges: RangesAt,
  start: number,
  end: number,
  write: (p: number, value: Value) => void,
): Working {
  const { accumulator, site } = aggregation
  const bounds = new Uint32Array(6)
  let state = accumulator.init()
  let [first, next] = [start, start]
  let value = accumulator.result(state, site)
  let work = 0
  for (let p = start; p < end; p++) {
    const count = ranges(p, bounds)
    const simple = count === 1 && bounds[0] === first && bounds[1]! >= next
    if (!simple) state = accumulator.init()
    const before = work
    for (let range = 0; range < count; range++) {
      let at = simple ? next : bounds[range * 2]!
      for (const to = bounds[range * 2 + 1]!; at < to; at++) {
        add(aggregation, state, at)
        if (++work % stepValues === 0) yield 'working'
      }
    }
    first = count === 1 ? bounds[0]! : end
    next = bounds[1]!
    if (!simple || work > before) value = accumulator.result(state, site)
    write(p, value)
    if (++work % stepValues === 0) yield 'working'
  }
}

/** The same for frames that end with the partition. */
function* growBackwards(
  aggregation: Aggregation,
  ranges: RangesAt,
  start: number,
  end: number,
  write: (p: number, value: Value) => void,
): Working {
  const { accumulator, site } = aggregation
  const bounds = new Uint32Array(2)
  const state = accumulator.init()
  let value = accumulator.result(state, site)
  let first = end
  let work = 0
  for (let p = end - 1; p >= start; p--) {
    ranges(p, bounds)
    const before = first
    while (first > bounds[0]!) {
      add(aggregation, state, --first)
      if (++work % stepValues === 0) yield 'working'
    }
    if (first < before) value = accumulator.result(state, site)
    write(p, value)
    if (++work % stepValues === 0) yield 'working'
  }
}

function* slide(
  aggregation: Aggregation,
  ranges: RangesAt,
  start: number,
  end: number,
  write: (p: number, value: Value) => void,
): Working {
  const { accumulator, site } = aggregation
  const bounds = new Uint32Array(2)
  /** For the rows [lo, mid): the state of each row and all rows after it, up to mid. */
  let suffixes: unknown[] = []
  let suffixFrom = start
  let [mid, taken] = [start, start]
  let running = accumulator.init()
  for (let p = start; p < end; p++) {
    ranges(p, bounds)
    const lo = bounds[0]!
    const hi = bounds[1]!
    for (; taken < hi; taken++) add(aggregation, running, taken)
    if (lo > mid) {
      suffixes = suffixAccumulators(aggregation, lo, taken)
      suffixFrom = lo
      mid = taken
      running = accumulator.init()
    }
    let state = running
    if (lo < mid) {
      state = accumulator.init()
      accumulator.merge(state, suffixes[lo - suffixFrom], site)
      accumulator.merge(state, running, site)
    }
    write(p, accumulator.result(state, site))
    if ((p - start) % 4096 === 4095) yield 'working'
  }
}

function suffixAccumulators(aggregation: Aggregation, lo: number, taken: number): unknown[] {
  const { accumulator, site } = aggregation
  const states = new Array<unknown>(taken - lo)
  for (let p = taken - 1; p >= lo; p--) {
    const state = accumulator.init()
    add(aggregation, state, p)
    if (p + 1 < taken) accumulator.merge(state, states[p + 1 - lo], site)
    states[p - lo] = state
  }
  return states
}
