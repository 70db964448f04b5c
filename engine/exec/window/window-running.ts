// State of window functions that is carried from block to block, when rows come in the order of the window and only few
// of them are in memory (window-ordered.ts): aggregates of frames that begin with the partition, and the values of
// first_value(), last_value(), nth_value() and lag() IGNORE NULLS over such frames, and exponential moving averages.

import type { WindowCall } from '../../sql/plan/plan.js'
import { castValue } from '../../types/convert.js'
import type { Value } from '../../types/value.js'
import { finite, type ValueReader, valueReader } from '../batch/values.js'
import { interpreterOf } from './window-any.js'
import { MovingAverage, movingNames } from './window-moving.js'
import { pickNames } from './window-pick.js'
import type { WindowRows } from './window-rows.js'
import { sumNames } from './window-sums.js'
import {
  type Halves,
  halvesReader,
  IntegerSums,
  isInteger,
  isNumeric,
  nullReader,
  numberReader,
} from './window-values.js'

/** A value of rows that are added one by one. */
export interface Fold {
  /** Called for each block: its rows are elsewhere in memory. */
  bind(): void
  reset(): void
  add(row: number): void
  /** The value of the rows added since reset(), for this row. */
  value(row: number): Value
}

/** `slots`: columns of the arguments. */
export function foldOf(rows: WindowRows, call: WindowCall, slots: readonly number[]): Fold {
  if (call.name === 'lag') return earlierValue(rows, call, slots)
  if (movingNames.has(call.name)) return new MovingAverage(rows, call, slots)
  if (pickNames.has(call.name)) return pickedValue(rows, call, slots)
  const [argument] = call.args
  if (sumNames.has(call.name) && call.type.name === 'DOUBLE' && argument !== undefined && isNumeric(argument.type))
    return isInteger(argument.type) ? integerSumOf(rows, call, slots) : sumOf(rows, call, slots)
  return aggregate(rows, call, slots)
}

function aggregate(rows: WindowRows, call: WindowCall, slots: readonly number[]): Fold {
  const { memory, strings } = rows.context
  const { accumulator, site } = interpreterOf(rows, call)
  let state = accumulator.init()
  let readers: ValueReader[] = []
  return {
    bind: () => {
      readers = slots.map((slot) => valueReader(memory, strings, rows.column(slot)))
    },
    reset: () => {
      state = accumulator.init()
    },
    add: (row) =>
      accumulator.add(
        state,
        readers.map((read) => read(row)),
        site,
      ),
    value: () => castValue(accumulator.result(state, site), site.type, call.type),
  }
}

/** sum() and avg() in the order of the rows, as in memory. */
function sumOf(rows: WindowRows, { name }: WindowCall, [slot = 0]: readonly number[]): Fold {
  const { memory } = rows.context
  let read = (_row: number): number => Number.NaN
  let [sum, count] = [0, 0]
  return {
    bind: () => {
      read = numberReader(memory, rows.column(slot), rows.rows, false)
    },
    reset: () => {
      sum = 0
      count = 0
    },
    add: (row) => {
      const value = read(row)
      if (Number.isNaN(value)) return
      sum += value
      count++
    },
    value: () => (count === 0 ? null : finite(name === 'sum' ? sum : sum / count)),
  }
}

/** sum() and avg() of integers. */
function integerSumOf(rows: WindowRows, { name }: WindowCall, [slot = 0]: readonly number[]): Fold {
  const sums = new IntegerSums()
  let halves: Halves | null = null
  let count = 0
  return {
    bind: () => {
      halves = halvesReader(rows.context.memory, rows.column(slot), rows.rows)
    },
    reset: () => {
      sums.reset(0)
      count = 0
    },
    add: (row) => {
      const low = halves?.low(row) ?? Number.NaN
      if (Number.isNaN(low)) return
      sums.add(0, halves?.high(row) ?? 0, low)
      count++
    },
    value: () => (count === 0 ? null : name === 'sum' ? sums.value(0) : sums.value(0) / count),
  }
}

/** first_value(), last_value() and nth_value() with a constant number. */
function pickedValue(rows: WindowRows, { name, args, ignoreNulls }: WindowCall, [slot = 0]: readonly number[]): Fold {
  const { memory, strings } = rows.context
  const wanted = name === 'nth_value' ? constantOf(args[1]) : 1
  let read: ValueReader = () => null
  let isNull = (_row: number): boolean => false
  let count = 0
  let found: Value = null
  return {
    bind: () => {
      read = valueReader(memory, strings, rows.column(slot))
      if (ignoreNulls) isNull = nullReader(memory, rows.column(slot))
    },
    reset: () => {
      count = 0
      found = null
    },
    add: (row) => {
      if (isNull(row)) return
      count++
      if (name === 'last_value' || count === wanted) found = read(row)
    },
    value: () => found,
  }
}

/** lag() IGNORE NULLS: the last values that are not NULL. */
function earlierValue(rows: WindowRows, call: WindowCall, [slot = 0, , fallback]: readonly number[]): Fold {
  const { memory, strings } = rows.context
  const distance = distanceOf(call)
  let values: Value[] = []
  let read: ValueReader = () => null
  let readOther: ValueReader = () => null
  let isNull = (_row: number): boolean => false
  return {
    bind: () => {
      read = valueReader(memory, strings, rows.column(slot))
      isNull = nullReader(memory, rows.column(slot))
      if (fallback !== undefined) readOther = valueReader(memory, strings, rows.column(fallback))
    },
    reset: () => {
      values = []
    },
    add: (row) => {
      if (isNull(row)) return
      values.push(read(row))
      if (values.length > distance) values.shift()
    },
    value: (row) => (values.length < distance ? readOther(row) : (values[0] ?? null)),
  }
}

/** The number in a constant argument; NaN for any other. */
export function constantOf(argument: WindowCall['args'][number] | undefined): number {
  return argument?.kind === 'constant' && argument.value !== null ? Number(argument.value) : Number.NaN
}

/** How many rows lag() and lead() go back or forward; NaN if that is no constant. */
export function distanceOf({ args: [, distance] }: WindowCall): number {
  return distance === undefined ? 1 : constantOf(distance)
}
