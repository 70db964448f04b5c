// Calls: aggregates and window functions are collected beside the expression, the rest are rows of the scalar tables.

import { SqlError } from '../../base/errors.js'
import { dataType } from '../../types/column-types.js'
import { aggregatesNamed, scalarsNamed, windowFunctionNames } from '../functions/all.js'
import { typeName } from '../functions/compare.js'
import { aggregateOf } from '../functions/evaluate.js'
import { bestOverload } from '../functions/resolve.js'
import type * as ast from '../parse/ast.js'
import type { AggregateCall, Expression } from '../plan/plan.js'
import { aggregateMark, bindExpression, type ExpressionScope, windowMark } from './expression.js'
import { convertArguments, noMatch, resolvedArgument, resultType, scalarCall } from './make-call.js'
import { constantOf, convertTo, expressionKey, isUntypedNull, unify } from './types.js'
import { bindWindowCall } from './window.js'

/** Functions whose arguments all have one type. */
const unifying = new Set(['coalesce', 'greatest', 'least', 'nullif'])

export function bindCall(call: ast.Call, scope: ExpressionScope): Expression {
  const name = call.name.toLowerCase()
  if (call.over !== null) return marked(windowMark, bindWindowCall(call, scope))
  if (windowFunctionNames.has(name)) {
    throw new SqlError('window function called in non-window context, make sure to add OVER clause', call.position)
  }
  if (aggregatesNamed(name).length > 0) return bindAggregate(call, scope)
  if (call.distinct || call.filter !== null || call.orderBy.length > 0)
    throw new SqlError('an aggregate function is expected', call.position)
  const args = call.args.map((argument) => bindExpression(argument, scope))
  return bindScalar(call, name, args, scope)
}

function bindScalar(call: ast.Call, name: string, args: readonly Expression[], scope: ExpressionScope): Expression {
  if (unifying.has(name) && args.length > 0) return bindUnifying(call, name, args, scope)
  if (scalarsNamed(name).length === 0) throw unknownFunction(call, args)
  return scalarCall(name, args, call.position, scope.context, call.name)
}

export function unknownFunction(call: ast.Call, args: readonly Expression[]): SqlError {
  const types = args.map((argument) => (isUntypedNull(argument) ? 'NULL' : typeName(argument.type)))
  return new SqlError(`unknown function name: ${call.name}(${types.join(',')})`, call.position)
}

function bindUnifying(call: ast.Call, name: string, args: readonly Expression[], scope: ExpressionScope): Expression {
  const type = unify(args, '')
  return scalarCall(
    name,
    args.map((argument) => convertTo(argument, type)),
    call.position,
    scope.context,
  )
}

function marked(
  name: string,
  { index, type, position }: { index: number; type: Expression['type']; position: number },
): Expression {
  return { kind: 'call', name, args: [constantOf(index, dataType('INT'), position)], type, position }
}

// Aggregates --------------------------------------------------------------------------------------------------------

function bindAggregate(call: ast.Call, scope: ExpressionScope): Expression {
  if (scope.aggregates === null) throw new SqlError('Aggregate function cannot be passed as an argument', call.position)
  const aggregate = aggregateCall(call, { ...scope, aggregates: null, windows: null })
  const key = aggregateKey(aggregate)
  let index = scope.aggregates.findIndex((other) => aggregateKey(other) === key)
  if (index < 0) index = scope.aggregates.push(aggregate) - 1
  return marked(aggregateMark, { index, type: aggregate.type, position: call.position })
}

function aggregateKey({ name, args }: AggregateCall): string {
  return `${name}(${args.map(expressionKey).join()})`
}

/** Binds the arguments (their scope forbids aggregates) and finds the row. */
export function aggregateCall(call: ast.Call, scope: ExpressionScope): AggregateCall {
  const name = call.distinct && call.name.toLowerCase() === 'count' ? 'count_distinct' : call.name
  const isStar = call.args.length === 1 && call.args[0]?.kind === 'star'
  const plain = isStar ? [] : call.args.map((argument) => bindExpression(argument, scope))
  const args = call.filter === null ? plain : withFilter(plain, bindExpression(call.filter, scope), call, scope)
  const row = bestOverload(aggregatesNamed(name), args.map(resolvedArgument))
  if (row === undefined) throw noMatch(call.name, args, call.position)
  const converted = convertArguments(row, args)
  if (aggregateOf(row.name, converted) === undefined) throw noMatch(call.name, args, call.position)
  return { name: row.name, args: converted, type: resultType(row.gives, converted), position: call.position }
}

/** `sum(a) filter (where c)`: rows that do not pass have a NULL in place of the argument. */
function withFilter(
  args: readonly Expression[],
  condition: Expression,
  call: ast.Call,
  scope: ExpressionScope,
): Expression[] {
  const [first, ...rest] = args
  const value = first ?? constantOf(1, dataType('INT'), call.position)
  return [
    scalarCall('case', [condition, value, constantOf(null, value.type, call.position)], call.position, scope.context),
    ...rest,
  ]
}
