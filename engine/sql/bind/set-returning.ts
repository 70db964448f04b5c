// The table of set-returning functions, such as unnest() and jsonb_each(). Each is defined by two expressions over its
// arguments: how many rows it returns, and what the columns of its n-th row contain. The executor
// (exec/operators/replicate.ts) repeats each input row that often and supplies n.

import { assert } from '../../base/assert.js'
import { SqlError } from '../../base/errors.js'
import { type ColumnType, type DataType, dataType, elementType, textKinds, typeText } from '../../types/column-types.js'
import { isNumber, isText } from '../../types/convert.js'
import { textArray } from '../../types/text-lists.js'
import type * as ast from '../ast/ast.js'
import { textArrayType } from '../functions/text-lists.js'
import type { Expression } from '../plan/plan.js'
import type { BindContext } from '../scope/bind-context.js'
import { castOfJson } from '../typing/json-cast.js'
import { scalarCall } from '../typing/make-call.js'
import { noMatch } from '../typing/mismatch.js'
import { castTo, constantOf, convertTo, isUntypedNull, learnType, typeOfName } from '../typing/types.js'
import { elementOfArray, firstIndex } from './array.js'
import { series } from './series.js'

// Functions over JSON (elements and members), over strings (parts), and over matches of a regular expression.

/**
 * A column computed by a function of functions/json/json-parts.ts. `asText`: a JSON string is returned without quotes.
 */
interface JsonColumn {
  readonly name: string
  readonly part: string
  readonly type: DataType | null
  readonly asText?: true
  /** The column takes the name of the function, because it has none of its own. */
  readonly unnamed?: true
}

function ofJson(count: string, parts: readonly JsonColumn[]): SetReturningFunction {
  return (args, call, context) => {
    const [text, ...more] = args
    if (text === undefined || more.length > 0 || !(isText(text.type) || isUntypedNull(text)))
      throw noMatch(call.name, args, call.position)
    const valueAt =
      ({ part, type, asText }: JsonColumn) =>
      (ordinal: Expression): Expression => {
        const value = scalarCall(part, [text, asInt(ordinal)], call.position, context)
        if (asText) return scalarCall('json_text', [value], call.position, context)
        return type === null ? value : { ...value, type }
      }
    const columns = parts.map((part): ReplicatedColumn => {
      const column = { name: part.name, value: valueAt(part) }
      return part.unnamed ? column : { ...column, keepsName: true }
    })
    return { count: scalarCall(count, [text], call.position, context), columns }
  }
}

function jsonFunctions(kind: 'json' | 'jsonb'): Readonly<Record<string, SetReturningFunction>> {
  const type = dataType('STRING', textKinds[kind])
  const element = { name: 'value', part: 'json_element', type }
  const key = { name: 'key', part: 'json_member_name', type: null }
  const value = { name: 'value', part: 'json_member', type }
  const keys = `${kind}_object_keys`
  return {
    [`${kind}_array_elements`]: ofJson('json_element_count', [element]),
    [`${kind}_array_elements_text`]: ofJson('json_element_count', [{ ...element, asText: true }]),
    [`${kind}_each`]: ofJson('json_member_count', [key, value]),
    [`${kind}_each_text`]: ofJson('json_member_count', [key, { ...value, asText: true }]),
    [keys]: ofJson('json_member_count', [{ ...key, name: keys, unnamed: true }]),
  }
}

/**
 * One row for each element of a list that the function `list` computes. If `type` is set, the elements are themselves
 * lists of that type.
 */
function ofList(list: string, type: DataType | null = null): SetReturningFunction {
  return (args, call, context) => {
    const made = scalarCall(list, args, call.position, context)
    const value = (ordinal: Expression): Expression => {
      const element = elementOf(made, ordinal, context)
      return type === null ? element : { ...element, type }
    }
    return { count: lengthOf(made, call, context), columns: [{ name: call.name, value }] }
  }
}

