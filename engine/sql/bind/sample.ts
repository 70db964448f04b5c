// Binds SAMPLE BY, which groups rows by time buckets of a given length, with its clauses FROM .. TO, FILL and ALIGN TO.
// In the select list, outside of aggregates, the designated timestamp (the table's time column) means the start of the
// bucket.

import { SqlError } from '../../base/errors.js'
import { type DataType, dataType, typeText } from '../../types/column-types.js'
import { castValue, isText, isTime } from '../../types/convert.js'
import { parseTimestamp } from '../../types/timestamp.js'
import { parseSampleInterval, type SampleInterval } from '../../types/timestamp-floor.js'
import { parseOffset, timeZone } from '../../types/timestamp-zone.js'
import type * as ast from '../ast/ast.js'
import { expressionText } from '../parse/text.js'
import type { Expression, Fill, Plan } from '../plan/plan.js'
import { noAggregateInSamples, timestampHint } from '../scope/sample-errors.js'
import { type Relation, scopeOf } from '../scope/scope.js'
import { isConstant } from '../typing/make-call.js'
import { convertTo, isUntypedNull } from '../typing/types.js'
import { columnsOf, markIndex, visitExpression } from '../typing/walk-expression.js'
import { bindComparison } from './comparison.js'
import { aggregateMark, bindExpression, type ExpressionScope } from './expression.js'
import { applyHaving, distinctKeys, groupLift, keysOf, liftList } from './group.js'
import { isGrouping } from './grouping-sets.js'
import type { SelectList } from './select.js'

type Sample = Extract<Plan, { kind: 'sample' }>

export function bindSample(sampleBy: ast.SampleBy, select: ast.Select, list: SelectList, scope: ExpressionScope): void {
  if (select.groupBy.length > 0)
    throw new SqlError('SELECT query must not contain both GROUP BY and SAMPLE BY', select.groupBy[0]?.position ?? 0)
  const { input } = list
  const ordered = list.aggregates.find(({ orderBy = [] }) => orderBy.length > 0)
  if (ordered !== undefined)
    throw new SqlError(
      'ORDER BY in an aggregate is not supported with SAMPLE BY, whose rows are in timestamp order',
      ordered.position,
    )
  const grouping = list.aggregates.find(isGrouping)
  if (grouping !== undefined) throw new SqlError('grouping() needs GROUP BY', grouping.position)
  if (list.aggregates.length === 0 && list.windows.length === 0) throw noAggregateInSamples(sampleBy.interval.position)
  if (input.timestampIndex < 0)
    throw new SqlError(
      'base query does not provide designated TIMESTAMP column',
      select.from?.position ?? 0,
      timestampHint,
    )
  if (input.order !== 'ascending')
    throw new SqlError('base query does not provide ASC order over designated TIMESTAMP column', 0)
  const time = timestampColumn(input)
  if (sampleBy.time !== undefined) checkTime(sampleBy.time, input, scope)
  const from = bound(sampleBy.from, time, scope)
  const to = bound(sampleBy.to, time, scope)
  const keys = sampleKeys(list, input.timestampIndex)
  const fills = bindFills(sampleBy, list, keys.length === 0, scope).map((fill, index): Fill => {
    const own = list.aggregates[index]?.fill
    return own === undefined ? fill : own === 'prev' ? { kind: 'prev', of: null } : { kind: 'linear' }
  })
  const sample: Sample = {
    kind: 'sample',
    columns: [
      { name: 'timestamp', type: time.type },
      ...keys.map(({ type }, index) => ({ name: `key${index}`, type })),
      ...list.aggregates.map(({ name, type }) => ({ name, type })),
    ],
    input: restricted(input, time, sampleBy, scope),
    timestampIndex: input.timestampIndex,
    interval: bindInterval(sampleBy.interval, scope),
    align: bindAlign(sampleBy.align, scope),
    from,
    to,
    keys,
    aggregates: list.aggregates.map(({ fill: _, ...aggregate }) => aggregate),
    fills,
  }
  list.input = { plan: sample, columns: scopeOf(sample, null), timestampIndex: 0, order: 'ascending' }
  const keyLift = groupLift([time, ...keys], 1 + keys.length)
  liftList(list, keyLift)
  applyHaving(list)
}

function timestampColumn({ plan, timestampIndex }: Relation): Expression {
  const type = plan.columns[timestampIndex]?.type ?? dataType('TIMESTAMP')
  return { kind: 'column', index: timestampIndex, type, position: 0 }
}

function checkTime(written: ast.Expression, { columns, timestampIndex }: Relation, { context }: ExpressionScope): void {
  const named = bindExpression(written, { context, columns, aggregates: null, windows: null })
  if (named.kind !== 'column' || named.index !== timestampIndex)
    throw new SqlError('the designated timestamp is expected', written.position)
}

