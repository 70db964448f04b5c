// Binds PostgreSQL's functions on the catalog and the session: names of oids (`oid::regclass`), definitions, sizes,
// settings, sequences, pg_notify(), pg_sleep() and the like. Query threads have no catalog, so what a call looks up in
// it is found while binding, or given to the call as a constant.

import { SqlError } from '../../base/errors.js'
import { findColumn } from '../../storage/schema/schema.js'
import { dataType, intKinds, isDay } from '../../types/column-types.js'
import { isText } from '../../types/convert.js'
import { nameParts, quoteIdent } from '../../types/identifier.js'
import type * as ast from '../ast/ast.js'
import { procedures } from '../functions/registry/all.js'
import { databaseName } from '../pg-catalog/database.js'
import { allOptions, optionKey, sessionOption, versionText } from '../pg-catalog/session-options.js'
import { firstOid, pgTypes, typeOid } from '../pg-catalog/types.js'
import type { Expression } from '../plan/plan.js'
import { type Counters, counterOf, sequenceMissing } from '../relations/counters.js'
import { columnCounters, ownEntries, relationNames, relationOid, rowTypeOid } from '../relations/entries.js'
import { enumerationNames, enumerationOid, labelsNames } from '../relations/enumeration-rows.js'
import { constraintDefinitions, indexDefinitions } from '../relations/key-rows.js'
import { schemasOf } from '../relations/namespaces.js'
import { roleNames, roleOid } from '../relations/roles.js'
import { type BindContext, isDescribed } from '../scope/bind-context.js'
import { columnDescription, lookupCall, objectDescription } from '../typing/lookup-call.js'
import { isConstant, scalarCall } from '../typing/make-call.js'
import { constantOf, convertTo, isUntypedNull, learnType } from '../typing/types.js'
import { bindExpression, type ExpressionScope } from './expression.js'

const textType = dataType('STRING')

/** Oid types whose text form is a name. */
export type NamedKind = Exclude<keyof typeof intKinds, 'oid'>

export function namedKind(typeName: string): NamedKind | null {
  switch (typeName) {
    case 'regclass':
    case 'regproc':
    case 'regtype':
    case 'regnamespace':
    case 'regrole':
      return typeName
    case 'regprocedure':
      return 'regproc'
    default:
      return null
  }
}

function kindOf({ type }: Expression): NamedKind | null {
  if (type.name !== 'INT' || type.a <= intKinds.oid) return null
  return (Object.entries(intKinds).find(([, kind]) => kind === type.a)?.[0] ?? null) as NamedKind | null
}

// Oids to names -----------------------------------------------------------------------------------------------------

/** An oid as its name; any other expression unchanged. */
export function oidAsName(expression: Expression, context: BindContext): Expression {
  const kind = kindOf(expression)
  if (kind === null) return expression
  const number = plainNumber(expression)
  if (kind === 'regtype') {
    const none = constantOf(null, dataType('INT'), expression.position)
    const own = [...enumerationNames(context), ...rowTypes(context)]
    return formatted([number, none], own, expression.position, context)
  }
  return lookupCall('catalog_name', number, namesOf(kind, context), context)
}

/** The value as it appears in text: a day has no time of day. */
export function asText(value: Expression, context: BindContext): Expression {
  return isDay(value.type) ? dayText(value, context) : oidAsName(value, context)
}

function dayText(day: Expression, context: BindContext): Expression {
  const pattern = constantOf('yyyy-MM-dd', dataType('STRING'), day.position)
  return scalarCall('to_str', [day, pattern], day.position, context)
}

/** format_type() itself knows PostgreSQL's types; types of this database (`names`) are looked up first. */
function formatted(
  args: readonly Expression[],
  names: Iterable<readonly [number, string]>,
  position: number,
  context: BindContext,
): Expression {
  const known = scalarCall('format_type', args, position, context)
  const found = new Map(names)
  if (found.size === 0) return known
  const own = lookupCall('catalog_text', args[0] as Expression, found, context)
  return scalarCall('coalesce', [own, known], position, context)
}

