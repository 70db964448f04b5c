// A call that no faster way takes as a whole, because of one of its arguments or of itself: its arguments are computed
// first, each in its own fastest way, and stand beside the columns of the batch for what is left of the call.

import { scalarOf } from '../../sql/functions/registry/evaluate.js'
import type { Expression } from '../../sql/plan/plan.js'
import { isVariable } from '../../types/column-types.js'
import type { ExecContext } from '../batch/context.js'
import type { Vector } from '../batch/vector.js'
import type { VectorEvaluator } from './expression.js'
import { columnsOf, isPure, partsOf } from './expression-shape.js'

type Call = Extract<Expression, { kind: 'call' }>

/** Each argument takes a vector. */
const partsMax = 64

/** They do not evaluate what they do not need. */
const lazy: ReadonlySet<string> = new Set(['and', 'or', 'case', 'coalesce'])

/** They give a value for whatever comes. */
const total: ReadonlySet<string> = new Set(
  ['and', 'or', 'not', 'case', 'coalesce', 'nullif', 'cast', 'in', 'in_list', 'between'].concat([
    '=',
    '<>',
    '<',
    '>',
    '<=',
    '>=',
    '+',
    '-',
    '*',
    '/',
    '%',
    'negate',
    'abs',
    'like',
    'ilike',
    'dateadd',
    'datediff',
  ]),
)

/** undefined: there is nothing to compute beforehand. `compile` compiles an argument, `rest` what is left. */
export function compileParts(
  call: Call,
  context: ExecContext,
  compile: (expression: Expression) => VectorEvaluator,
  rest: (call: Call) => VectorEvaluator,
): VectorEvaluator | undefined {
  if (context.rowsMax !== undefined || partsOf(call, partsMax) > partsMax || !isPure(call)) return undefined
  const first = Math.max(-1, ...columnsOf(call)) + 1
  const parts: VectorEvaluator[] = []
  const args = call.args.map((argument): Expression => {
    if (!isApart(argument, call)) return argument
    const { type, position } = argument
    return { kind: 'column', index: first + parts.push(compile(argument)) - 1, type, position }
  })
  if (parts.length === 0) return undefined
  const evaluate = rest({ ...call, args })
  const vectors: Vector[] = []
  return (batch) => {
    for (let index = 0; index < first; index++) vectors[index] = batch.vectors[index] as Vector
    for (let index = 0; index < parts.length; index++) vectors[first + index] = (parts[index] as VectorEvaluator)(batch)
    return evaluate({ rows: batch.rows, vectors })
  }
}

/** Whether an argument is worth a vector, and may be computed for rows that do not need it. */
function isApart(argument: Expression, call: Call): boolean {
  if (argument.kind !== 'call' || isVariable(argument.type) || argument.type.name === 'SYMBOL') return false
  return !lazy.has(call.name) || isTotal(argument)
}

function isTotal(expression: Expression): boolean {
  if (expression.kind !== 'call') return true
  if (!expression.args.every(isTotal)) return false
  return total.has(expression.name) || scalarOf(expression)?.numbers !== undefined
}
