// Determines which GROUP BY keys the aggregation in generated code (WebAssembly compiled for the query) supports
// (fragment-aggregate.ts): symbols (dictionary-encoded strings) and BOOLEAN, whose values are combined to one small
// group id; and functions of the designated timestamp (the table's time column) that are constant within time buckets,
// such as timestamp_floor.

import type { GroupKey } from '../../kernels/jit/fragment.js'
import { dictionaryCount } from '../../memory/column-layout.js'
import type { Expression } from '../../sql/plan/plan.js'
import type { Value } from '../../types/value.js'
import { type BucketGrid, type Buckets, calendarBuckets } from '../aggregate/buckets.js'
import type { ExecContext } from '../batch/context.js'
import type { FragmentInputs } from '../expression/fragments.js'
import { piecewiseConstantCall, piecewiseConstantEvaluator } from '../expression/piecewise-constant.js'
import type { Run } from '../scan/morsels.js'
import type { ScanShape } from '../scan/scan-shape.js'

export interface DenseKey {
  /** Position among the keys of the result. */
  readonly place: number
  readonly key: GroupKey
  readonly count: number
  /** The value of the key for its part of the group id. */
  readonly valueAt: (part: number) => Value
  /** The dictionary of a symbol key, whose part is id + 1; else 0. */
  readonly dictionary: number
}

export interface KeySource {
  readonly context: ExecContext
  readonly shape: ScanShape
  readonly inputs: FragmentInputs
}

/** undefined when the expression is not such a key. */
export function denseKey(source: KeySource, expression: Expression): DenseKey | undefined {
  if (expression.type.name === 'SYMBOL') return symbolKey(source, expression)
  if (expression.type.name !== 'BOOLEAN') return undefined
  const part = source.inputs.expression(expression)
  if (part === null) return undefined
  return {
    place: 0,
    key: { kind: 'integer', expression: part, origin: 0 },
    count: 2,
    valueAt: (at) => at === 1,
    dictionary: 0,
  }
}

function symbolKey({ context, shape, inputs }: KeySource, expression: Expression): DenseKey | undefined {
  if (expression.kind !== 'column') return undefined
  const id = shape.columnIds[expression.index]
  const dictionary = shape.snapshot.version.dictionaries.find(([columnId]) => columnId === id)?.[1]
  if (dictionary === undefined) return undefined
  const part = inputs.symbol(expression.index)
  const textOf = context.strings.of(dictionary)
  return {
    place: 0,
    key: { kind: 'integer', expression: part, origin: 0 },
    count: dictionaryCount(context.memory, dictionary) + 1,
    valueAt: (at) => (at === 0 ? null : textOf(at - 1)),
    dictionary,
  }
}

/** A key that is constant within a time bucket. */
export interface BucketKey {
  readonly buckets: Buckets
  /** The value of the key; several buckets may have the same value. */
  readonly keyOf: (start: bigint) => Value
  /** Whether each bucket has a different value. */
  readonly isInjective: boolean
}

/** timestamp_floor('1h', ts), hour(ts) and similar functions of the designated timestamp. */
export function bucketKey({ context, shape }: KeySource, expression: Expression): BucketKey | undefined {
  const piecewise = expression.kind === 'call' ? piecewiseConstantCall(expression) : undefined
  if (piecewise === undefined || !isOwnTime(shape, piecewise.time)) return undefined
  // A timestamp that is rounded down identifies its bucket.
  const isInjective = expression.type.name === piecewise.unit
  if (!isInjective && expression.type.name !== 'INT') return undefined
  const buckets = calendarBuckets(piecewise.interval, piecewise.unit)
  return {
    buckets,
    keyOf: isInjective ? (start) => start : piecewiseConstantEvaluator(piecewise, context),
    isInjective,
  }
}

function isOwnTime({ columnIds, snapshot }: ScanShape, time: Expression | undefined): time is Expression {
  const { timestampId } = snapshot.version.schema
  return time?.kind === 'column' && timestampId >= 0 && columnIds[time.index] === timestampId
}

/** Estimated number of buckets of the rows. */
export function bucketCount(scan: ScanShape, runs: readonly Run[], buckets: Buckets): number {
  const span = timeSpan(scan, runs)
  if (span === null) return 0
  const { start, end } = buckets.of(span.min)
  return Number(span.max - start) / Number(end - start) + 1
}

/** null when there are no rows, or the buckets are not equally long. */
export function bucketGrid(scan: ScanShape, runs: readonly Run[], buckets: Buckets): BucketGrid | null {
  const span = timeSpan(scan, runs)
  if (span === null || buckets.step === null) return null
  const origin = buckets.of(span.min).start
  return { origin, step: buckets.step, count: Number((span.max - origin) / buckets.step) + 1 }
}

/** The range of timestamps of the rows; null when there are none. */
function timeSpan({ ranges }: ScanShape, runs: readonly Run[]): { readonly min: bigint; readonly max: bigint } | null {
  const [first] = runs
  if (first === undefined) return null
  let [min, max] = [first.minTs, first.maxTs]
  for (const run of runs) {
    if (run.minTs < min) min = run.minTs
    if (run.maxTs > max) max = run.maxTs
  }
  const lowest = ranges?.[0]?.lo
  const highest = ranges?.[ranges.length - 1]?.hi
  if (lowest !== undefined && lowest > min) min = lowest
  if (highest !== undefined && highest < max) max = highest
  return min > max ? null : { min, max }
}
