// Keys of dense groupings by generated kernels: symbols, booleans, bytes and buckets of the designated timestamp. Each key
// is a part of the group's number with as many values as the snapshot can have.

import type { GroupKey } from '../../kernels/jit/fragment.js'
import { dictionaryCount } from '../../storage/layout.js'
import type { TimestampUnit } from '../../types/timestamp-calendar.js'
import { floorTimestamp, intervalTicks } from '../../types/timestamp-floor.js'
import type { Value } from '../../types/value.js'
import type { Expression, SampleInterval } from '../plan/plan.js'
import type { ExecContext } from './context.js'
import { constantInterval } from './expression-floor.js'
import type { FragmentInputs } from './fragments.js'
import type { Run } from './pieces.js'
import type { ScanShape } from './scan-slices.js'

export interface DenseKey {
  /** Which of the keys of the result this is. */
  readonly place: number
  readonly key: GroupKey
  readonly count: number
  /** The key's value of a part. */
  readonly valueAt: (part: number) => Value
  /** Buckets of the designated timestamp: the part of a timestamp. */
  readonly bucketOf?: (ts: bigint) => number
}

export interface KeySource {
  readonly context: ExecContext
  readonly shape: ScanShape
  readonly runs: readonly Run[]
  readonly inputs: FragmentInputs
}

/** undefined: no dense key. */
export function denseKey(source: KeySource, expression: Expression): DenseKey | undefined {
  if (expression.type.name === 'SYMBOL') return symbolKey(source, expression)
  if (expression.type.name === 'BOOLEAN') {
    const part = source.inputs.expression(expression)
    if (part === null) return undefined
    return { place: 0, key: { kind: 'integer', expression: part, origin: 0 }, count: 2, valueAt: (at) => at === 1 }
  }
  return floorKey(source, expression)
}

function symbolKey({ context, shape, inputs }: KeySource, expression: Expression): DenseKey | undefined {
  if (expression.kind !== 'column') return undefined
  const id = shape.columnIds[expression.index]
  const dictionary = shape.snapshot.version.dictionaries.find(([columnId]) => columnId === id)?.[1]
  const part = inputs.expression(expression)
  if (dictionary === undefined || part === null) return undefined
  const textOf = context.texts.of(dictionary)
  return {
    place: 0,
    key: { kind: 'integer', expression: part, origin: 0 },
    count: dictionaryCount(context.memory, dictionary) + 1,
    valueAt: (at) => (at === 0 ? null : textOf(at - 1)),
  }
}

/** timestamp_floor('1h', ts) over the designated timestamp. */
function floorKey(source: KeySource, expression: Expression): DenseKey | undefined {
  if (expression.kind !== 'call' || expression.args.length !== 2) return undefined
  const interval = constantInterval(expression.name, expression.args[0])
  const time = expression.args[1]
  if (interval === null || time === undefined) return undefined
  return bucketKey(source, time, interval, 0n)
}

/** Buckets of fixed length; `offset` moves the grid. */
export function bucketKey(
  { shape, runs, inputs }: KeySource,
  time: Expression,
  interval: SampleInterval,
  offset: bigint,
): DenseKey | undefined {
  const { timestampId } = shape.snapshot.version.schema
  const unit = time.type.name as TimestampUnit
  if (time.kind !== 'column' || timestampId < 0 || shape.columnIds[time.index] !== timestampId) return undefined
  const step = intervalTicks(interval, unit)
  const part = inputs.expression(time)
  const bounds = timeBounds(shape, runs)
  if (step === null || part === null || bounds === undefined) return undefined
  const floor = (ts: bigint): bigint => floorTimestamp(ts - offset, interval, unit) + offset
  const origin = floor(bounds.min)
  const count = Number((floor(bounds.max) - origin) / step) + 1
  return {
    place: 0,
    key: { kind: 'bucket', expression: part, origin, step },
    count,
    valueAt: (at) => origin + BigInt(at) * step,
    bucketOf: (ts) => Number((ts - origin) / step),
  }
}

function timeBounds({ ranges }: ScanShape, runs: readonly Run[]): { min: bigint; max: bigint } | undefined {
  const [first] = runs
  if (first === undefined) return undefined
  let [min, max] = [first.minTs, first.maxTs]
  for (const run of runs) {
    if (run.minTs < min) min = run.minTs
    if (run.maxTs > max) max = run.maxTs
  }
  const lowest = ranges?.[0]?.lo
  const highest = ranges?.[ranges.length - 1]?.hi
  if (lowest !== undefined && lowest > min) min = lowest
  if (highest !== undefined && highest < max) max = highest
  return min <= max ? { min, max } : undefined
}
