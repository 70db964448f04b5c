// Rewrites the query of a materialized view from GROUP BY timestamp_floor('1h', ts), date_trunc(), time_bucket() or
// date_bin() to SAMPLE BY, in the text that the view keeps. To check the rewrite, both texts are bound, and the plans
// are compared: they must group the same rows by the same keys and return the same columns. Otherwise the view is
// refused with an error that says why.

import { SqlError } from '../../base/errors.js'
import type * as ast from '../ast/ast.js'
import { bindQuery } from '../bind/query.js'
import { advance, type Cursor, openCursor } from '../parse/cursor.js'
import { parseStatement } from '../parse/parse.js'
import { bucketsOfCall, bucketsText, isBucketCall } from '../plan/bucket-call.js'
import type { Expression, Plan } from '../plan/plan.js'
import type { BindContext } from '../scope/bind-context.js'
import { expressionKey } from '../typing/types.js'
import { remapColumns } from '../typing/walk-expression.js'

type Written = Pick<ast.CreateMaterialized, 'query' | 'queryText'>
type Groups = Extract<Plan, { kind: 'aggregate' }>
type Sample = Extract<Plan, { kind: 'sample' }>

/** `trial` makes a context for binding that is thrown away. */
export function sampledQuery(
  { query, queryText }: Written,
  select: ast.Select,
  timestampIndex: number,
  trial: (sql: string) => BindContext,
): Written {
  const at = select.groupBy[0]?.position ?? select.position
  const refuse = (reason: string): SqlError => new SqlError(`the query cannot become a SAMPLE BY: ${reason}`, at)
  const { plan } = bindQuery(query, trial(queryText))
  const groups = groupsOf(plan)
  if (groups === undefined) throw refuse('it has no aggregates')
  const buckets = groups.keys.flatMap((key, index) => (isBucketCall(key, timestampIndex) ? [{ key, index }] : []))
  const [bucket, second] = buckets
  if (bucket === undefined)
    throw refuse("no key is a bucket of the designated timestamp, such as timestamp_floor('1h', ts)")
  if (second !== undefined) throw refuse('two keys are buckets of time')
  const found = bucketsOfCall(bucket.key)
  if (typeof found === 'string') throw refuse(found)
  const item = itemOf(plan, bucket.index)
  const written = item === undefined ? undefined : select.items[item]
  if (written === undefined || written.expression.kind === 'star' || select.items.some(isStar))
    throw refuse('the bucket must be an item of the select list')
  const time = groups.input.columns[timestampIndex]?.name ?? ''
  const name = written.alias?.name ?? time
  const column = `${sourceOf(select)}"${time}"`
  const text = replaced(queryText, query.position, select, written, `${column} AS "${name}"`, bucketsText(found))
  try {
    const statement = parseStatement(text)
    if (statement.kind === 'query' && isSame(plan, bindQuery(statement, trial(text)).plan))
      return { query: statement, queryText: text }
  } catch (thrown) {
    if (thrown instanceof SqlError) throw refuse(thrown.message)
    throw thrown
  }
  throw refuse('its groups would be others')
}

function isStar({ expression }: ast.SelectItem): boolean {
  return expression.kind === 'star'
}

/** The qualifier of columns of the first table, if there are others. */
function sourceOf({ from, joins }: ast.Select): string {
  if (joins.length === 0 || from?.kind !== 'table') return ''
  return `"${from.alias?.name ?? from.table.name}".`
}

/** The grouping under projections, HAVING and the order. */
function groupsOf(plan: Plan): Groups | undefined {
  if (plan.kind === 'aggregate') return plan
  const isAbove = plan.kind === 'project' || plan.kind === 'filter' || plan.kind === 'sort'
  return isAbove ? groupsOf(plan.input) : undefined
}

/** The output column that is this column of the grouping. */
function itemOf(plan: Plan, column: number): number | undefined {
  if (plan.kind === 'aggregate') return column
  if (plan.kind === 'filter' || plan.kind === 'sort') return itemOf(plan.input, column)
  if (plan.kind !== 'project') return undefined
  const below = itemOf(plan.input, column)
  const index = plan.expressions.findIndex((item) => item.kind === 'column' && item.index === below)
  return index < 0 ? undefined : index
}

// The text -------------------------------------------------------------------------------------------------------

