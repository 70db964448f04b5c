// Lists, which are texts in the form `{a,b}` (functions/text-lists.ts), beside what the same functions and operators take
// for them: arrays of numbers as they are written, and elements that are no texts.

import { type DataType, dataType, isList } from '../../types/column-types.js'
import { isText } from '../../types/convert.js'
import type { Expression } from '../plan/plan.js'
import type { BindContext } from '../scope/bind-context.js'
import { scalarCall } from './make-call.js'
import { castTo, constantOf, isUntypedNull } from './types.js'

const textType = dataType('STRING')

/** The arguments that are lists are of one kind, further ones are elements. */
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

/** Where one of them is a list: arrays as lists, elements as texts. */
export function besideLists(name: string, args: readonly Expression[], context: BindContext): readonly Expression[] {
  const list = takesLists.has(name) ? args.find(({ type }) => isList(type)) : undefined
  return list === undefined ? args : args.map((argument) => listed(argument, list.type, context))
}

function listed(argument: Expression, type: DataType, context: BindContext): Expression {
  if (isText(argument.type) || isUntypedNull(argument)) return argument
  if (argument.type.name !== 'ARRAY') return castTo(argument, textType)
  return arrayAsList(argument, type, context)
}

/** An array of one dimension. */
export function arrayAsList(array: Expression, type: DataType, context: BindContext): Expression {
  const { position } = array
  if (array.type.a !== 1) return array
  const text = (value: string): Expression => constantOf(value, textType, position)
  const elements = scalarCall('array_to_string', [array, text(','), text('NULL')], position, context)
  return { ...scalarCall('concat', [text('{'), elements, text('}')], position, context), type }
}
