// LIKE and ILIKE with a constant pattern over text columns: literals divided by % are searched by a kernel over the bytes;
// what it cannot decide (text that is not ASCII, without case) goes to the interpreter. Other patterns go there whole.

import { type TextPattern, textAnswers, textFlags, textPatternBytes, writeTextPattern } from '../../kernels/text.js'
import type { Value } from '../../types/value.js'
import { compileExpression } from '../functions/evaluate.js'
import type { Expression } from '../plan/plan.js'
import type { ExecContext } from './context.js'
import type { VectorEvaluator } from './expression.js'
import { valueReader } from './values.js'
import { batchRowsMax, type Vector } from './vector.js'

type Call = Extract<Expression, { kind: 'call' }>

/** undefined: not of that kind. `compile` compiles the text. */
export function compileTextMatch(
  call: Call,
  context: ExecContext,
  compile: (expression: Expression) => VectorEvaluator,
): VectorEvaluator | undefined {
  const [text, constant] = call.args
  if ((call.name !== 'like' && call.name !== 'ilike') || call.args.length !== 2) return undefined
  if (text?.type.name !== 'VARCHAR' && text?.type.name !== 'STRING') return undefined
  const pattern = constant?.kind === 'constant' ? textPattern(constant.value, call.name === 'ilike') : undefined
  if (pattern === undefined) return undefined
  const { memory, space, kernels } = context
  const source = compile(text)
  const address = space.take(batchRowsMax)
  const patternAt = space.take(textPatternBytes(pattern))
  writeTextPattern(memory, patternAt, pattern)
  const decide = rowDecider(call, context)
  return (batch) => {
    const vector = source(batch)
    kernels.text.matchTexts(patternAt, vector.address, batch.rows, address)
    if ((pattern.flags & textFlags.ignoreCase) !== 0) decide(vector, batch.rows, address)
    return { type: call.type, address, dictionary: 0 }
  }
}

/** Literals divided by %; undefined when the pattern needs more than that. */
function textPattern(value: Value, ignoreCase: boolean): TextPattern | undefined {
  if (typeof value !== 'string' || /[_\\]/.test(value)) return undefined
  const pattern = ignoreCase ? value.toLowerCase() : value
  // Without case only ASCII folds byte by byte.
  if (ignoreCase && Buffer.byteLength(pattern) !== pattern.length) return undefined
  const literals = pattern.split('%').filter((literal) => literal !== '')
  let flags = ignoreCase ? textFlags.ignoreCase : 0
  if (!pattern.startsWith('%')) flags |= textFlags.anchoredStart
  if (!pattern.endsWith('%')) flags |= textFlags.anchoredEnd
  return { literals: literals.map((literal) => new Uint8Array(Buffer.from(literal))), flags }
}

/** The interpreter for the rows that the kernel left. */
function rowDecider(
  call: Call,
  { memory, texts, evaluation, alive }: ExecContext,
): (text: Vector, rows: number, answers: number) => void {
  const [text, pattern] = call.args as [Expression, Expression]
  const argument: Expression = { kind: 'column', index: 0, type: text.type, position: call.position }
  const evaluate = compileExpression({ ...call, args: [argument, pattern] }, evaluation)
  const row: Value[] = []
  return (vector, rows, answers) => {
    const read = valueReader(memory, texts, vector)
    for (let index = 0; index < rows; index++) {
      if (memory.u8[answers + index] !== textAnswers.undecided) continue
      alive()
      row[0] = read(index)
      memory.u8[answers + index] = evaluate(row) === true ? textAnswers.yes : textAnswers.no
    }
  }
}
