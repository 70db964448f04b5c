// Texts as numbers of the distinct ones that a part knows: what is asked of a text is asked once for each of those, and
// then found by number. A vector of such texts makes its entries only when somebody reads them.

import { type DataType, widthOf } from '../../types/column-types.js'
import type { ExecContext } from './context.js'
import type { Piece } from './pieces.js'
import { type Batch, batchRowsMax, type Vector } from './vector.js'

export interface CodedTexts {
  /** Address of a u32 per row: 0 is NULL. */
  readonly codes: number
  /** Address of an entry {address u32, bytes i32} by code. */
  readonly entries: number
  /** Entries, that of NULL among them. */
  readonly count: number
  /** Codes of the same owner and column mean the same texts. */
  readonly owner: object
  readonly columnId: number
}

/** Beside the vectors, so that a changed copy of one is not taken for it. */
const coded = new WeakMap<Vector, CodedTexts>()

/** undefined: the vector has nothing but its entries. */
export function codedTexts(vector: Vector): CodedTexts | undefined {
  return coded.get(vector)
}

export function sameTexts(a: CodedTexts, b: Pick<CodedTexts, 'owner' | 'columnId'> | null): boolean {
  return b !== null && a.owner === b.owner && a.columnId === b.columnId
}

/** `entries` gives the address of the rows' entries, and is asked at most once. */
export function codedVector(type: DataType, texts: CodedTexts, entries: () => number): Vector {
  let address = 0
  const vector: Vector = {
    type,
    dictionary: 0,
    get address() {
      if (address === 0) address = entries()
      return address
    },
  }
  coded.set(vector, texts)
  return vector
}

/** A column of texts of a piece from a row on; undefined when it is not coded. */
export function codedColumn(piece: Piece, columnId: number, type: DataType, from: number): Vector | undefined {
  if (type.name !== 'VARCHAR' && type.name !== 'STRING') return undefined
  const texts = piece.texts(columnId)
  if (texts === undefined) return undefined
  return codedVector(type, { ...texts, codes: texts.codes + from * 4 }, () => piece.column(columnId) + from * 8)
}

type Evaluator = (batch: Batch) => Vector

/** So many rows for one entry are asked before all entries are. */
const entriesPerRow = 4

/** What `evaluate` makes of one column of texts, made once for each distinct text where that is less work. */
export function oncePerText(context: ExecContext, type: DataType, column: number, evaluate: Evaluator): Evaluator {
  const { space, kernels } = context
  const width = widthOf(type)
  const answers = new TextAnswers(context, type, column, evaluate)
  let out = 0
  return (batch) => {
    const vector = batch.vectors[column] as Vector
    const texts = codedTexts(vector)
    if (texts === undefined || !answers.readyFor(vector.type, texts, batch.rows)) return evaluate(batch)
    if (out === 0) out = space.take((context.rowsMax ?? batchRowsMax) * width)
    kernels.sort.gather(width, answers.table, texts.codes, batch.rows, out)
    return { type, address: out, dictionary: answers.dictionary }
  }
}

class TextAnswers {
  table = 0
  /** Of answers that are symbols. */
  dictionary = 0
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
    if (this.#bytes < count * width) {
      if (this.table !== 0) space.give(this.table)
      this.#bytes = count * width
      this.table = space.take(this.#bytes + 64)
    }
    const vectors: Vector[] = []
    try {
      for (let from = 0; from < count; from += batchRowsMax) {
        const rows = Math.min(batchRowsMax, count - from)
        vectors[this.#column] = { type, address: entries + from * 8, dictionary: 0 }
        const { address, dictionary } = this.#evaluate({ rows, vectors })
        memory.u8.copyWithin(this.table + from * width, address, address + rows * width)
        this.dictionary = dictionary
      }
      this.#state = 'ready'
    } catch {
      // A text that no asked row has may be one that the expression fails at.
      this.#state = 'failed'
    }
  }
}
