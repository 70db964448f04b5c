// timestamp_floor and date_trunc with a constant unit: neighbouring rows mostly share their bucket, so the bucket of the
// last row is kept and asked first.

import { compileExpression } from '../../sql/functions/registry/evaluate.js'
import type { Expression, SampleInterval } from '../../sql/plan/plan.js'
import { nextBucket, parseSampleInterval } from '../../types/timestamp-floor.js'
import type { Value } from '../../types/value.js'
import type { ExecContext } from '../batch/context.js'
import { nullTicks, steadyBounds } from '../batch/steady-bounds.js'
import { batchRowsMax } from '../batch/vector.js'
import type { VectorEvaluator } from './expression.js'

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
  const { memory, space, evaluation, kernels } = context
  const source = compile(time)
  const argument: Expression = { kind: 'column', index: 0, type: time.type, position: call.position }
  const floor = compileExpression({ ...call, args: [unitText as Expression, argument] }, evaluation)
  const row: Value[] = []
  const address = space.take(batchRowsMax * 8)
  return (batch) => {
    const from = source(batch).address
    for (let index = 0; index < batch.rows; ) {
      const ts = memory.i64[(from >>> 3) + index]!
      row[0] = ts === nullTicks ? null : ts
      const start = (floor(row) ?? nullTicks) as bigint
      const [low, last] = start === nullTicks ? [ts, ts] : steadyBounds(ts, start, nextBucket(start, interval, unit))
      index = kernels.aggregate.fillWithin(from, index, batch.rows, low, last, 8, start, address)
    }
    return { type: call.type, address, dictionary: 0 }
  }
}

/** The interval of a floor with a constant unit; null: of another kind. */
export function constantInterval(name: string, unit: Expression | undefined): SampleInterval | null {
  if (unit?.kind !== 'constant' || typeof unit.value !== 'string') return null
  if (name === 'timestamp_floor') return parseSampleInterval(unit.value)
  const letter = truncated[unit.value.toLowerCase()]
  return name !== 'date_trunc' || letter === undefined ? null : { count: 1, unit: letter }
}
