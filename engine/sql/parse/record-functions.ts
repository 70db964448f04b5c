// Parses `jsonb_to_recordset(j) as x(a int, b text)` and similar functions in FROM, as a sub-query that extracts each
// column from the JSON. It is LATERAL if the JSON comes from another source. These functions get their columns from the
// alias alone, so the parser can rewrite them.

import { SqlError } from '../../base/errors.js'
import type {
  Call,
  Expression,
  Name,
  Query,
  QuerySource,
  Select,
  SelectItem,
  TableSource,
  TypeName,
} from '../ast/ast.js'
import { callOf } from '../rewrite/make-query.js'
import type { Cursor } from './cursor.js'
import { expect, parseList, parseName, take } from './expect.js'
import { parseTableAlias } from './source.js'
import { parseCastType } from './type-name.js'

const recordFunctions: Readonly<Record<string, 'one' | 'several'>> = {
  json_to_record: 'one',
  jsonb_to_record: 'one',
  json_to_recordset: 'several',
  jsonb_to_recordset: 'several',
}

export function isRecordFunction({ name }: Call): boolean {
  return Object.hasOwn(recordFunctions, name.toLowerCase())
}

/** The cursor is after the call. */
export function parseRecordSource(cursor: Cursor, position: number, call: Call): TableSource {
  const [json] = call.args
  if (json === undefined || call.args.length > 1)
    throw new SqlError(`${call.name}() takes one argument, which is JSON`, call.position)
  const alias = parseRecordAlias(cursor)
  if (cursor.word !== '(')
    throw new SqlError('a column definition list is required for functions returning "record"', call.position)
  expect(cursor, '(')
  const columns = parseList(cursor, parseRecordColumn)
  expect(cursor, ')')
  const isSet = recordFunctions[call.name.toLowerCase()] === 'several'
  const record: Expression = isSet ? { kind: 'column', position, path: ['value'], quoted: true } : json
  const items = columns.map(
    ({ name, type }): SelectItem => ({ position, expression: member(record, name, type), alias: name }),
  )
  const query = selectOf(position, cursor.previousEnd, items, isSet ? elements(call) : null)
  return { ...plainSource(position), kind: 'query source', query, lateral: true, alias }
}

/** `as x (..)`, `x (..)` or `as (..)`. */
function parseRecordAlias(cursor: Cursor): Name | null {
  if (!take(cursor, 'as')) return cursor.word === '(' ? null : parseTableAlias(cursor)
  return cursor.word === '(' ? null : parseName(cursor, 'alias expected')
}

function parseRecordColumn(cursor: Cursor): { readonly name: Name; readonly type: TypeName } {
  const name = parseName(cursor, 'column name expected')
  return { name, type: parseCastType(cursor, 'type expected') }
}

/** `(json ->> 'name')::type` */
function member(json: Expression, { name, position }: Name, type: TypeName): Expression {
  const isJson = type.name === 'json' || type.name === 'jsonb'
  const place: Expression = { kind: 'string', position, value: name }
  const operand = callOf(isJson ? 'json_get' : 'json_get_text', [json, place], position)
  return { kind: 'cast', position, operand, type }
}

function plainSource(position: number): Pick<QuerySource, 'position' | 'alias' | 'columnAliases' | 'timestamp'> {
  return { position, alias: null, columnAliases: [], timestamp: null }
}

function elements(call: Call): TableSource {
  const { position } = call
  const name = call.name.toLowerCase().replace('to_recordset', 'array_elements')
  return { ...plainSource(position), kind: 'table function', schema: null, call: { ...call, name }, ordinality: false }
}

function selectOf(position: number, end: number, items: readonly SelectItem[], from: TableSource | null): Query {
  const body: Select = {
    ...{ kind: 'select', position, implicit: false, distinct: false, distinctOn: [], items, from },
    ...{ joins: [], where: null, latestOn: null, sampleBy: null, groupBy: [], having: null, windows: [], pivot: null },
  }
  return { kind: 'query', position, end, declarations: [], commonTables: [], orderBy: [], limit: null, body }
}
