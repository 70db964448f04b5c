// Texts made of several: concat and || of texts, symbols and constants, and replace, by column. Rows that could become too
// long for a value are left to the interpreter, which tells.

import { valueBytesMax } from '../../base/limits.js'
import { dictionaryCount, dictionaryEntry } from '../../memory/column-layout.js'
import { compileExpression } from '../../sql/functions/registry/evaluate.js'
import type { Expression } from '../../sql/plan/plan.js'
import { dataType } from '../../types/column-types.js'
import type { ExecContext } from '../batch/context.js'
import { TextHeap } from '../batch/text-heap.js'
import { type Batch, batchRowsMax, type Vector } from '../batch/vector.js'
import type { VectorEvaluator } from './expression.js'
import { isText } from './expression-shape.js'
import { keptText } from './expression-texts-left.js'

type Call = Extract<Expression, { kind: 'call' }>
type Compile = (expression: Expression) => VectorEvaluator

/** Of a concat. */
const columnsMax = 64

/** undefined: not of that kind. `compile` compiles a part, `interpret` the call by rows. */
export function compileJoinedTexts(
  call: Call,
  context: ExecContext,
  compile: Compile,
  interpret: (call: Call) => VectorEvaluator,
): VectorEvaluator | undefined {
  if (context.rowsMax !== undefined) return undefined
  if (call.name === 'concat') return joined(call, context, compile, interpret)
  return call.name === 'replace' ? replaced(call, context, compile, interpret) : undefined
}

function joined(call: Call, context: ExecContext, compile: Compile, interpret: (call: Call) => VectorEvaluator) {
  const { type } = call
  const args = call.args.map((part) => constantText(part, call, context))
  const isPart = ({ type }: Expression): boolean => isText(type) || type.name === 'SYMBOL'
  if (args.length > columnsMax || !args.every(isPart)) return undefined
  const { memory, space, kernels } = context
  const { u32 } = memory
  const parts = args.map((part) => textColumn(part, context, compile))
  const columns = space.keep(args.length * 4)
  const address = space.take(batchRowsMax * 8)
  const heap = new TextHeap(space)
  let rest: VectorEvaluator | undefined
  return (batch: Batch): Vector => {
    heap.reset()
    let bytes = 0
    parts.forEach((part, index) => {
      const entries = part(batch)
      u32[(columns >>> 2) + index] = entries
      bytes += kernels.text.textsBytes(entries, batch.rows)
    })
    if (bytes > valueBytesMax) {
      rest ??= interpret(call)
      return rest(batch)
    }
    kernels.text.joinTexts(columns, parts.length, batch.rows, heap.reserve(bytes), address)
    return { type, address, dictionary: 0 }
  }
}

/** A constant of another type (a single character is a CHAR) as the text that it is among others. */
function constantText(part: Expression, call: Call, { evaluation }: ExecContext): Expression {
  if (part.kind !== 'constant' || isText(part.type)) return part
  const value = compileExpression({ ...call, args: [part] }, evaluation)([])
  return { ...part, value, type: call.type }
}

/** Answers the address of the rows' entries. */
function textColumn(part: Expression, context: ExecContext, compile: Compile): (batch: Batch) => number {
  const source = compile(part)
  if (part.type.name !== 'SYMBOL') return (batch) => source(batch).address
  const { memory, space, kernels } = context
  const out = space.take(batchRowsMax * 8)
  const nothing = space.nulls(dataType('VARCHAR'))
  let known = { dictionary: -1, count: 0, address: 0 }
  return (batch) => {
    const vector = source(batch)
    const { dictionary } = vector
    const count = dictionary === 0 ? 0 : dictionaryCount(memory, dictionary)
    if (known.dictionary !== dictionary || known.count < count) {
      if (known.address !== 0) space.give(known.address)
      known = { dictionary, count, address: space.take(count * 8 + 8) }
      for (let id = 0; id < count; id++) {
        const entry = dictionaryEntry(memory, dictionary, id)
        memory.u8.copyWithin(known.address + id * 8, entry, entry + 8)
      }
    }
    kernels.sort.gatherOr(8, known.address, vector.address, batch.rows, nothing, out)
    return out
  }
}

function replaced(call: Call, context: ExecContext, compile: Compile, interpret: (call: Call) => VectorEvaluator) {
  const [text, from, to] = call.args
  if (text === undefined || !isText(text.type) || from?.kind !== 'constant' || to?.kind !== 'constant') return undefined
  if (typeof from.value !== 'string' || typeof to.value !== 'string' || from.value === '') return undefined
  const { space, kernels } = context
  const [wanted, other] = [keptText(from.value, context), keptText(to.value, context)]
  const source = compile(text)
  const address = space.take(batchRowsMax * 8)
  const heap = new TextHeap(space)
  const growth = Math.max(1, other.bytes / wanted.bytes)
  let rest: VectorEvaluator | undefined
  return (batch: Batch): Vector => {
    heap.reset()
    const { address: entries } = source(batch)
    const bytes = Math.ceil(kernels.text.textsBytes(entries, batch.rows) * growth)
    if (bytes > valueBytesMax) {
      rest ??= interpret(call)
      return rest(batch)
    }
    const room = heap.reserve(bytes)
    const { address: from, bytes: fromBytes } = wanted
    kernels.text.replaceTexts(entries, batch.rows, from, fromBytes, other.address, other.bytes, room, address)
    return { type: call.type, address, dictionary: 0 }
  }
}
