// Errors about calls that match no overload. For a function with a single signature the error names the wrong argument
// or the expected number of arguments; for others it shows the types of the arguments.

import { SqlError } from '../../base/errors.js'
import { typeName } from '../../types/compare.js'
import { isText } from '../../types/convert.js'
import type { TypePattern } from '../functions/function-types.js'
import { distance, type ResolvedArgument } from '../functions/registry/resolve.js'
import type { Expression } from '../plan/plan.js'
import { isUntypedNull } from './types.js'

const operators: ReadonlySet<string> = new Set('+ - * / % & | ^ << >> <<= >>= ~ !~ like ilike within'.split(' '))

/** Functions with a single signature. `const` marks an argument that must be constant. */
const singleForms = [
  'sin(DOUBLE) cos(DOUBLE) tan(DOUBLE) cot(DOUBLE) asin(DOUBLE) acos(DOUBLE) atan(DOUBLE) atan2(DOUBLE,DOUBLE)',
  'radians(DOUBLE) degrees(DOUBLE) power(DOUBLE,DOUBLE) sqrt(DOUBLE) exp(DOUBLE) log(DOUBLE) ln(DOUBLE) pi()',
  'mid(DOUBLE,DOUBLE) spread(DOUBLE,DOUBLE) spread_bps(DOUBLE,DOUBLE) wmid(DOUBLE,DOUBLE,DOUBLE,DOUBLE)',
  'hour(TIMESTAMP) day(TIMESTAMP) day_of_week(TIMESTAMP) day_of_week_sunday_first(TIMESTAMP) minute(TIMESTAMP)',
  'second(TIMESTAMP) week_of_year(TIMESTAMP) year(TIMESTAMP) month(TIMESTAMP) days_in_month(TIMESTAMP)',
  'micros(TIMESTAMP) millis(TIMESTAMP) nanos(TIMESTAMP) is_leap_year(TIMESTAMP) date_trunc(const:STRING,TIMESTAMP)',
  'extract(const:STRING,TIMESTAMP) datediff(CHAR,TIMESTAMP,TIMESTAMP) timestamp_ceil(const:STRING,TIMESTAMP)',
  'to_timezone(TIMESTAMP,STRING) to_utc(TIMESTAMP,STRING) interval_start(INTERVAL) interval_end(INTERVAL)',
  'now() now_ns() sysdate() systimestamp() systimestamp_ns() version() current_database() current_schema()',
  'current_user() rnd_boolean() rnd_char() to_uuid(LONG,LONG) to_long256(LONG,LONG,LONG,LONG) size_pretty(LONG)',
  'rnd_geohash(const:INT) rnd_decimal(const:INT,const:INT,const:INT) timestamp_sequence(TIMESTAMP,LONG)',
  'rnd_timestamp(const:TIMESTAMP,const:TIMESTAMP,const:INT) base64(BINARY,const:INT) from_base64(STRING)',
  'geo_distance_meters(DOUBLE,DOUBLE,DOUBLE,DOUBLE) wal_transactions(const:STRING) table_columns(const:STRING)',
  'row_number() rank() dense_rank() percent_rank() nsum(DOUBLE) stddev(DOUBLE) stddev_samp(DOUBLE) stddev_pop(DOUBLE) variance(DOUBLE) var_samp(DOUBLE)',
  'var_pop(DOUBLE) geomean(DOUBLE) corr(DOUBLE,DOUBLE) covar_samp(DOUBLE,DOUBLE) covar_pop(DOUBLE,DOUBLE)',
  'weighted_avg(DOUBLE,DOUBLE) weighted_stddev(DOUBLE,DOUBLE) weighted_stddev_rel(DOUBLE,DOUBLE)',
  'weighted_stddev_freq(DOUBLE,DOUBLE) regr_slope(DOUBLE,DOUBLE) regr_intercept(DOUBLE,DOUBLE) vwap(DOUBLE,DOUBLE)',
  'twap(DOUBLE,TIMESTAMP) bool_and(BOOLEAN) bool_or(BOOLEAN) array_avg(DOUBLE[]) array_count(DOUBLE[])',
  'array_cum_sum(DOUBLE[]) array_max(DOUBLE[]) array_min(DOUBLE[]) array_reverse(DOUBLE[]) array_stddev(DOUBLE[])',
  'array_stddev_pop(DOUBLE[]) array_stddev_samp(DOUBLE[]) array_sum(DOUBLE[]) flatten(DOUBLE[]) transpose(DOUBLE[])',
  'array_position(DOUBLE[],DOUBLE) dim_length(DOUBLE[],INT) matmul(DOUBLE[],DOUBLE[]) format_type(INT,INT)',
  'current_schemas(BOOLEAN) interval(TIMESTAMP,TIMESTAMP) length_bytes(VARCHAR) make_geohash(DOUBLE,DOUBLE,const:INT)',
  'haversine_dist_deg(DOUBLE,DOUBLE,TIMESTAMP) timestamp_shuffle(const:TIMESTAMP,const:TIMESTAMP)',
  'within_box(DOUBLE,DOUBLE,DOUBLE,DOUBLE,DOUBLE,DOUBLE) within_radius(DOUBLE,DOUBLE,DOUBLE,DOUBLE,DOUBLE)',
  'tables() all_tables() wal_tables() query_activity() functions() keywords() reader_pool() writer_pool() views()',
  'memory_metrics() materialized_views() table_storage() checkpoint_status() export_files() import_files()',
  'table_partitions(const:STRING) current_catalog() reload_config() flush_query_cache()',
  'rnd_interval() geo_within_radius_latlon(DOUBLE,DOUBLE,DOUBLE,DOUBLE,DOUBLE)',
]

