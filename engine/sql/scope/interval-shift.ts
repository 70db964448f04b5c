// Rewrites arithmetic of timestamps and intervals in the syntax tree: `ts + interval '1 month 2 days'` becomes a chain
// of dateadd() calls, one per unit. The interval may be a literal, a parameter, a make_interval() call, a multiple of
// one, or a sum. Also rewrites comparisons such as `now() - ts > interval '1 hour'`, interval arguments of date_bin(),
// time_bucket(), generate_series() and OVERLAPS, and words such as `current_date`. Interval texts are parsed in
// types/span.ts; interval values that are not added to a timestamp are bound in typing/span.ts.

import { SqlError } from '../../base/errors.js'
import { dataType } from '../../types/column-types.js'
import { isNumber, isTime } from '../../types/convert.js'
import { oids } from '../../types/pg-oids.js'
import { hasMonths, microsOfUnit, type Shift, shiftsOf } from '../../types/span.js'
import { microsPerDay } from '../../types/timestamp-calendar.js'
import { parseSampleInterval } from '../../types/timestamp-floor.js'
import type { Value } from '../../types/value.js'
import type * as ast from '../ast/ast.js'
import type { Parameter } from '../catalog.js'
import { intervalArguments } from '../parse/call.js'
import { callOf, textAs, typeNamed } from '../rewrite/make-query.js'

/** `time + interval` or `time - interval` as dateadd() calls; null for any other expression. */
export function shiftedTime(
  { operator, left, right }: ast.BinaryExpression,
  parameters: readonly Parameter[],
): ast.Expression | null {
  if (operator !== '+' && operator !== '-') return null
  if (isMissing(left, parameters) || isMissing(right, parameters)) {
    const { position } = left
    return { kind: 'cast', position, operand: { kind: 'null', position }, type: typeNamed('timestamp', position) }
  }
  const after = spanOf(right, parameters)
  const span = after ?? (operator === '+' ? spanOf(left, parameters) : null)
  if (span === null) return null
  const sign = operator === '-' ? -1 : 1
  return span.reduce<ast.Expression>(
    (time, part) => shifted(time, { ...part, count: sign * part.count }),
    after === null ? right : left,
  )
}

const comparing: ReadonlySet<string> = new Set(['=', '<>', '<', '<=', '>', '>='])

/** Rewrites `now() - ts > interval '5 minutes'` to `now() > ts + interval '5 minutes'`; null for any other. */
export function comparedSpan(
  expression: ast.BinaryExpression,
  parameters: readonly Parameter[],
): ast.BinaryExpression | null {
  const { operator, left, right } = expression
  if (!comparing.has(operator)) return null
  if (isSpan(right, parameters)) {
    const times = timesBetween(left)
    return times && { ...expression, left: times[0], right: sumOf(times[1], right) }
  }
  const times = isSpan(left, parameters) ? timesBetween(right) : null
  return times && { ...expression, left: sumOf(times[1], left), right: times[0] }
}

function isSpan(expression: ast.Expression, parameters: readonly Parameter[]): boolean {
  return expression.kind !== 'string' && expression.kind !== 'parameter' && spanOf(expression, parameters) !== null
}

/** The operands of `a - b` or `age(a, b)`. */
function timesBetween(expression: ast.Expression): readonly [ast.Expression, ast.Expression] | null {
  if (expression.kind === 'binary' && expression.operator === '-') return [expression.left, expression.right]
  if (expression.kind !== 'call' || expression.name.toLowerCase() !== 'age') return null
  const [later, earlier, ...more] = expression.args
  return later === undefined || earlier === undefined || more.length > 0 ? null : [later, earlier]
}

function sumOf(left: ast.Expression, right: ast.Expression): ast.Expression {
  return { kind: 'binary', operator: '+', left, right, position: left.position }
}

