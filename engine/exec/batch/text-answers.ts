// Expressions over one column of coded texts or of a table's symbols: asked once for each distinct one, then found by number.

import { dictionaryCount } from '../../memory/column-layout.js'
import { type DataType, isVariable, widthOf } from '../../types/column-types.js'
import { type CodedTexts, codedTexts, codedVector, sameTexts } from './coded-texts.js'
import type { ExecContext } from './context.js'
import { copyTexts } from './row-store.js'
import { TextHeap } from './text-heap.js'
import { type Batch, batchRowsMax, type Vector } from './vector.js'

type Evaluator = (batch: Batch) => Vector

/** So many rows for one entry are asked before all entries are. */
const entriesPerRow = 4

/**
 * What `evaluate` makes of one column of texts or symbols, made once for each distinct one where that is less work. It is
 * given batches of batchRowsMax rows.
 */
export function oncePerText(context: ExecContext, type: DataType, column: number, evaluate: Evaluator): Evaluator {
  const { space, kernels } = context
  const width = widthOf(type)
  const answers = new TextAnswers(context, type, column, evaluate)
  const codesOf = symbolCodes(context)
  let out = 0
  return (batch) => {
    const vector = batch.vectors[column] as Vector
    const texts = vector.type.name === 'SYMBOL' ? codesOf(vector, batch.rows) : codedTexts(vector)
    if (texts === undefined || !answers.readyFor(vector, texts, batch.rows)) return evaluate(batch)
    const { codes, count } = texts
    const { table, owner, dictionary } = answers
    const gathered = (): number => {
      if (out === 0) out = space.take(batchRowsMax * width)
      kernels.sort.gather(width, table, codes, batch.rows, out)
      return out
    }
    if (!isVariable(type)) return { type, address: gathered(), dictionary }
    return codedVector(type, { codes, entries: table, count, owner, columnId: answerColumn }, gathered)
  }
}

/** Symbols of a table as numbers of its texts, from 1; undefined: those that the query makes, which become more, or nothing but NULL. */
function symbolCodes({
  memory,
  space,
  symbols,
}: ExecContext): (vector: Vector, rows: number) => CodedTexts | undefined {
  const { i32, u32 } = memory
  let known: CodedTexts | null = null
  let of = 0
  return ({ dictionary, address }, rows) => {
    if (dictionary === 0 || dictionary === symbols.dictionary) return undefined
    if (known === null || dictionary !== of) {
      const codes = known?.codes ?? space.take(batchRowsMax * 4)
      known = { codes, entries: 0, count: dictionaryCount(memory, dictionary) + 1, owner: {}, columnId: 0 }
      of = dictionary
    }
    const [first, ids] = [known.codes >>> 2, address >>> 2]
    for (let row = 0; row < rows; row++) u32[first + row] = i32[ids + row]! + 1
    return known
  }
}

/** Answers that are texts are coded as well, by the numbers of what was asked. */
const answerColumn = -1

class TextAnswers {
  table = 0
  /** Of answers that are symbols. */
  dictionary = 0
  /** Of answers that are texts: another one with each other table. */
  owner: object = {}
  readonly #heap: TextHeap
  readonly #context: ExecContext
  readonly #type: DataType
  readonly #column: number
  readonly #evaluate: Evaluator
  #of: CodedTexts | null = null
  #bytes = 0
  #rows = 0
  #ids = 0
  #state: 'waiting' | 'ready' | 'failed' = 'waiting'

  constructor(context: ExecContext, type: DataType, column: number, evaluate: Evaluator) {
    this.#context = context
    this.#type = type
    this.#column = column
    this.#evaluate = evaluate
    this.#heap = new TextHeap(context.space)
  }

  readyFor(vector: Pick<Vector, 'type' | 'dictionary'>, texts: CodedTexts, rows: number): boolean {
    if (!sameTexts(texts, this.#of)) {
      this.#of = texts
      this.#rows = 0
      this.#state = 'waiting'
    }
    this.#rows += rows
    if (this.#state === 'waiting' && this.#rows * entriesPerRow >= texts.count) this.#fill(vector, texts)
    return this.#state === 'ready'
  }

  #fill({ type, dictionary: ofSymbols }: Pick<Vector, 'type' | 'dictionary'>, { entries, count }: CodedTexts): void {
    const { space, memory } = this.#context
    const width = widthOf(this.#type)
    const vectors: Vector[] = []
    this.owner = {}
    this.#heap.reset()
    try {
      if (this.#bytes < count * width) {
        if (this.#bytes > 0) space.give(this.table)
        this.#bytes = 0
        this.table = space.take(count * width + 64)
        this.#bytes = count * width
      }
      for (let from = 0; from < count; from += batchRowsMax) {
        const rows = Math.min(batchRowsMax, count - from)
        const asked = type.name === 'SYMBOL' ? this.#idsFrom(from - 1, rows) : entries + from * 8
        vectors[this.#column] = { type, address: asked, dictionary: ofSymbols }
        const { address, dictionary } = this.#evaluate({ rows, vectors })
        memory.u8.copyWithin(this.table + from * width, address, address + rows * width)
        if (isVariable(this.#type)) copyTexts(this.#context, this.#heap, this.table + from * width, rows)
        this.dictionary = dictionary
      }
      this.#state = 'ready'
    } catch {
      // A text that no asked row has may be one that the expression fails at; and memory may be short.
      this.#state = 'failed'
    }
  }

  /** Symbols one behind the other, the first of them NULL (-1). */
  #idsFrom(first: number, rows: number): number {
    const { space, memory } = this.#context
    if (this.#ids === 0) this.#ids = space.take(batchRowsMax * 4)
    for (let row = 0; row < rows; row++) memory.i32[(this.#ids >>> 2) + row] = first + row
    return this.#ids
  }
}
