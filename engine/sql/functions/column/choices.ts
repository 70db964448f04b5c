// Vectorised CASE whose results are constant strings, such as `case when a > 0 then 'up' else 'down' end`. The strings
// become a dictionary, and the CASE returns their integer codes, so that it runs as a CASE over integers and no strings
// are copied. The result is a dictionary-encoded vector.

import { dataType } from '../../../types/column-types.js'
import type { Expression } from '../../plan/plan.js'
import { type ColumnFunction, isText } from './column-function.js'

export const caseOfStrings: ColumnFunction = (call) => {
  const { type, position } = call
  if (!isText(type)) return undefined
  const codes = new Map<string | null, number>([[null, 0]])
  const codeOf = (value: string | null): Expression => {
    const code = codes.get(value) ?? codes.size
    codes.set(value, code)
    return { kind: 'constant', value: code, type: dataType('INT'), position }
  }
  const args: Expression[] = []
  for (const [index, argument] of call.args.entries()) {
    const isCondition = index % 2 === 0 && index + 1 < call.args.length
    if (isCondition) args.push(argument)
    else if (argument.kind !== 'constant' || !isText(argument.type)) return undefined
    else if (argument.value !== null && typeof argument.value !== 'string') return undefined
    else args.push(codeOf(argument.value))
  }
  if (args.length % 2 === 0) args.push(codeOf(null))
  return { codes: { ...call, args, type: dataType('INT') }, dictionary: [...codes.keys()] }
}
