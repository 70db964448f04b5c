// What the kernels of texts need of expressions: their constants, and the interpreter for rows that they leave.

import { compileExpression } from '../../sql/functions/registry/evaluate.js'
import type { Expression } from '../../sql/plan/plan.js'
import type { Value } from '../../types/value.js'
import type { ExecContext } from '../batch/context.js'
import type { TextHeap } from '../batch/text-heap.js'
import { valueReader, writeValue } from '../batch/values.js'
import type { Vector } from '../batch/vector.js'

/** The bytes of a constant, kept as long as the query lasts. */
export function keptText(text: string, { memory, space }: ExecContext): { address: number; bytes: number } {
  const bytes = Buffer.from(text)
  const address = space.keep(bytes.length + 8)
  memory.u8.set(bytes, address)
  return { address, bytes: bytes.length }
}

/** Writes what a call gives for the rows that a kernel left in `out`, where its first argument is a column of texts. */
export function interpretLeft(
  call: Extract<Expression, { kind: 'call' }>,
  context: ExecContext,
  heap: TextHeap,
  isLeft: (out: number, row: number) => boolean,
): (text: Vector, rows: number, out: number) => void {
  const { memory, texts, symbols, evaluation, alive } = context
  const [text, ...others] = call.args as [Expression, ...Expression[]]
  const argument: Expression = { kind: 'column', index: 0, type: text.type, position: call.position }
  const evaluate = compileExpression({ ...call, args: [argument, ...others] }, evaluation)
  const target = { memory, heap, symbols }
  const row: Value[] = []
  return (vector, rows, out) => {
    const read = valueReader(memory, texts, vector)
    for (let index = 0; index < rows; index++) {
      if (!isLeft(out, index)) continue
      alive()
      row[0] = read(index)
      writeValue(target, call.type, out, index, evaluate(row))
    }
  }
}