/** The call with interval arguments replaced by timestamps or numbers, for functions that take intervals. */
export function withoutSpans(call: ast.Call, parameters: readonly Parameter[]): ast.Call {
  switch (call.name.toLowerCase()) {
    case 'date_bin':
      return withStride(withOrigin(call, '1970-01-01'), parameters)
    case 'time_bucket':
      return inMonths(call, parameters) ?? withStride(withOrigin(call, '2000-01-03'), parameters)
    case 'overlaps':
      return withEnds(call, parameters)
    default:
      return call
  }
}

function withOrigin(call: ast.Call, origin: string): ast.Call {
  const value: ast.Expression = { kind: 'string', position: call.position, value: origin }
  return call.args.length === 2 ? { ...call, args: [...call.args, value] } : call
}

/** `time_bucket('3 months', ts)` as timestamp_floor(); null for a width of days or less. */
function inMonths(call: ast.Call, parameters: readonly Parameter[]): ast.Call | null {
  const [width, ...others] = call.args
  if (width === undefined || others.length === 0) return null
  const operand = textAs(width, 'interval')
  const span = spanOf(operand, parameters) ?? []
  if (!hasMonths(span)) return null
  const text = stepText(operand, parameters)
  if (text === null) return null
  const value: ast.Expression = { kind: 'string', position: width.position, value: text }
  const origin: ast.Expression = { kind: 'string', position: call.position, value: '2000-01-01' }
  const [ts, from = origin] = others
  return ts === undefined ? null : { ...call, name: 'timestamp_floor', args: [value, ts, from] }
}

/** `(a, interval '1 day') overlaps (c, d)`: the end of the period is `a + interval '1 day'`. */
function withEnds(call: ast.Call, parameters: readonly Parameter[]): ast.Call {
  const args = call.args.map((end, index) => {
    const start = call.args[index - 1]
    return index % 2 === 1 && start !== undefined && isSpan(end, parameters) ? sumOf(start, end) : end
  })
  return { ...call, args }
}

/** `date_bin(interval '15 minutes', ..)`: the stride becomes a timestamp, its microseconds counted from the epoch. */
function withStride(call: ast.Call, parameters: readonly Parameter[]): ast.Call {
  const [written, ...others] = call.args
  if (written === undefined || written.kind === 'integer') return call
  const { position } = written
  const cast = (operand: ast.Expression, type: string): ast.Expression => ({
    kind: 'cast',
    position,
    operand,
    type: typeNamed(type, position),
  })
  const stride = written.kind === 'string' ? cast(written, 'interval') : written
  if (written.kind === 'string' && spanOf(stride, parameters) === null)
    throw new SqlError(`invalid interval: ${written.value}`, position)
  if (hasMonths(spanOf(stride, parameters) ?? []))
    throw new SqlError('timestamps cannot be binned into intervals containing months or years', position)
  const left = cast(integer(0, position), 'timestamp')
  const after: ast.Expression = { kind: 'binary', operator: '+', left, right: stride, position }
  return { ...call, args: [cast(after, 'long'), ...others] }
}

/**
 * The step of `generate_series(from, to, interval '1 day')` in the notation of SAMPLE BY: `1d`. Null for any other
 * step, among them one of months and days, which that notation cannot express.
 */
export function stepText(step: ast.Expression, parameters: readonly Parameter[]): string | null {
  if (step.kind === 'string' && parseSampleInterval(step.value.replace(/^-/, '')) !== null) return null
  const span = spanOf(step, parameters)
  if (span === null || span.length === 0 || span.some(({ times }) => times !== null)) return null
  const months = span.reduce((sum, { unit, count }) => sum + count * (monthsOf[unit] ?? 0), 0)
  const micros = span.reduce((sum, { unit, count }) => sum + count * Number(microsOfUnit(unit) ?? 0n), 0)
  if (months !== 0 && micros !== 0) throw new SqlError('a step of both months and days is not supported', step.position)
  if (months !== 0) return `${months}M`
  const [unit, size] = stepUnits.find(([, size]) => micros % size === 0) ?? ['U', 1]
  return `${micros / size}${unit}`
}