/** `position` is that of the query's text in the statement. */
function replaced(
  text: string,
  position: number,
  select: ast.Select,
  item: ast.SelectItem,
  time: string,
  sampling: string,
): string {
  const first = item.position - position
  const itemEnd = endOfItem(text, first)
  const [from, to] = groupClause(text, itemEnd, select.groupBy.length > 0 || select.groupAll === true)
  const after = text.slice(to)
  const clause = `SAMPLE BY ${sampling}${after === '' ? '' : ' '}`
  const blank = /\s$/.test(text.slice(0, from)) ? '' : ' '
  return `${text.slice(0, first)}${time}${text.slice(itemEnd, from)}${blank}${clause}${after}`
}

/** The cursor's tokens outside of parentheses, from this position on. */
function* outerTokens(text: string, from: number): Generator<Cursor> {
  const cursor = openCursor(text)
  for (let depth = 0; cursor.kind !== 'end'; advance(cursor)) {
    const { word } = cursor
    if (cursor.start >= from) {
      if (word === '(' || word === '[') depth++
      if (word === ')' || word === ']') depth--
      if (depth === 0) yield cursor
    }
  }
}

/** The end of the select item, with its alias. */
function endOfItem(text: string, from: number): number {
  for (const { word, start, previousEnd } of outerTokens(text, from))
    if (start > from && (word === ',' || word === 'from')) return previousEnd
  return text.length
}

const clauseEnds: ReadonlySet<string> = new Set(['having', 'window', 'qualify', 'order', 'limit', 'pivot'])

/** Where GROUP BY is, or where it would be. */
function groupClause(text: string, from: number, isWritten: boolean): readonly [from: number, to: number] {
  let begun: number | null = null
  for (const { word, start, previousEnd } of outerTokens(text, from)) {
    if (isWritten && begun === null && word === 'group') begun = start
    else if (clauseEnds.has(word)) return [begun ?? previousEnd, start]
  }
  return [begun ?? text.length, text.length]
}

// The plans ------------------------------------------------------------------------------------------------------

/** Whether both plans make the same rows, in any order. */
function isSame(grouped: Plan, sampled: Plan): boolean {
  return mapOf(grouped, sampled)?.every(isIdentity) === true
}

function isIdentity(to: number, from: number): boolean {
  return to === from
}

/** The places of the left plan's columns in the right plan; undefined if the plans differ. */
function mapOf(written: Plan, made: Plan): readonly number[] | undefined {
  const [left, right] = [withoutOrder(written), withoutOrder(made)]
  if (left.kind === 'aggregate' && right.kind === 'sample') return columnMap(left, right)
  if (left.kind === 'filter' && right.kind === 'filter') {
    const map = mapOf(left.input, right.input)
    return map !== undefined && isMoved(left.predicate, right.predicate, map) ? map : undefined
  }
  if (left.kind !== 'project' || right.kind !== 'project') return undefined
  const map = mapOf(left.input, right.input)
  const isEqual =
    map !== undefined &&
    left.expressions.length === right.expressions.length &&
    left.expressions.every((item, index) => isMoved(item, right.expressions[index], map))
  return isEqual ? left.expressions.map((_, index) => index) : undefined
}

function withoutOrder(plan: Plan): Plan {
  return plan.kind === 'sort' ? withoutOrder(plan.input) : plan
}

function isMoved(written: Expression, made: Expression | undefined, map: readonly number[]): boolean {
  return made !== undefined && expressionKey(remapColumns(written, (index) => map[index] ?? -1)) === expressionKey(made)
}

/** The places of the columns of the grouping in those of SAMPLE BY. */
function columnMap(groups: Groups, sample: Sample): number[] | undefined {
  if (!isSameInput(groups.input, sample.input) || groups.keys.length !== sample.keys.length + 1) return undefined
  const keys = sample.keys.map((key) => expressionKey(key))
  const ofKeys = groups.keys.map((key) =>
    isBucketCall(key, sample.timestampIndex) ? 0 : keys.indexOf(expressionKey(key)) + 1,
  )
  const isPlaced = new Set(ofKeys).size === ofKeys.length && ofKeys.filter((place) => place === 0).length === 1
  const aggregates = sample.aggregates.map(plainText)
  const isCounted = groups.aggregates.every((call, index) => plainText(call) === aggregates[index])
  if (!isPlaced || !isCounted || groups.aggregates.length !== aggregates.length) return undefined
  return [...ofKeys, ...aggregates.map((_, index) => 1 + keys.length + index)]
}

function isSameInput(left: Plan, right: Plan): boolean {
  return plainText(left) === plainText(right)
}

function plainText(part: object): string {
  return JSON.stringify(part, (key, value: unknown) =>
    key === 'position' ? undefined : typeof value === 'bigint' ? `${value}n` : value,
  )
}
