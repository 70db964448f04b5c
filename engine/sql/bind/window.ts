// Binds window function calls: the function, and the partition, order and frame of its window.

import { assert } from '../../base/assert.js'
import { SqlError } from '../../base/errors.js'
import { type DataType, dataType } from '../../types/column-types.js'
import { isNumber, isTime } from '../../types/convert.js'
import { ticksPerUnit } from '../../types/timestamp-floor.js'
import type * as ast from '../ast/ast.js'
import { aggregatesNamed, scalarsNamed, windowFunctionNames } from '../functions/registry/all.js'
import { anchoredFrame } from '../parse/window.js'
import type { Expression, WindowCall, WindowFrame } from '../plan/plan.js'
import { isConstant } from '../typing/make-call.js'
import { noMatch } from '../typing/mismatch.js'
import { convertTo } from '../typing/types.js'
import { aggregateCall, unknownFunction } from './call.js'
import { bindExpression, type ExpressionScope } from './expression.js'
import { nullsFirst } from './order.js'
import { bindMovingAverage, isMovingAverage } from './window-moving.js'

export function bindWindowCall(
  call: ast.Call,
  scope: ExpressionScope,
): { index: number; type: DataType; position: number } {
  if (scope.windows === null) {
    const isWhere = scope.rows !== undefined && scope.aliases === undefined
    const place = isWhere ? 'in WHERE clause' : 'here'
    throw new SqlError(`window function is not allowed ${place}`, call.position)
  }
  const { rows: _, ...withoutRows } = scope
  const inner: ExpressionScope = { ...withoutRows, windows: null }
  const window = resolveWindow(call.over as ast.WindowSpecification, scope)
  const { name, args, type } = isMovingAverage(call)
    ? bindMovingAverage(call, window, inner)
    : windowFunction(call, inner)
  const orderBy = window.orderBy.map((item) => {
    const expression = bindExpression(item.expression, inner)
    return { expression, descending: item.descending, nullsFirst: nullsFirst(expression.type, item) }
  })
  const bound: WindowCall = {
    name,
    args,
    type,
    partitionBy: window.partitionBy.map((expression) => bindExpression(expression, inner)),
    orderBy,
    frame: bindFrame(window, orderBy[0]?.expression, inner),
    ignoreNulls: call.ignoreNulls,
    position: call.position,
  }
  return { index: scope.windows.push(bound) - 1, type, position: call.position }
}

/** The window of OVER w or OVER (w ...): clauses of the named window come first. */
function resolveWindow(window: ast.WindowSpecification, scope: ExpressionScope): ast.WindowSpecification {
  if (window.base === null) return anchored(window)
  const base = scope.namedWindows?.get(window.base.name.toLowerCase())
  if (base === undefined) throw new SqlError(`window '${window.base.name}' is not defined`, window.base.position)
  const inherited = resolveWindow(base, scope)
  if (inherited.anchor !== undefined && window.frame !== null) throw anchoredFrame(window.frame.position)
  return {
    ...window,
    ...(inherited.anchor === undefined ? {} : { anchor: inherited.anchor }),
    base: null,
    partitionBy: inherited.partitionBy.length > 0 ? inherited.partitionBy : window.partitionBy,
    orderBy: window.orderBy.length > 0 ? window.orderBy : inherited.orderBy,
    frame: window.frame ?? inherited.frame,
  }
}

/** An anchor is a further key. */
function anchored(window: ast.WindowSpecification): ast.WindowSpecification {
  const { anchor, partitionBy } = window
  return anchor === undefined ? window : { ...window, partitionBy: [...partitionBy, anchor.expression] }
}

function windowFunction(call: ast.Call, scope: ExpressionScope): Pick<WindowCall, 'name' | 'args' | 'type'> {
  const name = call.name.toLowerCase()
  if (windowFunctionNames.has(name)) return rankFunction(call, name, scope)
  if (aggregatesNamed(name).length === 0 && scalarsNamed(name).length > 0)
    throw new SqlError('non-window function called in window context', call.position)
  if (aggregatesNamed(name).length === 0) {
    throw unknownFunction(
      call,
      call.args.map((argument) => bindExpression(argument, scope)),
    )
  }
  // `sum(sum(x)) over ()`: the argument is an aggregate of the groups.
  const aggregate = aggregateCall(call, scope)
  const [argument] = aggregate.args
  if (argument !== undefined && (aggregate.name === 'min' || aggregate.name === 'max')) {
    const type = widened(argument.type)
    return { name: aggregate.name, args: [convertTo(argument, type)], type }
  }
  // In this dialect, sums of integers over a window are DOUBLE.
  const type =
    aggregate.name === 'sum' && isNumber(aggregate.type) && aggregate.type.name !== 'DECIMAL'
      ? dataType('DOUBLE')
      : aggregate.type
  return { name: aggregate.name, args: aggregate.args, type }
}

/** Over a window, integers become LONG and FLOAT becomes DOUBLE. */
function widened(type: DataType): DataType {
  if (type.name === 'INT' || type.name === 'SHORT' || type.name === 'BYTE') return dataType('LONG')
  return type.name === 'FLOAT' ? dataType('DOUBLE') : type
}

const argumentCounts: Record<string, readonly [number, number]> = {
  ntile: [1, 1],
  lag: [1, 3],
  lead: [1, 3],
  first_value: [1, 1],
  last_value: [1, 1],
  nth_value: [2, 2],
}

