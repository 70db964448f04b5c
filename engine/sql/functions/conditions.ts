// SQL functions that return one of their arguments: case, coalesce, nullif, greatest and least.

import { dataType } from '../../types/column-types.js'
import { compareValues, equalValues } from '../../types/compare.js'
import type { Value } from '../../types/value.js'
import type { Expression } from '../plan/plan.js'
import { type ColumnFunction, isText } from './column/column-function.js'
import type { BoundArgument, ScalarFunction } from './function-types.js'
import { onlyRow } from './single-row.js'

const stringType = dataType('STRING')

/** The binder has brought the arguments to one type, so any of them gives the result type. */
function lastType(args: readonly BoundArgument[]): BoundArgument['type'] {
  return args[args.length - 1]?.type ?? stringType
}

function extreme(sign: 1 | -1): (args: readonly Value[]) => Value {
  return (args) => {
    let best: Value = null
    for (const value of args) {
      if (value !== null && (best === null || compareValues(value, best) * sign > 0)) best = value
    }
    return best
  }
}

/**
 * Vectorised CASE whose results are constant strings, such as `case when a > 0 then 'up' else 'down' end`. The strings
 * become a dictionary, and the CASE returns their integer codes, so that it runs as a CASE over integers and no strings
 * are copied. The result is a dictionary-encoded vector.
 */
const caseOfStrings: ColumnFunction = (call) => {
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

export const conditionFunctions: readonly ScalarFunction[] = [
  onlyRow,
  {
    name: 'case',
    takes: ['BOOLEAN', 'ANY'],
    more: 'ANY',
    gives: (args) => args[1]?.type ?? stringType,
    description:
      'Pairs of condition and value, then an optional default (NULL if omitted): the value of the first true condition.',
    example: ["case when 1 = 1 then 'yes' else 'no' end", 'yes'],
    seesNull: true,
    total: true,
    lazy: true,
    column: caseOfStrings,
    eval: (args) => {
      for (let index = 0; index + 1 < args.length; index += 2) if (args[index] === true) return args[index + 1] ?? null
      return args.length % 2 === 1 ? (args[args.length - 1] ?? null) : null
    },
  },
  {
    name: 'coalesce',
    takes: ['ANY'],
    more: 'ANY',
    gives: lastType,
    description: 'The first value that is not NULL.',
    example: ['coalesce(null, 1)', '1'],
    seesNull: true,
    total: true,
    lazy: true,
    eval: (args) => args.find((value) => value !== null) ?? null,
  },
  {
    name: 'nullif',
    takes: ['ANY', 'ANY'],
    gives: 'FIRST',
    description: 'NULL if both are equal, else the first.',
    example: ['nullif(1, 2)', '1'],
    seesNull: true,
    total: true,
    eval: ([a = null, b = null], site) => (equalValues(a, b) ? (site.type.name === 'CHAR' ? '' : null) : a),
  },
  {
    name: 'greatest',
    takes: ['ANY'],
    more: 'ANY',
    gives: lastType,
    description: 'The largest value; NULLs are ignored.',
    example: ['greatest(1, 5, 3)', '5'],
    seesNull: true,
    eval: extreme(1),
  },
  {
    name: 'least',
    takes: ['ANY'],
    more: 'ANY',
    gives: lastType,
    description: 'The smallest value; NULLs are ignored.',
    example: ['least(1, 5, 3)', '1'],
    seesNull: true,
    eval: extreme(-1),
  },
]