function plainNumber(expression: Expression): Expression {
  return { ...expression, type: dataType('INT') }
}

function namesOf(kind: NamedKind, context: BindContext): ReadonlyMap<number, string> {
  switch (kind) {
    case 'regclass':
      return relationNames(context)
    case 'regnamespace':
      return new Map([...schemasOf(context)].map(([name, oid]) => [oid, name]))
    case 'regrole':
      context.cacheable = false
      return roleNames(context)
    case 'regtype':
      return new Map([
        ...rowTypes(context),
        ...pgTypes.map(({ oid, sqlName }) => [oid, sqlName] as const),
        ...enumerationNames(context),
      ])
    case 'regproc':
      return new Map(procedures().map(({ oid, name }) => [oid, name]))
  }
}

/** Names of the row types of tables and views. */
function rowTypes(context: BindContext): (readonly [number, string])[] {
  const qualified = (schema: string): string => (schema === 'public' ? '' : `${quoteIdent(schema)}.`)
  return ownEntries(context).map(({ oid, schema, name }) => [rowTypeOid(oid), qualified(schema) + quoteIdent(name)])
}

function rowTypeNamed(name: string, context: BindContext): number | undefined {
  const wanted = name.replace(/^public\./, '')
  return rowTypes(context).find(([, shown]) => shown === wanted)?.[0]
}

// Names to oids -----------------------------------------------------------------------------------------------------

/** `'t'::regclass`: the oid of a name. A number is used as it is. */
export function castToNamed(value: Expression, kind: NamedKind, context: BindContext): Expression {
  const type = dataType('INT', intKinds[kind])
  if (!isText(value.type)) return { ...convertTo(plainNumber(value), dataType('INT')), type }
  if (!isConstant(value)) {
    const names = [...namesOf(kind, context)].map(([oid, name]) => [name, String(oid)] as const)
    const numbers = new Map([...otherNames(kind, names, context), ...names])
    return { ...lookupCall('catalog_number', value, numbers, context), type }
  }
  if (value.value === null) return constantOf(null, type, value.position)
  const name = String(value.value)
  const oid = numberOf(name, kind, context)
  if (oid === undefined) throw missing(name, kind, value.position)
  return constantOf(oid, type, value.position)
}

type NameAndOid = readonly [name: string, oid: string]

/** Further spellings of names, as object mappers build them from catalog columns. */
function otherNames(kind: NamedKind, names: readonly NameAndOid[], context: BindContext): NameAndOid[] {
  if (kind === 'regclass') return names.flatMap(placed)
  if (kind !== 'regtype') return []
  const own = [...names.filter(([, oid]) => Number(oid) >= firstOid), ...labelsNames(context)]
  const known = pgTypes.flatMap(({ oid, name }) =>
    [name, `pg_catalog.${name}`].map((place): NameAndOid => [place, String(oid)]),
  )
  return [...known, ...own.flatMap(placed)]
}

/** The name, also qualified by schema, and by database and schema. */
function placed([name, oid]: NameAndOid): NameAndOid[] {
  const schema = nameParts(name).length > 1 ? '' : Number(oid) < firstOid ? 'pg_catalog.' : 'public.'
  return ['', `${databaseName}.`].map((head): NameAndOid => [`${head}${schema}${name}`, oid])
}