/** The group keys: select items without aggregates that do not read the timestamp. */
function sampleKeys(list: SelectList, timestampIndex: number): Expression[] {
  const all = [...list.columns.map(({ bound }) => bound), ...list.hidden].flatMap(keysOf)
  return distinctKeys(all.filter((key) => !columnsOf(key).has(timestampIndex)))
}

function bound(expression: ast.Expression | null, time: Expression, scope: ExpressionScope): bigint | null {
  if (expression === null) return null
  const written = bindExpression(expression, { ...scope, columns: [] })
  if (isUntypedNull(written)) return null
  if (isConstant(written) && typeof written.value === 'string' && parseTimestamp(written.value, 'TIMESTAMP') === null)
    throw new SqlError(`Invalid date [str='${written.value}']`, expression.position)
  const value = convertTo(written, time.type)
  if (!isConstant(value) || typeof value.value !== 'bigint')
    throw new SqlError('a constant timestamp is expected', expression.position)
  return value.value
}

/** FROM and TO filter the input rows. */
function restricted({ plan }: Relation, time: Expression, { from, to }: ast.SampleBy, scope: ExpressionScope): Plan {
  const limit = (input: Plan, operator: '>=' | '<', side: ast.Expression | null): Plan => {
    if (side === null) return input
    const predicate = bindComparison(
      operator,
      time,
      bindExpression(side, { ...scope, columns: [] }),
      side.position,
      scope.context,
    )
    return { kind: 'filter', columns: input.columns, input, predicate }
  }
  return limit(limit(plan, '>=', from), '<', to)
}

function bindInterval({ count, unit, position }: ast.Interval, scope: ExpressionScope): SampleInterval {
  if (unit === null) {
    const parsed =
      count.kind === 'interval' || count.kind === 'string'
        ? parseSampleInterval(count.kind === 'interval' ? count.text : count.value)
        : null
    if (parsed === null) throw new SqlError('time interval unit expected', position)
    return parsed
  }
  const value = convertTo(bindExpression(count, { ...scope, columns: [] }), dataType('LONG'))
  if (!isConstant(value) || typeof value.value !== 'bigint')
    throw new SqlError('a constant interval is expected', position)
  if (value.value <= 0n || value.value > 2_147_483_647n)
    throw new SqlError(`positive number expected: ${value.value}${unit}`, position)
  return { count: Number(value.value), unit }
}

function bindAlign(align: ast.SampleAlign | null, scope: ExpressionScope): Sample['align'] {
  if (align === null) return { kind: 'calendar', zone: null, offsetMicros: 0n }
  if (align.kind === 'first observation') return { kind: 'first' }
  const zone = constantText(align.timeZone, scope)
  if (zone === null && align.timeZone !== null) throw new SqlError('timezone must not be null', align.timeZone.position)
  const offset = constantText(align.offset, scope)
  if (zone !== null && timeZone(zone) === null)
    throw new SqlError(`invalid timezone: ${zone}`, align.timeZone?.position ?? align.position)
  const offsetMicros = offset === null ? 0n : parseOffset(offset)
  if (offsetMicros === null) throw new SqlError(`invalid offset: ${offset}`, align.offset?.position ?? align.position)
  return { kind: 'calendar', zone, offsetMicros }
}

function constantText(expression: ast.Expression | null, scope: ExpressionScope): string | null {
  if (expression === null) return null
  const value = bindExpression(expression, { ...scope, columns: [] })
  if (isUntypedNull(value)) return null
  if (!isConstant(value) || typeof value.value !== 'string')
    throw new SqlError('a constant text is expected', expression.position)
  return value.value
}

// FILL --------------------------------------------------------------------------------------------------------------

/** One fill per aggregate. The statement has one for all, or one for each in the order of the select list. */
function bindFills(
  { fill, align }: ast.SampleBy,
  list: SelectList,
  isKeyless: boolean,
  scope: ExpressionScope,
): Fill[] {
  const { aggregates, columns } = list
  const first = fill[0]
  if (first === undefined) return aggregates.map(() => ({ kind: 'none' }))
  // Recorded behaviour: a single fill value with plain UTC buckets is checked by another rule, with its own message and
  // no position.
  const isPlain = fill.length === 1 && isKeyless && isUtcCalendar(align) && columns.every(isWholeOrBare)
  const isOfColumn = first.kind === 'prev' && first.column !== null
  if (fill.length === 1 && first.kind !== 'value' && !isOfColumn)
    return aggregates.map(() => (first.kind === 'prev' ? { kind: 'prev', of: null } : { kind: first.kind }))
  if (isPlain && aggregates.length > 1 && !isName(first)) throw new SqlError('not enough fill values', -1)
  return aggregates.map(({ type }, index) => {
    const item = fillAt(fill, index, aggregates.length)
    return item.kind === 'prev' ? bindPrevious(item, type, list) : bindFill(item, type, isPlain, scope)
  })
}