const textExpanders: Readonly<Record<string, SetReturningFunction>> = {
  ...jsonFunctions('json'),
  ...jsonFunctions('jsonb'),
  string_to_table: ofList('string_to_array'),
  regexp_split_to_table: ofList('regexp_split_to_array'),
  regexp_matches: ofList('regexp_matches_list', textArrayType),
}

/**
 * `unnest(json columns (a int, b text))`: a row for each element of a JSON array. A column is the member of its name;
 * the only column is the element itself where that is no object. What is missing or cannot be cast is NULL.
 */
function ofJsonColumns(
  [json, ...more]: readonly Expression[],
  columns: readonly ast.JsonColumn[],
  context: BindContext,
): RowReplication {
  assert(json !== undefined, 'B1: COLUMNS follows an argument')
  const [second] = more
  if (second !== undefined) throw new SqlError('COLUMNS takes one JSON text', second.position)
  const untyped = isUntypedNull(json)
  if (!(isText(json.type) || untyped))
    throw new SqlError(`COLUMNS takes a JSON text, not ${typeText(json.type)}`, json.position)
  if (untyped) learnType(json, dataType('VARCHAR'))
  const names = new Set<string>()
  const expanded = columns.map(({ name: { name, position }, type: written }): ReplicatedColumn => {
    if (names.has(name.toLowerCase())) throw new SqlError(`duplicate column [name=${name}]`, position)
    names.add(name.toLowerCase())
    const type = typeOfName(written)
    if (type === undefined || !jsonColumnTypes.has(type.name))
      throw new SqlError(`unsupported type of a JSON column [type=${written.text}]`, written.position)
    const [key, isOnly] = [
      constantOf(name, dataType('STRING'), position),
      constantOf(columns.length === 1, dataType('BOOLEAN'), position),
    ]
    const value = (ordinal: Expression): Expression => {
      const text = scalarCall('json_element_member', [json, asInt(ordinal), key, isOnly], position, context)
      return castOfJson(text, type, context) ?? castTo(text, type)
    }
    return { name, keepsName: true, value }
  })
  return { count: scalarCall('json_element_count', [json], json.position, context), columns: expanded }
}

/** Those to which a text can be cast. */
const jsonColumnTypes: ReadonlySet<ColumnType> = new Set<ColumnType>([
  ...(['BOOLEAN', 'BYTE', 'SHORT', 'INT', 'LONG', 'FLOAT', 'DOUBLE', 'DECIMAL', 'CHAR', 'STRING', 'VARCHAR'] as const),
  ...(['SYMBOL', 'DATE', 'TIMESTAMP', 'TIMESTAMP_NS', 'UUID', 'IPv4', 'LONG256'] as const),
])

const intType = dataType('INT')

export interface RowReplication {
  /** Number of rows that one row becomes, an INT; NULL for none. */
  readonly count: Expression
  readonly columns: readonly ReplicatedColumn[]
}

interface ReplicatedColumn {
  readonly name: string
  readonly value: (ordinal: Expression) => Expression
  /** The alias of the function does not rename the column. */
  readonly keepsName?: true
}

export type SetReturningFunction = (args: readonly Expression[], call: ast.Call, context: BindContext) => RowReplication

