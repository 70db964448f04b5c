// Expressions over one column of coded texts: asked once for each distinct text, then found by number.

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
 * What `evaluate` makes of one column of texts, made once for each distinct text where that is less work. It is given
 * batches of batchRowsMax rows.
 */
export function oncePerText(context: ExecContext, type: DataType, column: number, evaluate: Evaluator): Evaluator {
  const { space, kernels } = context
  const width = widthOf(type)
  const answers = new TextAnswers(context, type, column, evaluate)
  let out = 0
  return (batch) => {
    const vector = batch.vectors[column] as Vector
    const texts = codedTexts(vector)
    if (texts === undefined || !answers.readyFor(vector.type, texts, batch.rows)) return evaluate(batch)
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
  #state: 'waiting' | 'ready' | 'failed' = 'waiting'

  constructor(context: ExecContext, type: DataType, column: number, evaluate: Evaluator) {
    this.#context = context
    this.#type = type
    this.#column = column
    this.#evaluate = evaluate
    this.#heap = new TextHeap(context.space)
  }

  readyFor(type: DataType, texts: CodedTexts, rows: number): boolean {
    if (!sameTexts(texts, this.#of)) {
      this.#of = texts
      this.#rows = 0
      this.#state = 'waiting'
    }
    this.#rows += rows
    if (this.#state === 'waiting' && this.#rows * entriesPerRow >= texts.count) this.#fill(type, texts)
    return this.#state === 'ready'
  }

  #fill(type: DataType, { entries, count }: CodedTexts): void {
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
        vectors[this.#column] = { type, address: entries + from * 8, dictionary: 0 }
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
}