function rankFunction(
  call: ast.Call,
  name: string,
  scope: ExpressionScope,
): Pick<WindowCall, 'name' | 'args' | 'type'> {
  const args = call.args.map((argument) => bindExpression(argument, scope))
  const [fewest, most] = argumentCounts[name] ?? [0, 0]
  const surplus = args[most]
  if (surplus !== undefined && (name === 'lag' || name === 'lead'))
    throw new SqlError('too many arguments', surplus.position)
  if (args.length < fewest || args.length > most) throw noMatch(call.name, args, call.position)
  if (name === 'percent_rank' || name === 'cume_dist') return { name, args, type: dataType('DOUBLE') }
  const [value, offset, fallback] = args
  if (value === undefined || name === 'ntile') return { name, args, type: dataType('LONG') }
  const steps = offset !== undefined && isConstant(offset) ? offset.value : 1
  if (steps === null || Number(steps) < 0)
    throw new SqlError('offset must be a positive integer', offset?.position ?? call.position)
  const type = widened(value.type)
  const rest = [
    offset === undefined ? null : convertTo(offset, dataType('LONG')),
    fallback === undefined ? null : convertTo(fallback, type),
  ]
  return { name, args: [convertTo(value, type), ...rest.filter((argument) => argument !== null)], type }
}

// Frames ------------------------------------------------------------------------------------------------------------

const excludes: Record<string, WindowFrame['exclude']> = { 'current row': 'current', group: 'group', ties: 'ties' }

function bindFrame(
  window: ast.WindowSpecification,
  order: Expression | undefined,
  scope: ExpressionScope,
): WindowFrame {
  const { frame } = window
  if (frame?.mode === 'groups' && window.orderBy.length === 0)
    throw new SqlError('GROUPS mode requires an ORDER BY clause', frame.position)
  const isDistance = frame?.start.value !== null || frame.end.value !== null
  if (frame?.mode === 'range' && isDistance && window.orderBy.length !== 1)
    throw new SqlError('RANGE with offset PRECEDING/FOLLOWING requires exactly one ORDER BY column', frame.position)
  if (frame === null) return { unit: 'range', lo: null, hi: window.orderBy.length > 0 ? 0n : null, exclude: 'none' }
  if (frame.mode === 'cumulative' && window.orderBy.length === 0)
    throw new SqlError('CUMULATIVE requires an ORDER BY clause', frame.position)
  if (frame.mode === 'cumulative') return { unit: 'rows', lo: null, hi: 0n, exclude: 'none' }
  if (frame.start.kind === 'unbounded following') {
    throw new SqlError('frame start cannot be UNBOUNDED FOLLOWING, use UNBOUNDED PRECEDING', frame.start.position)
  }
  if (frame.end.kind === 'unbounded preceding') {
    throw new SqlError('frame end cannot be UNBOUNDED PRECEDING, use UNBOUNDED FOLLOWING', frame.end.position)
  }
  return {
    unit: frame.mode,
    lo: fraction(frame, frame.start, order, scope) ?? frameBound(frame.start, order, scope),
    hi: fraction(frame, frame.end, order, scope) ?? frameBound(frame.end, order, scope),
    exclude: frame.exclude === null ? 'none' : (excludes[frame.exclude] ?? 'none'),
  }
}

/** `range 1.5 preceding`: a distance with a fraction, of numbers. Null for any other bound. */
function fraction(
  { mode }: ast.WindowFrame,
  { kind, value, unit }: ast.FrameBound,
  order: Expression | undefined,
  scope: ExpressionScope,
): number | null {
  if (mode !== 'range' || value === null || unit !== null || order === undefined || !isNumber(order.type)) return null
  const bound = bindExpression(value, scope)
  if (!isConstant(bound) || !isNumber(bound.type)) return null
  const distance = convertTo(bound, dataType('DOUBLE'))
  const number = isConstant(distance) ? Number(distance.value) : 0
  if (Number.isInteger(number) || !(number > 0)) return null
  return kind === 'preceding' ? -number : number
}

export function frameBound(
  bound: ast.FrameBound,
  order: Expression | undefined,
  scope: ExpressionScope,
): bigint | null {
  switch (bound.kind) {
    case 'unbounded preceding':
    case 'unbounded following':
      return null
    case 'current row':
      return 0n
    case 'preceding':
      return -boundValue(bound, order, scope)
    case 'following':
      return boundValue(bound, order, scope)
  }
}

function boundValue(
  { value, unit, position }: ast.FrameBound,
  order: Expression | undefined,
  scope: ExpressionScope,
): bigint {
  const count = value === null ? null : bindExpression(value, scope)
  const isCharacter = count?.type.name === 'CHAR'
  if (count !== null && isConstant(count) && !isCharacter && !Number.isInteger(Number(count.value)))
    throw new SqlError('integer expression expected', count.position)
  const whole = count !== null && isConstant(count) && count.value !== null ? Math.trunc(Number(count.value)) : null
  const number = whole === null || Number.isNaN(whole) ? null : BigInt(whole)
  if (number === null || number < 0n)
    throw new SqlError('non-negative integer expression expected', count?.position ?? position)
  if (unit === null) return number
  const ticks = ticksPerUnit(
    unit,
    order !== undefined && isTime(order.type) && order.type.name === 'TIMESTAMP_NS' ? 'TIMESTAMP_NS' : 'TIMESTAMP',
  )
  assert(ticks !== null, 'B1: the parser takes no months and years')
  return number * ticks
}