export const setReturningFunctions: Readonly<Record<string, SetReturningFunction>> = {
  ...textExpanders,
  unnest: (args, call, context) => {
    if (args.length === 0) throw noMatch(call.name, args, call.position)
    if (call.jsonColumns !== undefined) return ofJsonColumns(args, call.jsonColumns, context)
    const lengths = args.map((list) => lengthOf(list, call, context))
    return {
      count:
        lengths.length === 1 ? (lengths[0] as Expression) : scalarCall('greatest', lengths, call.position, context),
      columns: args.map((list) => ({ name: 'unnest', value: (ordinal) => elementOf(list, ordinal, context) })),
    }
  },
  generate_subscripts: ([list, ...rest], call, context) => {
    if (list === undefined) throw noMatch(call.name, rest, call.position)
    const first = firstIndex(list, call.position, context)
    const one = constantOf(1, intType, call.position)
    const value = (ordinal: Expression): Expression => {
      if (first === null) return asInt(ordinal)
      return asInt(scalarCall('+', [scalarCall('-', [ordinal, one], 0, context), first], 0, context))
    }
    return { count: lengthOf(list, call, context), columns: [{ name: 'generate_subscripts', value }] }
  },
  _pg_expandarray: ([list], call, context) => {
    if (list === undefined) throw noMatch(call.name, [], call.position)
    const pair = (ordinal: Expression): Expression =>
      scalarCall('list_pair', [asInt(ordinal), convertTo(list, dataType('STRING'))], 0, context)
    return { count: lengthOf(list, call, context), columns: [{ name: '_pg_expandarray', value: pair }] }
  },
  pg_listening_channels: (_args, call, context) => {
    context.cacheable = false
    const list = constantOf(textArray(context.channels()), textArrayType, call.position)
    const value = (ordinal: Expression): Expression => elementOf(list, ordinal, context)
    return { count: lengthOf(list, call, context), columns: [{ name: 'pg_listening_channels', value }] }
  },
  // No table here has inherited partitions, so there are no rows.
  pg_partition_tree: ([table], call) => {
    if (table === undefined) throw noMatch(call.name, [], call.position)
    const nothing = (type: DataType) => () => constantOf(null, type, call.position)
    return {
      count: constantOf(null, intType, call.position),
      columns: [
        { name: 'relid', value: nothing(intType) },
        { name: 'parentrelid', value: nothing(intType) },
        { name: 'isleaf', value: nothing(dataType('BOOLEAN')) },
        { name: 'level', value: nothing(intType) },
      ],
    }
  },
  // Each element has the form `name=value`.
  pg_options_to_table: ([list], call, context) => {
    if (list === undefined) throw noMatch(call.name, [], call.position)
    const cut = (name: string, ordinal: Expression, by: (equals: Expression) => Expression): Expression => {
      const option = elementOf(list, ordinal, context)
      const sign = constantOf('=', dataType('STRING'), call.position)
      const equals = scalarCall('strpos', [option, sign], call.position, context)
      return scalarCall(name, [option, by(equals)], call.position, context)
    }
    const one = constantOf(1, intType, call.position)
    const moved = (operator: string) => (equals: Expression) =>
      scalarCall(operator, [equals, one], call.position, context)
    return {
      count: lengthOf(list, call, context),
      columns: [
        { name: 'option_name', value: (ordinal) => cut('left', ordinal, moved('-')) },
        { name: 'option_value', value: (ordinal) => cut('substring', ordinal, moved('+')) },
      ],
    }
  },
  generate_series: series,
}

const asInt = (ordinal: Expression): Expression => convertTo(ordinal, intType)

function lengthOf(list: Expression, call: ast.Call, context: BindContext): Expression {
  if (list.type.name === 'ARRAY')
    return scalarCall('dim_length', [list, constantOf(1, intType, call.position)], call.position, context)
  // In the native dialect a list of oids may be a single number.
  if (isNumber(list.type)) return constantOf(1, intType, call.position)
  if (!isText(list.type)) throw noMatch(call.name, [list], call.position)
  return scalarCall('cardinality', [list], call.position, context)
}

function elementOf(list: Expression, ordinal: Expression, context: BindContext): Expression {
  if (list.type.name === 'ARRAY') return elementOfArray(list, [asInt(ordinal)], list.position, context)
  if (isNumber(list.type)) return list
  const element = scalarCall('list_element', [list, asInt(ordinal)], list.position, context)
  const type = elementType(list.type)
  return isText(type) ? element : { kind: 'call', name: 'cast', args: [element], type, position: list.position }
}
