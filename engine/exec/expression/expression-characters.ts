// Functions of the characters of text columns, by column: how many there are, where some are, some of them, their case.
// A kernel does the texts of ASCII, the interpreter the others where it matters.

import { undecidedBytes } from '../../kernels/text.js'
import type { Expression } from '../../sql/plan/plan.js'
import type { ExecContext } from '../batch/context.js'
import { TextHeap } from '../batch/text-heap.js'
import { batchRowsMax } from '../batch/vector.js'
import type { VectorEvaluator } from './expression.js'
import { isText } from './expression-shape.js'
import { interpretLeft, keptText } from './expression-texts-left.js'

type Call = Extract<Expression, { kind: 'call' }>
type Compile = (expression: Expression) => VectorEvaluator

/** undefined: not of that kind. `compile` compiles the text. */
export function compileCharacters(call: Call, context: ExecContext, compile: Compile): VectorEvaluator | undefined {
  const [text, ...others] = call.args
  if (text === undefined || !isText(text.type) || text.kind === 'constant') return undefined
  if (others.length === 0) {
    if (lengths.has(call.name)) return units(call, context, compile(text))
    const sides = trims.get(call.name)
    if (sides !== undefined) return trimmed(call, context, compile(text), sides)
    const upper = cases.get(call.name)
    return upper === undefined ? undefined : folded(call, context, compile(text), upper)
  }
  const [wanted] = others
  if ((call.name === 'strpos' || call.name === 'position') && wanted?.kind === 'constant')
    return typeof wanted.value === 'string' ? places(call, context, compile(text), wanted.value) : undefined
  const slice = sliceOf(call.name, others)
  return slice === undefined ? undefined : sliced(call, context, compile(text), slice)
}

const lengths: ReadonlySet<string> = new Set(['length', 'char_length', 'character_length'])

const cases: ReadonlyMap<string, number> = new Map([
  ['lower', 0],
  ['to_lowercase', 0],
  ['upper', 1],
  ['to_uppercase', 1],
])

const trims: ReadonlyMap<string, number> = new Map([
  ['ltrim', 1],
  ['rtrim', 2],
  ['trim', 3],
])

function units({ type }: Call, { space, kernels, rowsMax }: ExecContext, source: VectorEvaluator): VectorEvaluator {
  const address = space.take((rowsMax ?? batchRowsMax) * 4)
  return (batch) => {
    kernels.text.textUnits(source(batch).address, batch.rows, address)
    return { type, address, dictionary: 0 }
  }
}

function places({ type }: Call, context: ExecContext, source: VectorEvaluator, wanted: string): VectorEvaluator {
  const { space, kernels, rowsMax } = context
  const address = space.take((rowsMax ?? batchRowsMax) * 4)
  const text = keptText(wanted, context)
  return (batch) => {
    kernels.text.findTexts(source(batch).address, batch.rows, text.address, text.bytes, address)
    return { type, address, dictionary: 0 }
  }
}

function trimmed(
  { type }: Call,
  { space, kernels, rowsMax }: ExecContext,
  source: VectorEvaluator,
  sides: number,
): VectorEvaluator {
  const address = space.take((rowsMax ?? batchRowsMax) * 8)
  return (batch) => {
    kernels.text.trimTexts(source(batch).address, batch.rows, sides, address)
    return { type, address, dictionary: 0 }
  }
}

function folded(call: Call, context: ExecContext, source: VectorEvaluator, upper: number): VectorEvaluator {
  const { text } = context.kernels
  return withRest(call, context, source, (texts, rows, heap, out) =>
    text.foldTexts(texts, rows, upper, heap.reserve(text.textsBytes(texts, rows)), out),
  )
}

function sliced(call: Call, context: ExecContext, source: VectorEvaluator, { from, to }: Slice): VectorEvaluator {
  const { text } = context.kernels
  return withRest(call, context, source, (texts, rows, _heap, out) => text.sliceTexts(texts, rows, from, to, out))
}

/** `run` gives how many rows the kernel left: these go row by row. */
function withRest(
  call: Call,
  context: ExecContext,
  source: VectorEvaluator,
  run: (texts: number, rows: number, heap: TextHeap, out: number) => number,
): VectorEvaluator {
  const { memory, space, rowsMax } = context
  const { type } = call
  const address = space.take((rowsMax ?? batchRowsMax) * 8)
  const heap = new TextHeap(space)
  const isLeft = (out: number, row: number): boolean => memory.i32[(out >>> 2) + row * 2 + 1] === undecidedBytes
  const finish = interpretLeft(call, context, heap, isLeft)
  return (batch) => {
    heap.reset()
    const vector = source(batch)
    const left = run(vector.address, batch.rows, heap, address)
    if (left > 0) finish(vector, batch.rows, address)
    return { type, address, dictionary: 0 }
  }
}

/** As Array.slice has it: negative ones count from the end. */
interface Slice {
  readonly from: number
  readonly to: number
}

const toEnd = 2 ** 31 - 1

/** undefined: no such function, or places that are for the interpreter to refuse. */
function sliceOf(name: string, args: readonly Expression[]): Slice | undefined {
  const places: number[] = []
  for (const argument of args) {
    if (argument.kind !== 'constant' || typeof argument.value !== 'number') return undefined
    places.push(argument.value)
  }
  const [first = 0, count] = places
  if (Math.abs(first) + Math.abs(count ?? 0) >= toEnd) return undefined
  if (name === 'left') return { from: 0, to: first }
  if (name === 'right') return first === 0 ? { from: 0, to: 0 } : { from: -first, to: toEnd }
  if (name !== 'substring' || (count ?? 0) < 0) return undefined
  const from = Math.max(0, first - 1)
  return { from, to: count === undefined ? toEnd : Math.max(from, first - 1 + count) }
}