/** Whether the column is an aggregate by itself, or contains none. */
function isWholeOrBare({ bound: expression }: SelectList['columns'][number]): boolean {
  let marks = 0
  visitExpression(expression, (part) => {
    if (part.kind === 'call' && part.name === aggregateMark) marks++
  })
  return marks === 0 || (expression.kind === 'call' && expression.name === aggregateMark)
}

function isName(fill: ast.FillItem): boolean {
  return fill.kind === 'value' && fill.value.kind === 'column'
}

function fillAt(fill: readonly ast.FillItem[], index: number, count: number): ast.FillItem {
  const item = fill[index]
  if (item !== undefined) return item
  const counts = `expected ${count} values but only ${fill.length} provided`
  throw new SqlError(`insufficient fill values for SAMPLE BY FILL: ${counts}`, fill.at(-1)?.position ?? 0)
}

function isUtcCalendar(align: ast.SampleAlign | null): boolean {
  if (align === null || align.kind !== 'calendar') return align === null
  const { timeZone: zone, offset } = align
  return (
    (zone === null || (zone.kind === 'string' && zone.value === 'UTC')) &&
    (offset === null || (offset.kind === 'string' && parseOffset(offset.value) === 0n))
  )
}

function invalidFill(text: string, { position }: ast.FillItem): SqlError {
  return new SqlError(`invalid fill value: ${text}`, position)
}

type PreviousFill = Extract<ast.FillItem, { readonly kind: 'prev' }>

/** `prev(a)`: `a` is the name or alias of a column that is an aggregate by itself. */
function bindPrevious({ column }: PreviousFill, type: DataType, { aggregates, columns }: SelectList): Fill {
  if (column === null) return { kind: 'prev', of: null }
  const { name, position } = column
  const isNamed = ({ alias, expression }: SelectList['columns'][number]): boolean =>
    (alias?.name ?? (expression === null ? '' : expressionText(expression))).toLowerCase() === name.toLowerCase()
  const bound = columns.find(isNamed)?.bound
  if (bound === undefined) throw SqlError.columnMissing(name, position)
  if (bound.kind !== 'call' || bound.name !== aggregateMark)
    throw new SqlError(`PREV takes a column that is an aggregate by itself [column=${name}]`, position)
  const of = markIndex(bound)
  const other = aggregates[of]?.type ?? type
  if (typeText(other) !== typeText(type))
    throw new SqlError(`PREV takes a column of the same type [${typeText(other)} != ${typeText(type)}]`, position)
  return { kind: 'prev', of }
}

function bindFill(
  fill: Exclude<ast.FillItem, PreviousFill>,
  type: DataType,
  isPlain: boolean,
  scope: ExpressionScope,
): Fill {
  if (fill.kind === 'none') throw invalidFill('none', fill)
  if (fill.kind !== 'value') return { kind: fill.kind }
  if (fill.value.kind === 'column') {
    const name = expressionText(fill.value)
    throw isPlain ? SqlError.columnMissing(name, fill.position) : invalidFill(name, fill)
  }
  const value = bindExpression(fill.value, { ...scope, columns: [], aggregates: null, windows: null })
  if (isUntypedNull(value)) return { kind: 'null' }
  if (!isPlain) checkFill(fill, fill.value, type)
  const isQuoted = fill.value.kind === 'string' && !isText(type)
  if (isQuoted && isConstant(value) && castValue(value.value, value.type, type) === null)
    throw invalidFill(`'${value.value}'`, fill)
  const isFraction = isConstant(value) && typeof value.value === 'number' && !Number.isInteger(value.value)
  if (isFraction && isWhole(type)) throw invalidFill(String(value.value), fill)
  const converted = convertTo(value, type)
  if (!isConstant(converted)) throw new SqlError('a constant fill value is expected', fill.position)
  return { kind: 'constant', value: converted.value }
}

/** Checks the literal: timestamps are written as strings, numbers as numbers. */
function checkFill(fill: ast.FillItem, written: ast.Expression, type: DataType): void {
  const isQuoted = written.kind === 'string'
  if (isTime(type) && !isQuoted) {
    const example = "Timestamp fill value must be in quotes. Example: '2019-01-01T00:00:00.000Z'"
    throw new SqlError(`Invalid fill value: '${expressionText(written)}'. ${example}`, fill.position)
  }
  if (isQuoted && !isTime(type) && !isText(type)) throw invalidFill(`'${written.value}'`, fill)
}

function isWhole({ name }: DataType): boolean {
  return name === 'INT' || name === 'LONG'
}
