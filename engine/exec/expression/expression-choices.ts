// CASE whose results are constant texts: a CASE of their numbers, in its own fastest way, is a column of coded texts.

import type { Expression } from '../../sql/plan/plan.js'
import { dataType } from '../../types/column-types.js'
import { codedVector } from '../batch/coded-texts.js'
import type { ExecContext } from '../batch/context.js'
import { TextHeap } from '../batch/text-heap.js'
import { writeValue } from '../batch/values.js'
import { batchRowsMax } from '../batch/vector.js'
import type { VectorEvaluator } from './expression.js'
import { isText } from './expression-shape.js'

type Call = Extract<Expression, { kind: 'call' }>

/** undefined: not of that kind. `compile` compiles the CASE of numbers. */
export function compileChoice(
  call: Call,
  context: ExecContext,
  compile: (expression: Expression) => VectorEvaluator,
): VectorEvaluator | undefined {
  const { type, name, position } = call
  if (name !== 'case' || !isText(type) || context.rowsMax !== undefined) return undefined
  const texts = new Map<string | null, number>([[null, 0]])
  const number = (value: string | null): Expression => {
    const code = texts.get(value) ?? texts.size
    texts.set(value, code)
    return { kind: 'constant', value: code, type: dataType('INT'), position }
  }
  const args: Expression[] = []
  for (const [index, argument] of call.args.entries()) {
    const isCondition = index % 2 === 0 && index + 1 < call.args.length
    if (isCondition) args.push(argument)
    else if (argument.kind !== 'constant' || !isText(argument.type)) return undefined
    else if (argument.value !== null && typeof argument.value !== 'string') return undefined
    else args.push(number(argument.value))
  }
  if (args.length % 2 === 0) args.push(number(null))
  const source = compile({ ...call, args, type: dataType('INT') })
  const { memory, space, kernels, symbols } = context
  const count = texts.size
  const entries = space.keep(count * 8)
  const target = { memory, heap: new TextHeap(space), symbols }
  for (const [text, code] of texts) writeValue(target, type, entries, code, text)
  const owner = {}
  let out = 0
  return (batch) => {
    const codes = source(batch).address
    return codedVector(type, { codes, entries, count, owner, columnId: 0 }, () => {
      if (out === 0) out = space.take(batchRowsMax * 8)
      kernels.sort.gather(8, entries, codes, batch.rows, out)
      return out
    })
  }
}