/** A generate_series() call with an interval step replaced by its SAMPLE BY notation. */
export function withStep(call: ast.Call, parameters: readonly Parameter[]): ast.Call {
  const [from, to, step, ...more] = call.args
  if (call.name.toLowerCase() !== 'generate_series' || from === undefined || to === undefined || step === undefined)
    return call
  const { position } = step
  // The value of the step is not known before execution.
  if (isMissing(step, parameters) || spanOf(step, parameters)?.length === 0)
    return { ...call, args: [from, to, { kind: 'null', position }, ...more] }
  const value = stepText(step, parameters)
  return value === null ? call : { ...call, args: [from, to, { kind: 'string', position, value }, ...more] }
}

const monthsOf: Readonly<Record<string, number>> = { y: 12, M: 1 }
const stepUnits = [
  ['d', microsPerDay],
  ['s', 1_000_000],
  ['U', 1],
] as const

/** A number of units, times an expression of the statement. */
interface Part extends Shift {
  readonly times: ast.Expression | null
}

function spanOf(expression: ast.Expression, parameters: readonly Parameter[]): readonly Part[] | null {
  switch (expression.kind) {
    case 'cast':
      return expression.type.name === 'interval' ? castSpan(expression.operand, parameters) : null
    case 'parameter': {
      const { slot } = parameters[expression.index - 1] ?? {}
      return slot?.oid === oids.interval ? [] : wordsOf(expression, parameters)
    }
    case 'call':
      return expression.name.toLowerCase() === 'make_interval' ? madeSpan(expression) : null
    case 'string':
      return wordsOf(expression, parameters)
    case 'binary':
      return expression.operator === '*' ? multiple(expression, parameters) : addedSpans(expression, parameters)
    default:
      return null
  }
}

/** `interval '1 day' + interval '2 hours'` */
function addedSpans({ operator, left, right }: ast.BinaryExpression, parameters: readonly Parameter[]): Part[] | null {
  if (operator !== '+' && operator !== '-') return null
  // The right side first: in a long chain the left side holds all earlier links, and each link would examine it again.
  const second = spanOf(right, parameters)
  const first = second === null ? null : spanOf(left, parameters)
  if (first === null || second === null) return null
  const sign = operator === '-' ? -1 : 1
  return [...first, ...second.map((part) => ({ ...part, count: sign * part.count }))]
}

/** Whether the expression is a NULL interval. */
function isMissing(expression: ast.Expression, parameters: readonly Parameter[]): boolean {
  if (expression.kind === 'cast') return expression.type.name === 'interval' && isNull(expression.operand, parameters)
  const isMade = expression.kind === 'call' && expression.name.toLowerCase() === 'make_interval'
  return isMade && expression.args.some((argument) => isNull(argument, parameters))
}

function isNull(expression: ast.Expression, parameters: readonly Parameter[]): boolean {
  if (expression.kind === 'cast') return isNull(expression.operand, parameters)
  if (expression.kind !== 'parameter') return expression.kind === 'null'
  const parameter = parameters[expression.index - 1]
  return parameter !== undefined && parameter.slot === undefined && parameter.value === null
}

/** A cast to interval. A parameter without a value gets the type of an interval text. */
function castSpan(operand: ast.Expression, parameters: readonly Parameter[]): readonly Part[] | null {
  if (operand.kind === 'binary' && operand.operator === '||') return joinedSpan(operand)
  const slot = operand.kind === 'parameter' ? parameters[operand.index - 1]?.slot : undefined
  if (slot === undefined) return wordsOf(operand, parameters)
  slot.type ??= dataType('STRING')
  slot.oid ??= oids.interval
  return []
}

/** `(x || ' days')::interval`: x times the unit. */
function joinedSpan({ left, right, position }: ast.BinaryExpression): readonly Part[] | null {
  const [shift, more] = (right.kind === 'string' && shiftsOf(`1 ${right.value}`)) || []
  if (shift === undefined || more !== undefined) return null
  const times: ast.Expression = { kind: 'cast', position, operand: left, type: typeNamed('double', position) }
  return [{ ...shift, times }]
}

