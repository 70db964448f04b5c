// timestamp_floor and date_trunc with a constant unit: neighbouring rows mostly share their bucket, so the bucket of the
// last row is kept and asked first.

import { nextBucket, parseSampleInterval } from '../../types/timestamp-floor.js'
import type { Value } from '../../types/value.js'
import { compileExpression } from '../functions/evaluate.js'
import type { Expression, SampleInterval } from '../plan/plan.js'
import type { ExecContext } from './context.js'
import type { VectorEvaluator } from './expression.js'
import { batchRowsMax } from './vector.js'

type Call = Extract<Expression, { kind: 'call' }>

const truncated: Record<string, SampleInterval['unit']> = {
  second: 's',
  minute: 'm',
  hour: 'h',
  day: 'd',
  week: 'w',
  month: 'M',
  year: 'y',
}

/** undefined: not of that kind. `compile` compiles the timestamp. */
export function compileFloor(
  call: Call,
  context: ExecContext,
  compile: (expression: Expression) => VectorEvaluator,
): VectorEvaluator | undefined {
  const [unitText, time, ...more] = call.args
  const unit = time?.type.name
  if (more.length > 0 || time === undefined || (unit !== 'TIMESTAMP' && unit !== 'TIMESTAMP_NS')) return undefined
  const interval = constantInterval(call.name, unitText)
  if (interval === null) return undefined
  const { memory, space, evaluation } = context
  const source = compile(time)
  const argument: Expression = { kind: 'column', index: 0, type: time.type, position: call.position }
  const floor = compileExpression({ ...call, args: [unitText as Expression, argument] }, evaluation)
  const row: Value[] = []
  const address = space.take(batchRowsMax * 8)
  const { u32, i32, i64 } = memory
  return (batch) => {
    const from = source(batch).address
    // Of the bucket: bounds as doubles (a safe distance from both ends is left to the exact way), its start as halves.
    let [low, high, startLow, startHigh] = [1, 0, 0, 0]
    for (let index = 0; index < batch.rows; index++) {
      const word = (from >>> 2) + index * 2
      const out = (address >>> 2) + index * 2
      const ts = (i32[word + 1] as number) * 0x1_0000_0000 + (u32[word] as number)
      if (!(ts >= low && ts < high)) {
        const value = i64[word >>> 1] as bigint
        row[0] = value === -(2n ** 63n) ? null : value
        const start = floor(row)
        i64[out >>> 1] = start === null ? -(2n ** 63n) : (start as bigint)
        if (start === null) continue
        startLow = u32[out] as number
        startHigh = i32[out + 1] as number
        low = Number(start) + roundingTicks
        high = Number(nextBucket(start as bigint, interval, unit)) - roundingTicks
        continue
      }
      u32[out] = startLow
      i32[out + 1] = startHigh
    }
    return { type: call.type, address, dictionary: 0 }
  }
}

/** Doubles are exact to 256 for nanoseconds of this century. */
const roundingTicks = 1024

/** The interval of a floor with a constant unit; null: of another kind. */
export function constantInterval(name: string, unit: Expression | undefined): SampleInterval | null {
  if (unit?.kind !== 'constant' || typeof unit.value !== 'string') return null
  if (name === 'timestamp_floor') return parseSampleInterval(unit.value)
  const letter = truncated[unit.value.toLowerCase()]
  return name !== 'date_trunc' || letter === undefined ? null : { count: 1, unit: letter }
}
