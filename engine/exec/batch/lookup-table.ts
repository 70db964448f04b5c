// Evaluates an expression over one column of symbols or dictionary-encoded strings: once for each distinct string of
// the dictionary, instead of once for each row. The results form a table, in which the result of a row is then looked
// up by the row's dictionary index. Until there are enough rows for this to pay off, each row is evaluated.

import { dictionaryCount } from '../../memory/column-layout.js'
import { type DataType, isVariable, widthOf } from '../../types/column-types.js'
import type { ExecContext } from './context.js'
import { type DictionaryStrings, dictionaryStrings, dictionaryVector, sameStrings } from './dictionary-strings.js'
import { copyStrings } from './row-buffer.js'
import { StringHeap } from './string-heap.js'
import { type Batch, batchRowsMax, type Vector } from './vector.js'

type Evaluator = (batch: Batch) => Vector

/**
 * The table is filled once rows × entriesPerRow reaches the number of entries; before, the expression is evaluated for
 * each row.
 */
const entriesPerRow = 4

/**
 * Wraps `evaluate`, an expression over one column of strings or symbols, so that it is evaluated once for each distinct
 * value where that is less work. The wrapped evaluator takes batches of up to batchRowsMax rows.
 */
export function oncePerDictionaryEntry(
  context: ExecContext,
  type: DataType,
  column: number,
  evaluate: Evaluator,
): Evaluator {
  const { arena, kernels } = context
  const width = widthOf(type)
  const results = new LookupTable(context, type, column, evaluate)
  const codesOf = symbolCodes(context)
  let out = 0
  return (batch) => {
    const vector = batch.vectors[column] as Vector
    const strings = vector.type.name === 'SYMBOL' ? codesOf(vector, batch.rows) : dictionaryStrings(vector)
    if (strings === undefined || !results.readyFor(vector, strings, batch.rows)) return evaluate(batch)
    const { codes, count } = strings
    const { table, owner, dictionary } = results
    const gathered = (): number => {
      if (out === 0) out = arena.take(batchRowsMax * width)
      kernels.sort.gather(width, table, codes, batch.rows, out)
      return out
    }
    if (!isVariable(type)) return { type, address: gathered(), dictionary }
    return dictionaryVector(type, { codes, entries: table, count, owner, columnId: lookupColumn }, gathered)
  }
}

/**
 * Symbols of a table as codes (id + 1). undefined for the query's own dictionary, which still grows, and for a column
 * of NULLs.
 */
function symbolCodes({
  memory,
  arena,
  symbols,
}: ExecContext): (vector: Vector, rows: number) => DictionaryStrings | undefined {
  const { i32, u32 } = memory
  let known: DictionaryStrings | null = null
  let of = 0
  return ({ dictionary, address }, rows) => {
    if (dictionary === 0 || dictionary === symbols.dictionary) return undefined
    if (known === null || dictionary !== of) {
      const codes = known?.codes ?? arena.take(batchRowsMax * 4)
      known = { codes, entries: 0, count: dictionaryCount(memory, dictionary) + 1, owner: {}, columnId: 0 }
      of = dictionary
    }
    const [first, ids] = [known.codes >>> 2, address >>> 2]
    for (let row = 0; row < rows; row++) u32[first + row] = i32[ids + row]! + 1
    return known
  }
}

/** Column id of results that are strings: these are dictionary-encoded by the codes of the input. */
const lookupColumn = -1

class LookupTable {
  table = 0
  /** The dictionary of results that are symbols. */
  dictionary = 0
  /** Identifies the dictionary of results that are strings; replaced whenever the table is filled. */
  owner: object = {}
  readonly #heap: StringHeap
  readonly #context: ExecContext
  readonly #type: DataType
  readonly #column: number
  readonly #evaluate: Evaluator
  #of: DictionaryStrings | null = null
  #bytes = 0
  #rows = 0
  #ids = 0
  #state: 'waiting' | 'ready' | 'failed' = 'waiting'

  constructor(context: ExecContext, type: DataType, column: number, evaluate: Evaluator) {
    this.#context = context
    this.#type = type
    this.#column = column
    this.#evaluate = evaluate
    this.#heap = new StringHeap(context.arena)
  }

  readyFor(vector: Pick<Vector, 'type' | 'dictionary'>, strings: DictionaryStrings, rows: number): boolean {
    if (!sameStrings(strings, this.#of)) {
      this.#of = strings
      this.#rows = 0
      this.#state = 'waiting'
    }
    this.#rows += rows
    if (this.#state === 'waiting' && this.#rows * entriesPerRow >= strings.count) this.#fill(vector, strings)
    return this.#state === 'ready'
  }

  #fill(
    { type, dictionary: ofSymbols }: Pick<Vector, 'type' | 'dictionary'>,
    { entries, count }: DictionaryStrings,
  ): void {
    const { arena, memory } = this.#context
    const width = widthOf(this.#type)
    const vectors: Vector[] = []
    this.owner = {}
    this.#heap.reset()
    try {
      if (this.#bytes < count * width) {
        if (this.#bytes > 0) arena.give(this.table)
        this.#bytes = 0
        this.table = arena.take(count * width + 64)
        this.#bytes = count * width
      }
      for (let from = 0; from < count; from += batchRowsMax) {
        const rows = Math.min(batchRowsMax, count - from)
        const requested = type.name === 'SYMBOL' ? this.#idsFrom(from - 1, rows) : entries + from * 8
        vectors[this.#column] = { type, address: requested, dictionary: ofSymbols }
        const { address, dictionary } = this.#evaluate({ rows, vectors })
        memory.u8.copyWithin(this.table + from * width, address, address + rows * width)
        if (isVariable(this.#type)) copyStrings(this.#context, this.#heap, this.table + from * width, rows)
        this.dictionary = dictionary
      }
      this.#state = 'ready'
    } catch {
      // The expression may fail for a string that no row has, or memory may be short: evaluate row by row instead.
      this.#state = 'failed'
    }
  }

  /** Consecutive symbol ids from `first`; -1 is NULL. */
  #idsFrom(first: number, rows: number): number {
    const { arena, memory } = this.#context
    if (this.#ids === 0) this.#ids = arena.take(batchRowsMax * 4)
    for (let row = 0; row < rows; row++) memory.i32[(this.#ids >>> 2) + row] = first + row
    return this.#ids
  }
}