function numberOf(name: string, kind: NamedKind, context: BindContext): number | undefined {
  if (/^\s*\d+\s*$/.test(name)) return Number(name)
  if (name === '-') return 0
  const bare = name.replace(/^pg_catalog\./, '').replaceAll('"', '')
  switch (kind) {
    case 'regclass':
      return relationOid(name, context)
    case 'regtype':
      return typeOid(name) ?? enumerationOid(name, context) ?? rowTypeNamed(name, context)
    case 'regnamespace':
      return schemasOf(context).get(bare)
    case 'regrole':
      context.cacheable = false
      return roleOid(bare, context)
    case 'regproc':
      return procedures().find((procedure) => procedure.name.toLowerCase() === bare.replace(/\(.*/, '').toLowerCase())
        ?.oid
  }
}

function missing(name: string, kind: NamedKind, position: number): SqlError {
  if (kind === 'regclass') return SqlError.tableMissing(name, position)
  const what = { regproc: 'function', regtype: 'type', regnamespace: 'schema', regrole: 'role' }[kind]
  return new SqlError(`${what} does not exist [${what}=${name}]`, position)
}

// Calls about relations -------------------------------------------------------------------------------------------------------------

/** `overRows`: the call is evaluated for rows of a FROM clause. */
type CatalogCall = (args: readonly Expression[], call: ast.Call, context: BindContext, overRows: boolean) => Expression

const constantText = (expression: Expression | undefined, call: ast.Call): string | null => {
  if (expression === undefined || !isConstant(expression)) throw new SqlError('a constant is expected', call.position)
  return expression.value === null ? null : String(expression.value)
}

/** NULL for an unknown name. */
function toNamed(kind: NamedKind): CatalogCall {
  return ([name], call, context) => {
    const text = constantText(name, call)
    const oid = text === null ? null : (numberOf(text, kind, context) ?? null)
    return constantOf(oid, dataType('INT', intKinds[kind]), call.position)
  }
}

/** Bytes in parts of a relation, given by name or oid. */
const relationSize: CatalogCall = ([relation], _call, context) => {
  const sizes = new Map(ownEntries(context).map(({ oid, bytes }) => [oid, String(bytes)]))
  const oid = castToNamed(relation as Expression, 'regclass', context)
  return convertTo(lookupCall('catalog_text', plainNumber(oid), sizes, context), dataType('LONG'))
}

/** Tables of schemas other than public are not visible without their schema. */
const tableIsVisible: CatalogCall = ([relation], call, context) => {
  const { position } = call
  const oid = relation as Expression
  const visible = scalarCall('pg_table_is_visible', [oid], position, context)
  const elsewhere = ownEntries(context).filter(({ schema }) => schema !== 'public')
  if (elsewhere.length === 0) return visible
  const numbers = elsewhere.flatMap((entry) => [entry.oid, ...entry.keys.map((key) => key.oid)])
  const oids = numbers.map((number) => constantOf(number, dataType('INT'), position))
  const isElsewhere = scalarCall('in', [convertTo(plainNumber(oid), dataType('INT')), ...oids], position, context)
  return scalarCall('and', [visible, scalarCall('not', [isElsewhere], position, context)], position, context)
}

const databaseSize: CatalogCall = (_args, call, context) => {
  const bytes = ownEntries(context).reduce((sum, entry) => sum + entry.bytes, 0)
  context.cacheable = false
  return constantOf(BigInt(bytes), dataType('LONG'), call.position)
}

const viewText: CatalogCall = ([view], _call, context) => {
  // pg_dump strips the last character, which in PostgreSQL is a semicolon.
  const strings = new Map(
    ownEntries(context).flatMap(({ oid, sql }) => (sql === null ? [] : [[oid, `${sql};`] as const])),
  )
  const oid = castToNamed(view as Expression, 'regclass', context)
  return lookupCall('catalog_text', plainNumber(oid), strings, context)
}

const constraintText: CatalogCall = ([constraint], _call, context) =>
  lookupCall('catalog_text', plainNumber(constraint as Expression), new Map(constraintDefinitions(context)), context)

/** Definition of an index, or of one of its columns by number. */
const indexText: CatalogCall = ([index, place], { position }, context) => {
  const oid = plainNumber(castToNamed(index as Expression, 'regclass', context))
  const text = dataType('STRING')
  const parts = [oid, constantOf(' ', text, position), place ?? constantOf(0, dataType('INT'), position)]
  return lookupCall(
    'catalog_text',
    scalarCall('concat', parts, position, context),
    new Map(indexDefinitions(context)),
    context,
  )
}

// The session ---------------------------------------------------------------------------------------------------------

const processId: CatalogCall = (_args, call, context) => {
  context.cacheable = false
  return constantOf(context.processId, dataType('INT'), call.position)
}

const exportSnapshot: CatalogCall = (_args, call, context) => {
  context.cacheable = false
  if (context.exportSnapshot === null)
    throw new SqlError('snapshots can only be exported in a transaction of the PostgreSQL wire protocol', call.position)
  return constantOf(isDescribed(context) ? '' : context.exportSnapshot(), textType, call.position)
}

/** An unknown name is an error, unless the second argument allows it. */
const currentSetting: CatalogCall = ([name, missingOk], call, context) => {
  const { evaluation } = context
  context.cacheable = false
  if (name !== undefined && !isConstant(name)) {
    const values = Object.fromEntries(allOptions(evaluation).map((entry) => [entry.name.toLowerCase(), entry.value]))
    const list = constantOf(JSON.stringify(values), textType, call.position)
    return scalarCall('setting_value', [name, list], call.position, context)
  }
  const text = constantText(name, call)
  const lenient = missingOk !== undefined && isConstant(missingOk) && missingOk.value === true
  const known = text === null ? undefined : sessionOption(text, evaluation)
  if (known === undefined && text !== null && !lenient)
    throw new SqlError(`unrecognized configuration parameter "${text}"`, name?.position ?? call.position)
  return constantOf(known?.value ?? null, textType, call.position)
}

const clientEncoding: CatalogCall = (_args, call, context) => {
  context.cacheable = false
  return constantOf(sessionOption('client_encoding', context.evaluation)?.value ?? null, textType, call.position)
}

const version: CatalogCall = (_args, call, context) => {
  context.cacheable = false
  return constantOf(versionText(context.evaluation.settings?.get('server_version')), textType, call.position)
}

const setConfig: CatalogCall = ([name, value, local], call, context, overRows) => {
  // pg_dump calls it for a row of pg_settings that exists in newer versions only.
  if (overRows && name !== undefined && value !== undefined && !isConstant(name))
    return scalarCall('set_config', [name, value], call.position, context)
  const key = constantText(name, call)
  const text = constantText(value, call)
  context.cacheable = false
  const isLocal = local !== undefined && isConstant(local) && local.value === true
  if (key !== null && text !== null && !isDescribed(context)) {
    if (context.configure === null) context.session?.set(optionKey(key), text)
    else context.configure(optionKey(key), text, isLocal)
  }
  return constantOf(text, textType, call.position)
}

/** The session sends the notification when its transaction commits. */
const notify: CatalogCall = (args, call, context, overRows) => {
  for (const argument of args) if (isUntypedNull(argument)) learnType(argument, textType)
  if (overRows || !args.every(isConstant))
    throw new SqlError('pg_notify() takes constants and cannot be called for each row', call.position)
  context.cacheable = false
  const [channel, payload] = args.map(({ value }) => (value === null ? '' : String(value)))
  if (!isDescribed(context)) {
    if (context.notify === null)
      throw new SqlError('notifications need a session of the PostgreSQL wire protocol', call.position)
    context.notify(channel ?? '', payload ?? '')
  }
  return constantOf('', textType, call.position)
}

const longestSleepSeconds = 2 ** 31 / 1000 - 1

/** Delays the start of the query. */
const sleep: CatalogCall = ([seconds], call, context) => {
  context.cacheable = false
  const value = seconds !== undefined && isConstant(seconds) ? Number(seconds.value) : Number.NaN
  if (!(value <= longestSleepSeconds)) throw new SqlError('pg_sleep takes a number of seconds', call.position)
  context.work.sleepMs += Math.max(0, value * 1000)
  return constantOf('', textType, call.position)
}

/** pg_cancel_backend() and pg_terminate_backend(). */
function signal(ends: boolean): CatalogCall {
  return ([process], call, context) => {
    if (process !== undefined) learnType(process, dataType('INT'))
    if (process === undefined || !isConstant(process) || !['INT', 'LONG'].includes(process.type.name))
      throw new SqlError(`${call.name} takes the process id of one session`, process?.position ?? call.position)
    context.cacheable = false
    const send = isDescribed(context) ? null : context.signal
    const done = process.value === null ? null : (send?.(Number(process.value), ends) ?? false)
    return constantOf(done, dataType('BOOLEAN'), call.position)
  }
}

const nextOf = (counters: Counters, name: string): bigint | undefined => counters.next(name)
const currentOf = (counters: Counters, name: string): bigint | undefined => counters.last(name)

/** nextval(), currval() and setval() on relations/counters.ts. Describing a statement advances no counter. */
function counted(change: (counters: Counters, name: string, value: bigint, isCalled: boolean) => bigint | undefined) {
  const bind: CatalogCall = ([name, value, isCalled], call, context, overRows) => {
    context.cacheable = false
    const nothing = constantOf(null, dataType('LONG'), call.position)
    // Evaluated once per statement, so it cannot be called per row.
    if (overRows) throw new SqlError(`${call.name} cannot be called for each row`, call.position)
    const { counters } = context.catalog
    const text = namedCounter(name, call, context)
    if (text === null || counters === undefined) return nothing
    if (counters.last(text) === undefined) throw sequenceMissing(text, call.position)
    if (change !== currentOf) context.requireWrite()
    if (isDescribed(context)) return nothing
    const number = value === undefined ? 0n : wholeConstant(value, call)
    if (number === null) return nothing
    const isBefore = isCalled !== undefined && isConstant(isCalled) && isCalled.value === false
    const result = change(counters, text, number, !isBefore)
    if (change === nextOf && result !== undefined && context.numbers) context.numbers.last = result
    return constantOf(result ?? null, dataType('LONG'), call.position)
  }
  return bind
}

/** The name as a string or as `'s'::regclass`. */
function namedCounter(name: Expression | undefined, call: ast.Call, context: BindContext): string | null {
  const text = constantText(name, call)
  if (text === null || name === undefined || kindOf(name) !== 'regclass') return text
  return (
    relationNames(context)
      .get(Number(text))
      ?.replace(/^"(.*)"$/, '$1') ?? text
  )
}

function wholeConstant(value: Expression, { name }: ast.Call): bigint | null {
  const text = isConstant(value) ? (value.value === null ? null : String(value.value)) : ''
  if (text === null) return null
  if (!/^-?\d{1,18}$/.test(text)) throw new SqlError(`${name} takes a constant whole number`, value.position)
  return BigInt(text)
}

const nextValue = counted(nextOf)
const currentValue = counted(currentOf)
const setValue = counted((counters, name, value, isCalled) => counters.set(name, value, isCalled))

/** lastval(): the session's last number, with which clients read the id of an inserted row. */
const lastValue: CatalogCall = (_, call, context) => {
  context.cacheable = false
  const last = context.numbers?.last ?? null
  if (last === null && !isDescribed(context))
    throw new SqlError('lastval is not yet defined in this session', call.position)
  return constantOf(last, dataType('LONG'), call.position)
}

const serialSequence: CatalogCall = ([table, column], call, context) => {
  if (table === undefined || column === undefined) return constantOf(null, textType, call.position)
  if (!isConstant(table) || !isConstant(column)) return serialSequences(table, column, call, context)
  const name = constantText(table, call)
    ?.replace(/^"?public"?\./i, '')
    .replaceAll('"', '')
  const found = constantText(column, call)
  const version = name === undefined ? undefined : context.catalog.table(name)
  const schema = found === null ? undefined : version && findColumn(version.schema, found)
  const counter = schema === undefined ? null : counterOf(schema)
  return constantOf(counter === null ? null : `public.${quoteIdent(counter)}`, textType, call.position)
}

/** pg_get_serial_sequence() for names that are columns of rows. */
function serialSequences(table: Expression, column: Expression, call: ast.Call, context: BindContext): Expression {
  const found = columnCounters(context).flatMap((counter) =>
    ['', 'public.'].map((head) => {
      const key = `${head}${quoteIdent(counter.table)} ${counter.column}`
      return [key, `public.${quoteIdent(counter.name)}`] as const
    }),
  )
  const blank = constantOf(' ', textType, call.position)
  const key = scalarCall('concat', [...shownArguments([table], context), blank, column], call.position, context)
  return lookupCall('catalog_text', key, new Map(found), context)
}

/** timezone(zone, ts) is ts AT TIME ZONE zone. */
const atZone: CatalogCall = ([zone, ts], call, context) =>
  scalarCall('to_timezone', [ts as Expression, zone as Expression], call.position, context)

const calls: Readonly<Record<string, { readonly counts: readonly number[]; readonly bind: CatalogCall }>> = {
  format_type: {
    counts: [2],
    bind: (args, call, context) => formatted(args, enumerationNames(context), call.position, context),
  },
  to_regclass: { counts: [1], bind: toNamed('regclass') },
  to_regtype: { counts: [1], bind: toNamed('regtype') },
  to_regproc: { counts: [1], bind: toNamed('regproc') },
  to_regprocedure: { counts: [1], bind: toNamed('regproc') },
  to_regnamespace: { counts: [1], bind: toNamed('regnamespace') },
  to_regrole: { counts: [1], bind: toNamed('regrole') },
  pg_get_userbyid: {
    counts: [1],
    bind: ([role], _call, context) => lookupCall('role_name', role as Expression, roleNames(context), context),
  },
  obj_description: { counts: [1, 2], bind: objectDescription },
  col_description: { counts: [2], bind: columnDescription },
  pg_get_viewdef: { counts: [1, 2], bind: viewText },
  pg_get_constraintdef: { counts: [1, 2], bind: constraintText },
  pg_get_indexdef: { counts: [1, 3], bind: indexText },
  pg_relation_size: { counts: [1, 2], bind: relationSize },
  pg_table_is_visible: { counts: [1], bind: tableIsVisible },
  pg_total_relation_size: { counts: [1], bind: relationSize },
  pg_table_size: { counts: [1], bind: relationSize },
  pg_database_size: { counts: [1], bind: databaseSize },
  pg_tablespace_size: { counts: [1], bind: databaseSize },
  pg_backend_pid: { counts: [0], bind: processId },
  pg_export_snapshot: { counts: [0], bind: exportSnapshot },
  current_setting: { counts: [1, 2], bind: currentSetting },
  pg_client_encoding: { counts: [0], bind: clientEncoding },
  version: { counts: [0], bind: version },
  set_config: { counts: [3], bind: setConfig },
  pg_notify: { counts: [2], bind: notify },
  nextval: { counts: [1], bind: nextValue },
  currval: { counts: [1], bind: currentValue },
  lastval: { counts: [0], bind: lastValue },
  setval: { counts: [2, 3], bind: setValue },
  pg_get_serial_sequence: { counts: [2], bind: serialSequence },
  pg_cancel_backend: { counts: [1], bind: signal(false) },
  pg_terminate_backend: { counts: [1, 2], bind: signal(true) },
  timezone: { counts: [2], bind: atZone },
  pg_sleep: { counts: [1], bind: sleep },
}

/** The bound call; undefined if the function is none of these or the number of arguments differs. */
export function bindCatalogCall(call: ast.Call, scope: ExpressionScope): Expression | undefined {
  const known = calls[call.name.toLowerCase()]
  if (known === undefined || !known.counts.includes(call.args.length)) return undefined
  const args = call.args.map((argument) => bindExpression(argument, scope))
  return known.bind(args, call, scope.context, scope.columns.length > 0)
}

/** Arguments of functions that take text: oids are replaced by names. */
export function shownArguments(args: readonly Expression[], context: BindContext): Expression[] {
  return args.map((argument) => asText(argument, context))
}