interface Parameter {
  readonly type: TypePattern
  /** Name of the type in messages. */
  readonly name: string
  readonly isConstant: boolean
}

const formsByName = new Map<string, readonly Parameter[]>()
for (const form of singleForms.join(' ').split(' ')) {
  const open = form.indexOf('(')
  const parameters = form.slice(open + 1, -1).split(',')
  formsByName.set(form.slice(0, open), parameters[0] === '' ? [] : parameters.map(parameterOf))
}

function parameterOf(text: string): Parameter {
  const isConstant = text.startsWith('const:')
  const name = isConstant ? text.slice('const:'.length) : text
  return { type: (name.endsWith('[]') ? 'ARRAY' : name) as TypePattern, name, isConstant }
}

/** Messages of variadic functions that are called without arguments. */
const emptyCalls: Readonly<Record<string, string>> = {
  greatest: 'at least one argument is required by GREATEST(V)',
  least: 'at least one argument is required by LEAST(V)',
  coalesce: 'coalesce can be used with 2 or more arguments',
  concat: 'no arguments provided',
  rnd_symbol: 'no arguments provided',
  hydrate_table_metadata: 'no arguments provided',
  typeof: 'exactly one argument expected',
}

/** Functions that return one of their string arguments at random. */
const choices: ReadonlySet<string> = new Set(['rnd_str', 'rnd_symbol', 'rnd_varchar'])

/**
 * The error about a call of a variadic function, at the position of the wrong argument; null if the function is none.
 */
function variadicProblem(name: string, args: readonly Expression[], position: number): SqlError | null {
  const [first, ...rest] = args
  const stranger = rest.find(({ type }) => type.name !== 'ARRAY')
  if (name.startsWith('array_elem_') && first?.type.name === 'ARRAY' && stranger !== undefined)
    return new SqlError('expected DOUBLE[] argument', stranger.position)
  const noChoice = choices.has(name) ? args.find(({ kind, type }) => kind !== 'constant' || !isText(type)) : undefined
  if (noChoice !== undefined) return new SqlError('STRING constant expected', noChoice.position)
  if (name === 'array_build' && args.length > 0 && args.length < 3)
    return new SqlError('array_build requires at least 3 arguments: nArrays, size, filler(s)', position)
  if (name === 'typeof' && args.length > 1) return new SqlError('exactly one argument expected', position)
  return null
}

/** Whether the function has a single signature, so that errors can be specific. */
export function hasForm(name: string): boolean {
  return formsByName.has(name.toLowerCase())
}

