// Binds the table functions of FROM whose arguments are constants: long_sequence() and generate_series(), to a plan
// that computes its columns from a sequence of numbers, and unnest() of a constant array, to a plan of constant rows.

import { SqlError } from '../../base/errors.js'
import { arrayElementType, type DataType, dataType } from '../../types/column-types.js'
import { isNumber, isText, isTime } from '../../types/convert.js'
import type { TimestampUnit } from '../../types/timestamp-calendar.js'
import { parseSampleInterval, ticksPerUnit } from '../../types/timestamp-floor.js'
import type { Call } from '../ast/ast.js'
import type { Expression, Plan } from '../plan/plan.js'
import { type Constant, isConstant, scalarCall } from '../typing/make-call.js'
import { noMatch } from '../typing/mismatch.js'
import { constantOf, convertTo, isUntypedNull, learnType } from '../typing/types.js'
import type { BindContext } from './bind-context.js'
import { type Relation, scopeOf } from './scope.js'

const longType = dataType('LONG')
const sequenceRowsMax = 1_000_000_000_000n

/** The relation of a table function; undefined if the call is not one of them. */
export function bindRowFunction(call: Call, args: readonly Expression[], context: BindContext): Relation | undefined {
  switch (call.name.toLowerCase()) {
    case 'long_sequence':
      return longSequence(call, args)
    case 'generate_series':
      return generateSeries(call, args, context)
    case 'unnest':
      return unnest(call, args)
    default:
      return undefined
  }
}

function longSequence(call: Call, args: readonly Expression[]): Relation {
  const [count, seed0, seed1] = args.map((argument) => integer(argument))
  if (count === undefined || args.length > 3 || args.length === 2)
    throw new SqlError('invalid arguments', call.position)
  const seed = seed0 === undefined || seed1 === undefined ? null : ([seed0, seed1] as const)
  return relationOf(sequence(count, seed, 'x'))
}

function integer(argument: Expression): bigint {
  if (isUntypedNull(argument)) {
    learnType(argument, longType)
    return 0n
  }
  const value = isNumber(argument.type) || isText(argument.type) ? convertTo(argument, longType) : argument
  if (!isConstant(value) || typeof value.value !== 'bigint')
    throw new SqlError('a constant number is expected', argument.position)
  return value.value
}

function sequence(count: bigint, seed: readonly [bigint, bigint] | null, name: string): Plan {
  const bounded = count < 0n ? 0n : count > sequenceRowsMax ? sequenceRowsMax : count
  return { kind: 'sequence', columns: [{ name, type: longType }], count: bounded, seed }
}

function relationOf(plan: Plan, timestampIndex = -1): Relation {
  return { plan, columns: scopeOf(plan, null), timestampIndex, order: timestampIndex < 0 ? 'none' : 'ascending' }
}

/** The elements of a constant array, one per row. Nested arrays are flattened. */
function unnest(call: Call, args: readonly Expression[]): Relation {
  const [array, ...more] = args
  if (array === undefined || more.length > 0) throw noMatch(call.name, args, call.position)
  if (array.type.name !== 'ARRAY') throw noMatch(call.name, args, call.position)
  if (!isConstant(array)) throw new SqlError('unnest() takes a constant array', array.position)
  const { value } = array
  const elements = typeof value === 'object' && value !== null && 'data' in value ? [...value.data] : []
  const type = arrayElementType(array.type)
  const rows = elements.map((element) => [
    Number.isNaN(element) ? null : type.name === 'LONG' ? BigInt(element) : element,
  ])
  return relationOf({ kind: 'values', columns: [{ name: 'unnest', type }], rows })
}

// generate_series ---------------------------------------------------------------------------------------------------

function generateSeries(call: Call, args: readonly Expression[], context: BindContext): Relation {
  if (args.length < 2 || args.length > 3 || !args.every(isConstant)) throw noMatch(call.name, args, call.position)
  const [start, end, step] = args.map(midnightOfDay) as readonly (Constant | undefined)[]
  if (start === undefined || end === undefined) throw noMatch(call.name, args, call.position)
  const time = args.map(midnightOfDay).find(({ type }) => isTime(type))
  for (const [index, argument] of args.entries())
    if (isUntypedNull(argument) && (time === undefined || index < 2)) learnType(argument, time?.type ?? longType)
  // A NULL bound or step makes an empty series.
  if (args.some((argument) => isConstant(argument) && argument.value === null))
    return relationOf({
      kind: 'values',
      columns: [{ name: 'generate_series', type: seriesType(args, time) }],
      rows: [],
    })
  if (isTime(start.type) || isText(start.type)) return timeSeries(call, start, end, step, context)
  if (!isNumber(start.type) || !isNumber(end.type)) throw noMatch(call.name, args, call.position)
  const whole = args.every(({ type }) => ['BYTE', 'SHORT', 'INT', 'LONG'].includes(type.name))
  return whole ? integerSeries(start, end, step, context) : doubleSeries(start, end, step, context)
}

function seriesType(args: readonly Expression[], time: Expression | undefined): DataType {
  const isFraction = args.some(({ type }) => type.name === 'DOUBLE' || type.name === 'FLOAT')
  return time?.type ?? (isFraction ? dataType('DOUBLE') : longType)
}

/** A DATE bound becomes a TIMESTAMP. */
function midnightOfDay(argument: Expression): Expression {
  return argument.type.name === 'DATE' ? convertTo(argument, dataType('TIMESTAMP')) : argument
}

/** Swaps bounds that contradict the sign of the step. */
function inOrder<T extends number | bigint>(from: T, to: T, rises: boolean): readonly [T, T] {
  return from > to === rises ? [to, from] : [from, to]
}

