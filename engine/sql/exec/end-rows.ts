// min and max of the designated timestamp where a filter decides: the first row of a walk from that end. When none is found
// soon, all rows are aggregated as for any other column, which threads share.

import type { Value } from '../../types/value.js'
import type { AggregateCall, Plan } from '../plan/plan.js'
import type { ExecContext } from './context.js'
import { valuesOperator } from './rows-of-values.js'
import { orderedScanOperator } from './scan-ordered.js'
import type { ScanShape } from './scan-shape.js'
import { isBatch, type Operator, type Pull, type Vector } from './vector.js'

type AggregatePlan = Extract<Plan, { kind: 'aggregate' }>

/** About a million rows. */
const stepsMax = 64

interface End {
  readonly name: string
  /** Of the scan. */
  readonly column: number
}

/** undefined: something else is asked for. `otherwise` aggregates all rows. */
export function timeEndsOperator(
  context: ExecContext,
  plan: AggregatePlan,
  shape: ScanShape,
  otherwise: () => Operator,
): Operator | undefined {
  const ends = plan.keys.length > 0 ? [] : plan.aggregates.map((call) => endOf(call, shape))
  if (ends.length === 0 || !ends.every((end) => end !== undefined)) return undefined
  const known = new Map<string, Value>()
  let walk: Operator | null = null
  let steps = 0
  let result: Operator | null = null
  const pull = (): Pull => {
    if (result !== null) return result.pull()
    const end = ends.find(({ name }) => !known.has(name))
    if (end === undefined) {
      const row = ends.map(({ name }) => known.get(name) as Value)
      result = valuesOperator(context, plan.columns, (from) => (from === 0 ? [row] : []))
      return 'working'
    }
    walk ??= orderedScanOperator(context, shape, end.name === 'max')
    const pulled = walk.pull()
    if (pulled === 'waiting') return pulled
    if (isBatch(pulled)) {
      known.set(end.name, context.memory.i64[(pulled.vectors[end.column] as Vector).address >>> 3] as bigint)
      walk = null
      steps = 0
    } else if (pulled === null) for (const { name } of ends) known.set(name, null)
    else if (++steps > stepsMax) result = otherwise()
    return 'working'
  }
  return { pull }
}

function endOf({ name, args }: AggregateCall, { columnIds, snapshot }: ScanShape): End | undefined {
  const [argument, ...more] = args
  if ((name !== 'min' && name !== 'max') || argument?.kind !== 'column' || more.length > 0) return undefined
  const { timestampId } = snapshot.version.schema
  if (timestampId < 0 || columnIds[argument.index] !== timestampId) return undefined
  return { name, column: argument.index }
}