function wordsOf(expression: ast.Expression, parameters: readonly Parameter[]): readonly Part[] | null {
  const value =
    expression.kind === 'string'
      ? expression.value
      : expression.kind === 'parameter'
        ? wordsOfParameter(parameters[expression.index - 1])
        : null
  const shifts = typeof value === 'string' ? shiftsOf(value) : null
  return shifts?.map((shift) => ({ ...shift, times: null })) ?? null
}

/**
 * The string value of a parameter. Values of numbers and timestamps are not read, so that the plan can be cached
 * without them.
 */
function wordsOfParameter(parameter: Parameter | undefined): Value | undefined {
  return parameter === undefined || isNumber(parameter.type) || isTime(parameter.type) ? undefined : parameter.value
}

/** `3 * interval '1 hour'`, `x * interval '1 hour'`. */
function multiple({ left, right }: ast.BinaryExpression, parameters: readonly Parameter[]): readonly Part[] | null {
  const before = spanOf(left, parameters)
  const span = before ?? spanOf(right, parameters)
  return span?.every(({ times }) => times === null)
    ? span.map((part) => ({ ...part, times: before === null ? left : right }))
    : null
}

/** `make_interval(0, 0, 0, 3)`; the parser has put named arguments into this order. */
function madeSpan({ args }: ast.Call): readonly Part[] | null {
  if (args.length > intervalArguments.length) return null
  return args.flatMap((times, place): readonly Part[] => {
    const [shift] = shiftsOf(`1 ${intervalArguments[place]}`) ?? []
    return shift === undefined || (times.kind === 'integer' && Number(times.digits) === 0) ? [] : [{ ...shift, times }]
  })
}

function shifted(time: ast.Expression, { unit, count, times }: Part): ast.Expression {
  const { position } = time
  if (times === null) return dateadd(unit, integer(count, position), time)
  const total: ast.Expression = {
    kind: 'binary',
    operator: '*',
    left: times,
    right: integer(count, position),
    position,
  }
  if (unit !== 's') return dateadd(unit, asInt(total), time)
  // Seconds may have a fraction.
  const whole: ast.Expression = callOf('floor', [total], position)
  const fraction: ast.Expression = { kind: 'binary', operator: '-', left: total, right: whole, position }
  const micros: ast.Expression = {
    kind: 'binary',
    operator: '*',
    left: fraction,
    right: integer(1_000_000, position),
    position,
  }
  return dateadd('u', asInt(micros), dateadd('s', asInt(whole), time))
}

function integer(value: number, position: number): ast.Expression {
  const digits = String(Math.abs(value))
  const number: ast.Expression = { kind: 'integer', position, text: digits, digits, long: false }
  return value < 0 ? { kind: 'unary', position, operator: '-', operand: number } : number
}

function asInt(operand: ast.Expression): ast.Expression {
  const { position } = operand
  return { kind: 'cast', position, operand, type: typeNamed('int', position) }
}

function dateadd(unit: string, amount: ast.Expression, time: ast.Expression): ast.Expression {
  const { position } = time
  return callOf('dateadd', [{ kind: 'string', position, value: unit }, amount, time], position)
}

/** `current_date`: midnight of today. */
export function currentDate(position: number): ast.Expression {
  return callOf('date_trunc', [{ kind: 'string', position, value: 'day' }, callOf('now', [], position)], position)
}

/** Words that PostgreSQL accepts as timestamps, such as `'epoch'::timestamp`; null for any other string. */
export function namedTime(text: string, position: number): ast.Expression | null {
  switch (text.trim().toLowerCase()) {
    case 'epoch':
      return integer(0, position)
    case 'now':
      return callOf('now', [], position)
    case 'today':
      return currentDate(position)
    case 'tomorrow':
      return dateadd('d', integer(1, position), currentDate(position))
    case 'yesterday':
      return dateadd('d', integer(-1, position), currentDate(position))
    default:
      return null
  }
}

/** `current_time` as a string, since there is no type for times of day. */
export function currentTime(position: number): ast.Expression {
  const pattern: ast.Expression = { kind: 'string', position, value: 'HH:mm:ss.SSSUUU' }
  return callOf('to_str', [callOf('now', [], position), pattern], position)
}