function integerSeries(start: Constant, end: Constant, step: Constant | undefined, context: BindContext): Relation {
  const by = step === undefined ? 1n : integer(step)
  const [from, to] = inOrder(integer(start), integer(end), by > 0n)
  if (by === 0n) throw new SqlError('step cannot be zero', step?.position ?? 0)
  const count = (to - from) / by + 1n
  return series(
    longType,
    (to - from) * by < 0n ? 0n : count,
    constantOf(from, longType, 0),
    constantOf(by, longType, 0),
    context,
  )
}

function doubleSeries(start: Constant, end: Constant, step: Constant | undefined, context: BindContext): Relation {
  const type = dataType('DOUBLE')
  const [from, to, by] = [start, end, step].map((argument) =>
    argument === undefined ? constantOf(1, type, 0) : convertTo(argument, type),
  )
  if (
    from === undefined ||
    to === undefined ||
    by === undefined ||
    !isConstant(from) ||
    !isConstant(to) ||
    !isConstant(by)
  ) {
    throw new SqlError('a constant number is expected', start.position)
  }
  const size = Number(by.value)
  if (size === 0) throw new SqlError('step cannot be zero', step?.position ?? 0)
  const [first, last] = inOrder(Number(from.value), Number(to.value), size > 0)
  const count = Math.floor((last - first) / size + 1e-9) + 1
  const rows = Math.min(Number(sequenceRowsMax), Math.max(0, count))
  if (Number.isNaN(rows)) throw new SqlError('a finite number is expected', start.position)
  return series(type, BigInt(rows), constantOf(first, type, from.position), by, context)
}

function timeSeries(
  call: Call,
  start: Constant,
  end: Constant,
  step: Constant | undefined,
  context: BindContext,
): Relation {
  const type: DataType = isTime(start.type) ? start.type : dataType('TIMESTAMP')
  const [from, to] = [convertTo(start, type), convertTo(end, type)]
  if (
    !isConstant(from) ||
    !isConstant(to) ||
    typeof from.value !== 'bigint' ||
    typeof to.value !== 'bigint' ||
    step === undefined
  ) {
    throw noMatch(call.name, [start, end], call.position)
  }
  if (isText(step.type)) return steppedSeries(type, from, to.value, step, context)
  const by = integer(step)
  if (by === 0n) throw new SqlError('step cannot be zero', step.position)
  const span = to.value - from.value
  return series(type, span * by < 0n ? 0n : span / by + 1n, from, constantOf(by, longType, 0), context, 0)
}

/** A step in the notation of SAMPLE BY: `'6h'`, `'1M'`, `'-1d'`. */
function steppedSeries(type: DataType, from: Constant, to: bigint, step: Constant, context: BindContext): Relation {
  const text = String(step.value)
  const interval = parseSampleInterval(text.replace(/^-/, ''))
  if (interval === null) throw new SqlError(`invalid period [period=${text}]`, step.position)
  const sign = text.startsWith('-') ? -1n : 1n
  const unit = type.name as TimestampUnit
  const ticks = ticksPerUnit(interval.unit, unit)
  const start = from.value as bigint
  if (ticks !== null) {
    const by = ticks * BigInt(interval.count) * sign
    const span = to - start
    return series(type, span * by < 0n ? 0n : span / by + 1n, from, constantOf(by, longType, 0), context, 0)
  }
  return calendarSeries(type, from, to, { unit: interval.unit, count: interval.count * Number(sign) }, context)
}

/** Steps of months and years: dateadd() over the sequence, filtered by the end. */
function calendarSeries(
  type: DataType,
  from: Constant,
  to: bigint,
  step: { unit: string; count: number },
  context: BindContext,
): Relation {
  const days = step.unit === 'y' ? 365n : 28n
  const perDay = ticksPerUnit('d', type.name as TimestampUnit) ?? 1n
  const span = to - (from.value as bigint)
  const count = (span < 0n ? -span : span) / (perDay * days * BigInt(Math.abs(step.count))) + 1n
  const plan = sequence(count, null, 'x')
  const offset = scalarCall(
    '*',
    [
      scalarCall('-', [column(longType), constantOf(1n, longType, 0)], 0, context),
      constantOf(BigInt(step.count), longType, 0),
    ],
    0,
    context,
  )
  const narrow: Expression = { kind: 'call', name: 'cast', args: [offset], type: dataType('INT'), position: 0 }
  const value = scalarCall('dateadd', [constantOf(step.unit, dataType('CHAR'), 0), narrow, from], 0, context)
  const projected: Plan = {
    kind: 'project',
    columns: [{ name: 'generate_series', type }],
    input: plan,
    expressions: [value],
  }
  const predicate = scalarCall(step.count > 0 ? '<=' : '>=', [column(type), constantOf(to, type, 0)], 0, context)
  return relationOf({ kind: 'filter', columns: projected.columns, input: projected, predicate }, 0)
}

function column(type: DataType): Expression {
  return { kind: 'column', index: 0, type, position: 0 }
}

/** The series as an expression of the sequence x: start + (x - 1) * step. */
function series(
  type: DataType,
  count: bigint,
  start: Expression,
  step: Expression,
  context: BindContext,
  timestampIndex = -1,
): Relation {
  const input = sequence(count, null, 'x')
  const index = scalarCall('-', [column(longType), constantOf(1n, longType, 0)], 0, context)
  const value = scalarCall('+', [start, scalarCall('*', [index, step], 0, context)], 0, context)
  const plan: Plan = { kind: 'project', columns: [{ name: 'generate_series', type }], input, expressions: [value] }
  return relationOf(plan, timestampIndex)
}
