// What is wrong first with a select that cannot be bound. Names of columns are looked at before anything else: those of
// GROUP BY, then the select list, PARTITION BY and ORDER BY of windows, then WHERE. Binding goes the other way, from the sources up,
// so names are read again once something failed; statements without a mistake never come here.
//
// Within an expression, operands that are columns come before what is computed, the right one before the left one. In
// WHERE the last name of each condition that AND joins comes first.

import { SqlError } from '../../base/errors.js'
import { isTime } from '../../types/convert.js'
import type * as ast from '../ast/ast.js'
import { isBareCount } from '../scope/bare-count.js'
import type { BindContext } from '../scope/bind-context.js'
import { noAggregateInSamples, wildcardInSamples } from '../scope/sample-errors.js'
import { columnMissing, findInScope, type Scope } from '../scope/scope.js'
import { innerScope } from './correlated-conditions.js'
import { clockWord, wordCall } from './expression.js'
import { hasAggregate } from './per-row.js'

/** Binds a select. `known` tells the columns of its sources once they are bound. */
export function namesFirst<Result>(
  select: ast.Select,
  context: BindContext,
  known: () => Scope | undefined,
  bind: () => Result,
): Result {
  try {
    return bind()
  } catch (error) {
    if (error === context.settled || !(error instanceof SqlError)) throw error
    const columns = known() ?? scopeWithoutConditions(select, context)
    context.settled = lackOfFrom(select, columns)
    if (context.settled === undefined && aliasError.test(error.message)) throw error
    context.settled ??= earlierName(select, columns) ?? error
    throw context.settled
  }
}

/** Columns or stars, and nothing they are of. */
function lackOfFrom(select: ast.Select, columns: Scope | undefined): SqlError | undefined {
  const mistake = select.lackOfFrom
  if (mistake === null || columns === undefined || columns.length > 0) return undefined
  const isStar = select.items.some(({ expression }) => expression.kind === 'star')
  if (!isStar && earlierName(select, columns) === undefined) return undefined
  return new SqlError(mistake.message, mistake.position)
}

/** What is said of a qualifier is said of a name. */
const aliasError = /^invalid table (name or )?alias$/i

/** Undefined where the sources themselves are wrong. */
function scopeWithoutConditions(select: ast.Select, context: BindContext): Scope | undefined {
  try {
    const joins = select.joins.map((join) => ({ ...join, on: null, using: [], natural: false }))
    return innerScope({ ...select, joins }, context)
  } catch {
    return undefined
  }
}

function earlierName(select: ast.Select, columns: Scope | undefined): SqlError | undefined {
  if (columns === undefined || columns.some(({ outer }) => outer === true)) return undefined
  const aliases = new Set(select.items.flatMap(({ alias }) => (alias === null ? [] : [alias.name.toLowerCase()])))
  const windows: ast.Call[] = []
  const items = select.items.flatMap(({ expression }) => (isBareCount(expression) ? [] : namesIn(expression, windows)))
  const grouped = select.groupBy.flatMap((expression) => namesIn(expression, []))
  const hasTime = columns.some(({ type }) => isTime(type))
  const unfit = select.sampleBy !== null && hasTime ? unfitForSamples(select, select.sampleBy) : undefined
  if (unfit !== undefined) return unfit
  const names = [...grouped, ...items, ...windows.flatMap(windowNames), ...conditionNames(select.where)]
  const missing = names.find((name) => isMissing(name, columns, aliases))
  return missing === undefined ? undefined : columnMissing(missing)
}

/** What SAMPLE BY demands of the list comes before names where there is a time to sample by. */
function unfitForSamples({ items }: ast.Select, { interval }: ast.SampleBy): SqlError | undefined {
  const star = items.find(({ expression }) => expression.kind === 'star')
  if (star !== undefined) return wildcardInSamples(star.position)
  const counts = items.some(({ expression }) => isBareCount(expression))
  return counts || hasAggregate(items) ? undefined : noAggregateInSamples(interval.position)
}

/** A name with another table's alias is no column of this select: it may be the query's around it. */
function isMissing(name: ast.ColumnName, columns: Scope, aliases: ReadonlySet<string>): boolean {
  const [first = '', second] = name.path
  const word = first.toLowerCase()
  if (second === undefined && (aliases.has(word) || clockWord(word) !== undefined || wordCall(word) !== undefined))
    return false
  // A whole row.
  if (second === undefined && columns.some(({ source }) => source?.toLowerCase() === word)) return false
  try {
    return findInScope(columns, name) === undefined
  } catch {
    return false
  }
}

/** Names in the order in which they are looked at; calls of window functions are noted. */
function namesIn(expression: ast.Expression, windows: ast.Call[]): ast.ColumnName[] {
  const names: ast.ColumnName[] = []
  const waiting = [expression]
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    if (next.kind === 'column') names.push(next)
    if (next.kind === 'call' && next.over !== null) windows.push(next)
    const operands = operandOrder(operandsOf(next))
    const columns = operands.filter((operand) => operand.kind === 'column')
    names.push(...columns)
    const [first, ...rest] = operands.filter((operand) => operand.kind !== 'column').toReversed()
    waiting.push(...rest.toReversed(), ...(first === undefined ? [] : [first]))
  }
  return names
}

/** Of two the right one first; of several the last one last, the others from the right. */
function operandOrder(operands: readonly ast.Expression[]): ast.Expression[] {
  const reversed = operands.toReversed()
  const [last] = reversed
  return reversed.length > 2 && last !== undefined ? [...reversed.slice(1), last] : reversed
}

function operandsOf(expression: ast.Expression): readonly ast.Expression[] {
  switch (expression.kind) {
    case 'unary':
    case 'cast':
    case 'is null':
      return [expression.operand]
    case 'binary':
    case 'quantified':
      return [expression.left, expression.right]
    case 'in':
      return [expression.operand, ...('body' in expression.set ? [] : expression.set)]
    case 'between':
      return [expression.operand, expression.low, expression.high]
    case 'case': {
      const branches = expression.branches.flatMap(({ when, result }) => [when, result])
      return [expression.operand, ...branches, expression.otherwise].filter((operand) => operand !== null)
    }
    case 'call':
      return expression.args
    case 'array':
    case 'list':
      return expression.elements
    default:
      return []
  }
}

function windowNames({ over }: ast.Call): ast.ColumnName[] {
  const parts = [...(over?.partitionBy ?? []), ...(over?.orderBy ?? []).map(({ expression }) => expression)]
  return parts.flatMap((part) => namesIn(part, []))
}

function conditionNames(where: ast.Expression | null): ast.ColumnName[] {
  if (where === null) return []
  const names: ast.ColumnName[] = []
  const waiting = [where]
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    if (next.kind === 'binary' && next.operator === 'and') waiting.push(next.right, next.left)
    else names.push(...writtenNames(next).toReversed())
  }
  return names
}

function writtenNames(expression: ast.Expression): ast.ColumnName[] {
  if (expression.kind === 'column') return [expression]
  return operandsOf(expression).flatMap(writtenNames)
}
