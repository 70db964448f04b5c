// Rewrites the gap filling of TimescaleDB to SAMPLE BY: `select time_bucket_gapfill('1 hour', ts) h, sym, locf(avg(v)),
// sum(v) from t where ts >= a and ts < b group by h, sym` becomes `select ts h, sym, avg(v), sum(v) from t where ..
// sample by 1h from time_bucket('1 hour', a) to b fill(prev, null)`. Aggregates within locf() repeat the previous value
// of a key, those within interpolate() are interpolated, all others are NULL in a bucket without rows.

import { SqlError } from '../../base/errors.js'
import type * as ast from '../ast/ast.js'
import type { Parameter } from '../catalog.js'
import { expressionText } from '../parse/text.js'
import { callOf, integerAt, textAs } from '../rewrite/make-query.js'
import { stepText } from './interval-shift.js'
import { hasNode, mapAggregates } from './map-syntax.js'

const bucketName = 'time_bucket_gapfill'
const fills: Readonly<Record<string, NonNullable<ast.Call['fill']>>> = { locf: 'prev', interpolate: 'linear' }

/** The select with SAMPLE BY, or as it is if it does not fill gaps. */
export function withGapfill(select: ast.Select, parameters: readonly Parameter[]): ast.Select {
  const bucket = select.items.find(({ expression }) => isCall(expression, bucketName))
  const call = bucket?.expression
  if (bucket === undefined || call?.kind !== 'call') return select
  const [width, time, start, finish, ...more] = call.args
  if (width === undefined || time === undefined || more.length > 0)
    throw new SqlError(`${bucketName}() takes a width, a timestamp column, and perhaps start and finish`, call.position)
  if (time.kind !== 'column') throw new SqlError(`${bucketName}() takes a timestamp column`, time.position)
  if (select.sampleBy !== null || select.groupingSets !== undefined)
    throw new SqlError(`${bucketName}() needs a plain GROUP BY`, call.position)
  checkGroups(select, bucket)
  const text = stepText(textAs(width, 'interval'), parameters)
  if (text === null) throw new SqlError('a constant interval is expected', width.position)
  const bounds = boundsIn(select.where, time)
  const [from, to] = [start ?? bounds.from, finish ?? bounds.to]
  if (from === null || to === null) throw missingBound(from === null ? 'start' : 'finish', call.position)
  const count: ast.Expression = { kind: 'string', position: width.position, value: text }
  return {
    ...select,
    items: select.items.map((item) => (item === bucket ? bucketItem(item, time) : filledItem(item))),
    groupBy: [],
    groupAll: false,
    sampleBy: {
      position: call.position,
      interval: { position: width.position, count, unit: null },
      from: callOf('time_bucket', [width, textAs(from, 'timestamp')], from.position),
      to: textAs(to, 'timestamp'),
      fill: [{ kind: 'null', position: call.position }],
      align: null,
      time,
    },
  }
}

function isCall(expression: ast.Expression, name: string): boolean {
  return expression.kind === 'call' && expression.over === null && expression.name.toLowerCase() === name
}

function missingBound(name: string, position: number): SqlError {
  return new SqlError(
    `${bucketName}() needs a ${name}: write a condition on its column in WHERE, or the argument`,
    position,
  )
}

/** SAMPLE BY groups by all items without aggregates, so GROUP BY must name just these. */
function checkGroups({ items, groupBy }: ast.Select, bucket: ast.SelectItem): void {
  const isNamed = (item: ast.SelectItem, index: number) => (key: ast.Expression) => {
    const text = expressionText(key).toLowerCase()
    if (key.kind === 'integer') return text === String(index + 1)
    return text === expressionText(item.expression).toLowerCase() || text === item.alias?.name.toLowerCase()
  }
  const tests = items.map((item, index) => isNamed(item, index))
  const missing = groupBy.find((key) => !tests.some((test) => test(key)))
  if (missing !== undefined) throw new SqlError(`a key of ${bucketName}() must be in the select list`, missing.position)
  if (groupBy.length > 0 && !groupBy.some((key) => tests[items.indexOf(bucket)]?.(key)))
    throw new SqlError(`GROUP BY must name ${bucketName}()`, groupBy[0]?.position ?? 0)
}

function bucketItem(item: ast.SelectItem, time: ast.Expression): ast.SelectItem {
  const alias = item.alias ?? { position: item.position, name: bucketName, quoted: true }
  return { ...item, expression: time, alias }
}

function filledItem(item: ast.SelectItem): ast.SelectItem {
  const { expression, position } = item
  if (expression.kind !== 'call') return item
  const name = expression.name.toLowerCase()
  const fill = Object.hasOwn(fills, name) ? fills[name] : undefined
  if (fill === undefined) return item
  const [value, ...more] = expression.args
  if (value === undefined || more.length > 0) throw new SqlError(`${name}() takes one aggregate`, expression.position)
  const alias = item.alias ?? { position, name, quoted: true }
  return { ...item, expression: mapAggregates(value, (call) => ({ ...call, fill })), alias }
}

interface Bounds {
  readonly from: ast.Expression | null
  /** Exclusive. */
  readonly to: ast.Expression | null
}

/** Bounds of the column by the conditions that AND joins. */
function boundsIn(where: ast.Expression | null, time: ast.Expression): Bounds {
  if (where === null) return { from: null, to: null }
  if (where.kind === 'binary' && where.operator === 'and') {
    const [left, right] = [boundsIn(where.left, time), boundsIn(where.right, time)]
    return { from: left.from ?? right.from, to: left.to ?? right.to }
  }
  const isTime = (expression: ast.Expression): boolean => expressionText(expression) === expressionText(time)
  const isFree = (expression: ast.Expression): boolean =>
    !hasNode(expression, (part) => 'kind' in part && part.kind === 'column' && 'path' in part)
  const isPlain = where.kind === 'between' && !where.negated && !where.symmetric
  if (isPlain && isTime(where.operand) && isFree(where.low) && isFree(where.high))
    return { from: where.low, to: after(where.high) }
  if (where.kind !== 'binary') return { from: null, to: null }
  const { left, right } = where
  const isTurned = isTime(right) && isFree(left)
  if (!isTurned && !(isTime(left) && isFree(right))) return { from: null, to: null }
  const operator = isTurned ? turned[where.operator] : where.operator
  const value = isTurned ? left : right
  if (operator === '>=' || operator === '>') return { from: value, to: null }
  if (operator === '<') return { from: null, to: value }
  return { from: null, to: operator === '<=' ? after(value) : null }
}

const turned: Readonly<Record<string, string>> = { '<': '>', '>': '<', '<=': '>=', '>=': '<=' }

/** The first time after it. */
function after(bound: ast.Expression): ast.Expression {
  const { position } = bound
  return { kind: 'binary', operator: '+', left: textAs(bound, 'timestamp'), right: integerAt(1, position), position }
}
