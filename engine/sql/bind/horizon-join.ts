// Binds HORIZON JOIN, which returns each row of the left side once for every offset in a list, such as -1m, 0 and 1m,
// joined with the last row of the right side at or before the left row's time plus that offset. The offset and the
// shifted time can be read as columns of the join's alias.
//
// The plan is an ASOF join: the left rows are cross-joined with the offsets, the shifted time is computed as a column,
// and the rows are sorted by it. Further right sides are joined with these rows in the same way.

import { nonNull } from '../../base/assert.js'
import { SqlError } from '../../base/errors.js'
import { horizonOffsetsMax } from '../../base/limits.js'
import { ticksPerUnit } from '../../types/timestamp-floor.js'
import type * as ast from '../ast/ast.js'
import { joinPlan } from '../plan/join-plan.js'
import type { Plan } from '../plan/plan.js'
import type { BindContext } from '../scope/bind-context.js'
import { timestampHint } from '../scope/sample-errors.js'
import type { Relation } from '../scope/scope.js'
import { scalarCall } from '../typing/make-call.js'
import { bindJoin } from './join.js'
import { columnExpression, sorted, withExtra } from './order.js'
import { longType } from './per-row.js'

/** The first join has the offsets. */
export function bindHorizonJoins(left: Relation, joins: readonly ast.Join[], context: BindContext): Relation {
  const { horizon, position } = nonNull(joins[0])
  const time = left.plan.columns[left.timestampIndex]
  if (horizon === null || time === undefined)
    throw new SqlError('left side of time series join has no timestamp', position, timestampHint)
  const { alias } = horizon
  if (left.columns.some(({ source }) => source?.toLowerCase() === alias.name.toLowerCase()))
    throw new SqlError(`Duplicate table or alias: ${alias.name}`, alias.position)
  const unit = time.type.name === 'TIMESTAMP_NS' ? 'TIMESTAMP_NS' : 'TIMESTAMP'
  const rows = offsetsOf(horizon, (offset) => ticksOf(offset, unit)).map((offset) => [offset])
  const offsets: Plan = { kind: 'values', columns: [{ name: 'offset', type: longType }], rows }
  const plan = joinPlan('cross', left.plan, offsets, [])
  const width = left.plan.columns.length
  const [written, moved] = [left.timestampIndex, width].map((index) =>
    columnExpression(plan.columns[index] as (typeof plan.columns)[number], index),
  ) as [ReturnType<typeof columnExpression>, ReturnType<typeof columnExpression>]
  const sum = scalarCall('+', [written, moved], position, context)
  const named = (name: string, index: number, type: typeof sum.type) => ({ source: alias.name, name, index, type })
  const columns = [...left.columns, named('offset', width, longType), named('timestamp', width + 1, sum.type)]
  const shifted = withExtra({ plan, columns, timestampIndex: -1, order: 'none' }, [sum])
  const ordered = sorted(shifted, [{ index: width + 1, descending: false, nullsFirst: true }])
  const joined = joins.reduce((rows, join) => bindJoin(rows, { ...join, kind: 'asof' }, context), ordered)
  return { ...joined, timestampIndex: -1, order: 'none' }
}

function ticksOf(offset: ast.HorizonOffset, timestamps: 'TIMESTAMP' | 'TIMESTAMP_NS'): bigint {
  const { unit, position } = offset
  const count = BigInt(offset.count)
  const ticks = unit === null ? count : count * (ticksPerUnit(unit, timestamps) ?? 1n)
  if (BigInt.asIntN(64, ticks) !== ticks) throw new SqlError('HORIZON JOIN offset is too large', position)
  return ticks
}

function offsetsOf({ range, list }: ast.Horizon, ticks: (offset: ast.HorizonOffset) => bigint): bigint[] {
  if (range === null) return ascending(list, list.map(ticks))
  const [from, to, step] = [ticks(range.from), ticks(range.to), ticks(range.step)]
  if (from > to) throw new SqlError('FROM must be less than or equal to TO', range.from.position)
  if (step <= 0n) throw new SqlError('STEP must be positive', range.step.position)
  if ((to - from) / step >= BigInt(horizonOffsetsMax)) throw tooMany(range.from.position)
  return Array.from({ length: Number((to - from) / step) + 1 }, (_, index) => from + BigInt(index) * step)
}

function ascending(written: readonly ast.HorizonOffset[], offsets: readonly bigint[]): bigint[] {
  const wrong = offsets.findIndex((offset, index) => index > 0 && offset <= (offsets[index - 1] as bigint))
  if (wrong >= 0) throw new SqlError('LIST offsets must be monotonically increasing', written[wrong]?.position ?? 0)
  if (offsets.length > horizonOffsetsMax) throw tooMany(written[0]?.position ?? 0)
  return [...offsets]
}

function tooMany(position: number): SqlError {
  return new SqlError(`HORIZON JOIN has too many offsets [max=${horizonOffsetsMax}]`, position)
}
