// Operator: aggregates without GROUP BY whose result is determined by the first or last matching rows of a table:
// first(), last(), and min and max of the designated timestamp (the table's time column) under a filter. It scans the
// table in time order from both ends, and stops at the rows that it needs. If it does not find them within some steps,
// all rows are aggregated instead, on several threads. If the query has other aggregates, too, the planner has moved
// them to a separate aggregation (sql/plan/separate-aggregates.ts).

import { type FirstLast, firstLast } from '../../sql/plan/first-last.js'
import type { AggregateCall, Expression, Plan } from '../../sql/plan/plan.js'
import type { Value } from '../../types/value.js'
import type { ExecContext } from '../batch/context.js'
import { valueReader } from '../batch/values.js'
import { type Batch, isBatch, type Operator, type Pull } from '../batch/vector.js'
import { compileVector, type VectorEvaluator } from '../expression/expression.js'
import { valuesOperator } from '../operators/rows-of-values.js'
import { orderedScanOperator, shortWalkSteps } from './scan-ordered.js'
import type { ScanShape } from './scan-shape.js'

type AggregatePlan = Extract<Plan, { kind: 'aggregate' }>

interface End extends FirstLast {
  /** Index among the aggregates. */
  readonly place: number
  readonly argument: Expression
}

const ofTime: Readonly<Record<string, FirstLast>> = {
  min: { descending: false, present: false },
  max: { descending: true, present: false },
}

/** undefined when there are other aggregates, or keys. `otherwise` builds the operator that aggregates all rows. */
export function firstLastOperator(
  context: ExecContext,
  plan: AggregatePlan,
  shape: ScanShape,
  otherwise: () => Operator,
): Operator | undefined {
  const { timestampId } = shape.snapshot.version.schema
  if (plan.keys.length > 0 || timestampId < 0) return undefined
  const ends = plan.aggregates.flatMap((call, place) => endOf(call, place, shape))
  if (ends.length < plan.aggregates.length) return undefined
  const row: Value[] = ends.map(() => null)
  let walks: EndWalk[] | null = null
  let result: Operator | null = null
  const pull = (): Pull => {
    if (result !== null) return result.pull()
    walks ??= [false, true].flatMap((descending) => walkOf(context, shape, ends, descending))
    const walk = walks.find(({ over }) => !over)
    if (walk === undefined) {
      result = valuesOperator(context, plan.columns, (from) => (from === 0 ? [row] : []))
      return 'working'
    }
    const pulled = walk.step(row)
    if (walk.steps > shortWalkSteps && !walk.over) result = otherwise()
    return pulled
  }
  return { pull }
}

function endOf(call: AggregateCall, place: number, { columnIds, snapshot }: ScanShape): End[] {
  const [argument] = call.args
  if (argument === undefined) return []
  const isTime = argument.kind === 'column' && columnIds[argument.index] === snapshot.version.schema.timestampId
  const end = firstLast(call) ?? (isTime ? ofTime[call.name] : undefined)
  return end === undefined ? [] : [{ ...end, place, argument }]
}

function walkOf(context: ExecContext, shape: ScanShape, ends: readonly End[], descending: boolean): EndWalk[] {
  const own = ends.filter((end) => end.descending === descending)
  return own.length === 0 ? [] : [new EndWalk(context, orderedScanOperator(context, shape, descending), own)]
}

class EndWalk {
  over = false
  steps = 0
  readonly #context: ExecContext
  readonly #rows: Operator
  /** Values that are not found yet. */
  #wanted: readonly { readonly end: End; readonly evaluate: VectorEvaluator }[]

  constructor(context: ExecContext, rows: Operator, ends: readonly End[]) {
    this.#context = context
    this.#rows = rows
    this.#wanted = ends.map((end) => ({ end, evaluate: compileVector(end.argument, context) }))
  }

  /** Pulls one batch, and writes the values found to `row`. */
  step(row: Value[]): 'working' | 'waiting' {
    const pulled = this.#rows.pull()
    if (pulled === 'waiting') return pulled
    this.steps++
    if (isBatch(pulled) && pulled.rows > 0)
      this.#wanted = this.#wanted.filter(({ end, evaluate }) => !this.#finds(end, evaluate, pulled, row))
    this.over = pulled === null || this.#wanted.length === 0
    return 'working'
  }

  #finds({ place, present }: End, evaluate: VectorEvaluator, batch: Batch, values: Value[]): boolean {
    const { memory, strings } = this.#context
    const valueAt = valueReader(memory, strings, evaluate(batch))
    for (let row = 0; row < (present ? batch.rows : 1); row++) {
      const value = valueAt(row)
      if (value === null && present) continue
      values[place] = value
      return true
    }
    return false
  }
}