/** The error about a call that matches no overload. */
export function noMatch(name: string, args: readonly Expression[], position: number): SqlError {
  const types = args.map(shownType)
  if (operators.has(name) && types.length === 2) {
    const operation = `${types[0]} ${name} ${types[1]}`
    return new SqlError(`there is no matching operator \`${name}\` with the argument types: ${operation}`, position)
  }
  if ((name === '-' || name === '~') && types.length === 1)
    return new SqlError(`there is no matching operator \`${name}\` with the argument type: ${types[0]}`, position)
  const variadic = variadicProblem(name.toLowerCase(), args, position)
  if (variadic !== null) return variadic
  const form = formsByName.get(name.toLowerCase())
  const problem = form === undefined ? null : formProblem(name, form, args, position)
  if (problem !== null) return problem
  if (args.length === 0) return new SqlError(emptyCall(name, form), position)
  return new SqlError(
    `there is no matching function \`${name}\` with the argument types: (${types.join(', ')})`,
    position,
  )
}

function shownType(argument: Expression): string {
  if (isUntypedNull(argument)) return 'NULL'
  return typeName(argument.type)
}

function emptyCall(name: string, form: readonly Parameter[] | undefined): string {
  const known = emptyCalls[name.toLowerCase()]
  if (known !== undefined) return known
  const parameters = form?.map(({ name: type, isConstant }) => (isConstant ? `${type} constant` : type)).join(', ')
  return `function \`${name}\` requires arguments${parameters === undefined ? '' : `: ${name}(${parameters})`}`
}

/** The error derived from the signature; null if the arguments convert to it. */
function formProblem(
  name: string,
  form: readonly Parameter[],
  args: readonly Expression[],
  position: number,
): SqlError | null {
  if (args.length === 0) return null
  if (args.length !== form.length) {
    const counts = `expected: ${form.length}, provided: ${args.length}`
    return new SqlError(`wrong number of arguments for function \`${name}\`; ${counts}`, position)
  }
  const wrong = args.findIndex(
    (argument, index) => distance(resolved(argument), (form[index] as Parameter).type) === null,
  )
  if (wrong < 0) return null
  return form.length === 2 ? wrongOfTwo(args, form) : wrongOfSome(name, args, form, position)
}

/**
 * Names the first argument whose type is not exactly that of the signature, even if another argument is the one that
 * does not convert.
 */
function wrongOfTwo(args: readonly Expression[], form: readonly Parameter[]): SqlError {
  const index = args.findIndex((argument, at) => {
    const { name, isConstant } = form[at] as Parameter
    return shownType(argument) !== name || (isConstant && argument.kind !== 'constant')
  })
  const [argument, { name }] = [args[index] as Expression, form[index] as Parameter]
  const actual = shownType(argument)
  const expected = actual === name ? `${name} constant` : name
  return new SqlError(`expression type mismatch, expected: ${expected}, actual: ${actual}`, argument.position)
}

/**
 * Lists all arguments whose types differ, at the position of the last. Arrays are named by their element type here, so
 * a DOUBLE never counts as different from a DOUBLE[].
 */
function wrongOfSome(
  name: string,
  args: readonly Expression[],
  form: readonly Parameter[],
  position: number,
): SqlError {
  const isOther = (argument: Expression, index: number): boolean =>
    shownType(argument) !== form[index]?.name.replace('[]', '')
  const places = args.flatMap((argument, index) => {
    const { name: type, isConstant } = form[index] as Parameter
    const isMoving = isConstant && argument.kind !== 'constant'
    const expected = isMoving ? `${type} constant` : type.replace('[]', '')
    const actual = shownType(argument)
    return isOther(argument, index) ? [`at #${index + 1} expected: ${expected}, actual: ${actual}`] : []
  })
  const last = args.findLast(isOther)
  const message = [`argument type mismatch for function \`${name}\``, ...places].join(' ')
  return new SqlError(message, last?.position ?? position)
}

function resolved(argument: Expression): ResolvedArgument {
  const isConstant = argument.kind === 'constant'
  return { type: argument.type, isNull: isUntypedNull(argument), isConstant }
}
