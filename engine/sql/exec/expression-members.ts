// Whether a sub-query's list has a whole number: a table of 64-bit words instead of the interpreter's set of texts.

import type { SharedMemory } from '../../memory/shared-memory.js'
import { widthOf } from '../../types/column-types.js'
import type { SubqueryResult } from '../functions/evaluate.js'
import type { Expression } from '../plan/plan.js'
import type { ExecContext } from './context.js'
import type { VectorEvaluator } from './expression.js'
import { batchRowsMax } from './vector.js'

type Call = Extract<Expression, { kind: 'call' }>

/** Types whose values are whole numbers of 4 or 8 bytes, and NULL the smallest one. */
const wholeNumbers: ReadonlySet<string> = new Set(['INT', 'LONG', 'DATE', 'TIMESTAMP', 'TIMESTAMP_NS'])

/** undefined: it is no such call. */
export function compileMembers(
  { name, args, type }: Call,
  context: ExecContext,
  compile: (part: Expression) => VectorEvaluator,
): VectorEvaluator | undefined {
  const [subject, list] = args
  if (name !== 'in_list' || subject === undefined || list?.kind !== 'subquery') return undefined
  if (!wholeNumbers.has(subject.type.name)) return undefined
  const { memory, space, evaluation } = context
  const evaluate = compile(subject)
  const address = space.take(context.rowsMax ?? batchRowsMax)
  const wide = widthOf(subject.type) === 8
  let words: WordSet | null = null
  return (batch) => {
    words ??= wordsOf(evaluation.subqueries[list.index], wide)
    const vector = evaluate(batch)
    if (wide) markWide(memory, vector.address, batch.rows, words, address)
    else markNarrow(memory, vector.address, batch.rows, words, address)
    return { type, address, dictionary: 0 }
  }
}

/** Open addressing; the halves of a word lie in arrays of their own. */
interface WordSet {
  readonly shift: number
  readonly lows: Int32Array
  readonly highs: Int32Array
  readonly used: Uint8Array
}

function wordsOf(result: SubqueryResult | undefined, wide: boolean): WordSet {
  const keys = result?.mode === 'list' ? result.keys : new Set<string>()
  let bits = 4
  while (2 ** bits < keys.size * 2) bits++
  const size = 2 ** bits
  const set = { shift: 32 - bits, lows: new Int32Array(size), highs: new Int32Array(size), used: new Uint8Array(size) }
  for (const key of keys) {
    // Keys as compare.ts makes them: a letter for the kind of value, then the number; n is NULL.
    const word = key === 'n' ? (wide ? -(1n << 63n) : -0x8000_0000n) : BigInt(key.slice(1))
    add(set, Number(BigInt.asIntN(32, word)), Number(BigInt.asIntN(32, word >> 32n)))
  }
  return set
}

function add({ shift, lows, highs, used }: WordSet, low: number, high: number): void {
  let slot = hashed(low, high) >>> shift
  for (; used[slot] === 1; slot = (slot + 1) & (used.length - 1)) if (lows[slot] === low && highs[slot] === high) return
  lows[slot] = low
  highs[slot] = high
  used[slot] = 1
}

function has({ shift, lows, highs, used }: WordSet, low: number, high: number): number {
  let slot = hashed(low, high) >>> shift
  for (; used[slot] === 1; slot = (slot + 1) & (used.length - 1)) {
    if (lows[slot] === low && highs[slot] === high) return 1
  }
  return 0
}

function hashed(low: number, high: number): number {
  const mixed = Math.imul(low ^ Math.imul(high, 0x85eb_ca6b), 0x9e37_79b1)
  return Math.imul(mixed ^ (mixed >>> 15), 0x2c1b_3c6d)
}

function markWide({ i32, u8 }: SharedMemory, values: number, rows: number, words: WordSet, out: number): void {
  const first = values >>> 2
  for (let row = 0; row < rows; row++) {
    u8[out + row] = has(words, i32[first + row * 2] as number, i32[first + row * 2 + 1] as number)
  }
}

function markNarrow({ i32, u8 }: SharedMemory, values: number, rows: number, words: WordSet, out: number): void {
  const first = values >>> 2
  for (let row = 0; row < rows; row++) {
    const low = i32[first + row] as number
    u8[out + row] = has(words, low, low >> 31)
  }
}
