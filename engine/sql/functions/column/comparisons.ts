// Vectorised comparison operators: chooses an implementation by the types of the operands: strings, UUID and LONG256,
// or numbers.

import { type ColumnFunction, isText } from './column-function.js'
import { compareWide } from './members.js'
import { compareNumbers } from './numbers.js'
import { compareStrings } from './text-tests.js'

export const equalityColumn: ColumnFunction = (call, context) =>
  call.args.some(({ type }) => isText(type))
    ? compareStrings(call, context)
    : (compareWide(call, context) ?? compareNumbers(call, context))

export const orderColumn: ColumnFunction = (call, context) =>
  call.args.some(({ type }) => isText(type)) ? compareStrings(call, context) : compareNumbers(call, context)
