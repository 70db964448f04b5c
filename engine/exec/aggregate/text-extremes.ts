// States of min and max of texts: the bytes of the best one of each group. Coded texts are looked at once for each
// distinct one where there are no keys.

import type { Value } from '../../types/value.js'
import { type CodedTexts, codedTexts, sameTexts } from '../batch/coded-texts.js'
import type { ExecContext } from '../batch/context.js'
import { compareBytes } from '../batch/text-at.js'
import type { Batch } from '../batch/vector.js'
import type { VectorEvaluator } from '../expression/expression.js'
import type { GroupStates } from './group-states.js'

export class TextExtremes implements GroupStates {
  readonly #memory: ExecContext['memory']
  readonly #evaluate: VectorEvaluator
  /** What a better one compares as. */
  readonly #better: -1 | 1
  #best: Uint8Array[] = []
  /** Codes that were looked at, of rows without keys. */
  #seen: { readonly texts: CodedTexts; readonly codes: Uint8Array } | null = null

  constructor({ memory }: ExecContext, evaluate: VectorEvaluator, name: 'min' | 'max') {
    this.#memory = memory
    this.#evaluate = evaluate
    this.#better = name === 'min' ? -1 : 1
  }

  add(batch: Batch, ids: number): void {
    const vector = this.#evaluate(batch)
    const texts = codedTexts(vector)
    const { u32 } = this.#memory
    if (texts !== undefined && ids === 0) this.#addCoded(texts, batch.rows)
    else {
      for (let row = 0; row < batch.rows; row++) {
        const entry = texts === undefined ? vector.address + row * 8 : this.#entryAt(texts, row)
        this.#offer(ids === 0 ? 0 : u32[(ids >>> 2) + row]!, entry)
      }
    }
  }

  result(group: number): Value {
    const best = this.#best[group]
    return best === undefined ? null : Buffer.from(best).toString('utf8')
  }

  empty(): Value {
    return null
  }

  reset(): void {
    this.#best = []
    this.#seen = null
  }

  #addCoded(texts: CodedTexts, rows: number): void {
    if (this.#seen === null || !sameTexts(texts, this.#seen.texts))
      this.#seen = { texts, codes: new Uint8Array(texts.count) }
    const { codes } = this.#seen
    const { u32 } = this.#memory
    for (let row = 0; row < rows; row++) {
      const code = u32[(texts.codes >>> 2) + row]!
      if (codes[code] === 1) continue
      codes[code] = 1
      this.#offer(0, texts.entries + code * 8)
    }
  }

  #entryAt({ codes, entries }: CodedTexts, row: number): number {
    return entries + this.#memory.u32[(codes >>> 2) + row]! * 8
  }

  /** An entry {address u32, bytes i32}. */
  #offer(group: number, entry: number): void {
    const { u8, u32, i32 } = this.#memory
    const bytes = i32[(entry >>> 2) + 1]!
    if (bytes < 0) return
    const address = u32[entry >>> 2]!
    const best = this.#best[group]
    if (best !== undefined && compareBytes(this.#memory, address, bytes, best) !== this.#better) return
    this.#best[group] = u8.slice(address, address + bytes)
  }
}
