// Conversion of arguments for list functions. A list is a string of the form `{a,b}` (functions/text-lists.ts). Where a
// function or operator gets a list, this module converts its other arguments: ARRAY values to lists, and elements to
// strings.

import { type DataType, dataType, isList } from '../../types/column-types.js'
import { isText } from '../../types/convert.js'
import type { Expression } from '../plan/plan.js'
import type { BindContext } from '../scope/bind-context.js'
import { scalarCall } from './make-call.js'
import { castTo, constantOf, isUntypedNull } from './types.js'

const textType = dataType('STRING')

/** Functions and operators whose list arguments all have one list type; their other arguments are elements. */
const takesLists: ReadonlySet<string> = new Set([
  ...[
    'array_append',
    'array_prepend',
    'array_cat',
    'array_remove',
    'array_replace',
    'array_position',
    'array_positions',
  ],
  ...['contains', 'lists_overlap', '=', '<>'],
])

/** If one argument is a list, converts arrays among the arguments to lists and elements to strings. */
export function argumentsAsLists(
  name: string,
  args: readonly Expression[],
  context: BindContext,
): readonly Expression[] {
  const list = takesLists.has(name) ? args.find(({ type }) => isList(type)) : undefined
  return list === undefined ? args : args.map((argument) => listed(argument, list.type, context))
}

function listed(argument: Expression, type: DataType, context: BindContext): Expression {
  if (isText(argument.type) || isUntypedNull(argument)) return argument
  if (argument.type.name !== 'ARRAY') return castTo(argument, textType)
  return arrayAsList(argument, type, context)
}

/** A one-dimensional array as a list; other arrays unchanged. */
export function arrayAsList(array: Expression, type: DataType, context: BindContext): Expression {
  const { position } = array
  if (array.type.a !== 1) return array
  const text = (value: string): Expression => constantOf(value, textType, position)
  const elements = scalarCall('array_to_string', [array, text(','), text('NULL')], position, context)
  return { ...scalarCall('concat', [text('{'), elements, text('}')], position, context), type }
}
