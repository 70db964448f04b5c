// The first key of the last row that is wanted, where the key is a text: rows are compared by their bytes, coded texts
// once for each distinct one.

import type { SortKey } from '../plan/plan.js'
import { type CodedTexts, codedTexts, sameTexts } from './coded-texts.js'
import type { ExecContext } from './context.js'
import { compareBytes } from './text-at.js'
import type { Vector } from './vector.js'

const unknown = 2

export class TextThreshold {
  readonly #context: ExecContext
  readonly #key: SortKey
  /** undefined: every row may be wanted; null: the last row has no text. */
  #last: Uint8Array | null | undefined
  /** Answers by code: 0, 1 or unknown. */
  #answers: { readonly texts: CodedTexts; readonly table: Uint8Array } | null = null

  constructor(context: ExecContext, key: SortKey) {
    this.#context = context
    this.#key = key
  }

  set({ address }: Vector): void {
    const { u8, i32, u32 } = this.#context.memory
    const bytes = i32[(address >>> 2) + 1] as number
    const from = u32[address >>> 2] as number
    this.#last = bytes < 0 ? null : u8.slice(from, from + bytes)
    this.#answers = null
  }

  /** Writes the numbers of rows that may be wanted to out (u32); returns how many, -1 = all. */
  select(vector: Vector, rows: number, out: number): number {
    const last = this.#last
    if (last === undefined) return -1
    const texts = codedTexts(vector)
    const { u32 } = this.#context.memory
    const target = out >>> 2
    let count = 0
    if (texts === undefined) {
      for (let row = 0; row < rows; row++) {
        u32[target + count] = row
        count += this.#isWithin(vector.address + row * 8, last)
      }
      return count
    }
    const { table } = this.#answersOf(texts)
    const codes = texts.codes >>> 2
    for (let row = 0; row < rows; row++) {
      const code = u32[codes + row] as number
      if (table[code] === unknown) table[code] = this.#isWithin(texts.entries + code * 8, last)
      u32[target + count] = row
      count += table[code] as number
    }
    return count
  }

  #answersOf(texts: CodedTexts): { readonly table: Uint8Array } {
    if (this.#answers === null || !sameTexts(texts, this.#answers.texts))
      this.#answers = { texts, table: new Uint8Array(texts.count).fill(unknown) }
    return this.#answers
  }

  /** 0 or 1, of an entry {address u32, bytes i32}. */
  #isWithin(entry: number, last: Uint8Array | null): number {
    const { memory } = this.#context
    const bytes = memory.i32[(entry >>> 2) + 1] as number
    const { nullsFirst, descending } = this.#key
    if (bytes < 0) return nullsFirst || last === null ? 1 : 0
    if (last === null) return nullsFirst ? 0 : 1
    const order = compareBytes(memory, memory.u32[entry >>> 2] as number, bytes, last)
    return (descending ? order >= 0 : order <= 0) ? 1 : 0
  }
}
