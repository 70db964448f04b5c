// The functions that make several rows of one, and what each row gets. How rows are expanded is in expand.ts.

import { type DataType, dataType, elementType } from '../../types/column-types.js'
import { textArray } from '../../types/text-lists.js'
import { isNumber, isText } from '../functions/convert.js'
import { textsType } from '../functions/text-lists.js'
import type * as ast from '../parse/ast.js'
import type { Expression } from '../plan/plan.js'
import { elementOfArray, firstIndex } from './array.js'
import type { BindContext } from './bind-context.js'
import { scalarCall } from './make-call.js'
import { noMatch } from './mismatch.js'
import { series } from './series.js'
import { textExpanders } from './text-expanders.js'
import { constantOf, convertTo } from './types.js'

const intType = dataType('INT')

export interface Expansion {
  /** Rows that one row becomes: an INT, NULL for none. */
  readonly count: Expression
  readonly columns: readonly ExpandedColumn[]
}

export interface ExpandedColumn {
  readonly name: string
  readonly value: (place: Expression) => Expression
  /** The alias of the function in FROM does not rename it. */
  readonly keepsName?: true
}

export type Expander = (args: readonly Expression[], call: ast.Call, context: BindContext) => Expansion

export const expanders: Readonly<Record<string, Expander>> = {
  ...textExpanders,
  unnest: (args, call, context) => {
    if (args.length === 0) throw noMatch(call.name, args, call.position)
    const lengths = args.map((list) => lengthOf(list, call, context))
    return {
      count:
        lengths.length === 1 ? (lengths[0] as Expression) : scalarCall('greatest', lengths, call.position, context),
      columns: args.map((list) => ({ name: 'unnest', value: (place) => elementOf(list, place, context) })),
    }
  },
  generate_subscripts: ([list, ...rest], call, context) => {
    if (list === undefined) throw noMatch(call.name, rest, call.position)
    const first = firstIndex(list, call.position, context)
    const one = constantOf(1, intType, call.position)
    const value = (place: Expression): Expression => {
      if (first === null) return asInt(place)
      return asInt(scalarCall('+', [scalarCall('-', [place, one], 0, context), first], 0, context))
    }
    return { count: lengthOf(list, call, context), columns: [{ name: 'generate_subscripts', value }] }
  },
  _pg_expandarray: ([list], call, context) => {
    if (list === undefined) throw noMatch(call.name, [], call.position)
    const pair = (place: Expression): Expression =>
      scalarCall('list_pair', [asInt(place), convertTo(list, dataType('STRING'))], 0, context)
    return { count: lengthOf(list, call, context), columns: [{ name: '_pg_expandarray', value: pair }] }
  },
  pg_listening_channels: (_args, call, context) => {
    context.cacheable = false
    const list = constantOf(textArray(context.channels()), textsType, call.position)
    const value = (place: Expression): Expression => elementOf(list, place, context)
    return { count: lengthOf(list, call, context), columns: [{ name: 'pg_listening_channels', value }] }
  },
  // Partitions of tables are no relations: no table has a tree of them.
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
  // `name=value` in each element.
  pg_options_to_table: ([list], call, context) => {
    if (list === undefined) throw noMatch(call.name, [], call.position)
    const cut = (name: string, place: Expression, by: (equals: Expression) => Expression): Expression => {
      const option = elementOf(list, place, context)
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
        { name: 'option_name', value: (place) => cut('left', place, moved('-')) },
        { name: 'option_value', value: (place) => cut('substring', place, moved('+')) },
      ],
    }
  },
  generate_series: series,
}

export const asInt = (place: Expression): Expression => convertTo(place, intType)

export function lengthOf(list: Expression, call: ast.Call, context: BindContext): Expression {
  if (list.type.name === 'ARRAY')
    return scalarCall('dim_length', [list, constantOf(1, intType, call.position)], call.position, context)
  // Over HTTP a list of numbers of the catalog is one number.
  if (isNumber(list.type)) return constantOf(1, intType, call.position)
  if (!isText(list.type)) throw noMatch(call.name, [list], call.position)
  return scalarCall('cardinality', [list], call.position, context)
}

export function elementOf(list: Expression, place: Expression, context: BindContext): Expression {
  if (list.type.name === 'ARRAY') return elementOfArray(list, [asInt(place)], list.position, context)
  if (isNumber(list.type)) return list
  const element = scalarCall('list_element', [list, asInt(place)], list.position, context)
  const type = elementType(list.type)
  return isText(type) ? element : { kind: 'call', name: 'cast', args: [element], type, position: list.position }
}
