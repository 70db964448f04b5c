// Aggregates over dictionary-encoded arguments: symbols, and strings that a Parquet file stores as a dictionary
// (batch/dictionary-strings.ts). In an aggregation without GROUP BY, an aggregate that ignores duplicates, such as
// min(), gets each distinct string once instead of once for each row. With groups this does not apply, because each
// group would need a record of the strings that it has got.

import type { Expression } from '../../sql/plan/plan.js'
import type { Value } from '../../types/value.js'
import type { ExecContext } from '../batch/context.js'
import {
  type DictionaryStrings,
  dictionaryStrings,
  dictionaryVector,
  sameStrings,
} from '../batch/dictionary-strings.js'
import { batchRowsMax, type Vector } from '../batch/vector.js'
import type { Accumulator } from './accumulator.js'

/** The symbol column that an argument converts to a string; any other argument itself. */
export function underlyingSymbols(argument: Expression): Expression {
  if (argument.kind !== 'call' || (argument.name !== 'convert' && argument.name !== 'cast')) return argument
  const [source] = argument.args
  return source?.type.name === 'SYMBOL' ? source : argument
}

/**
 * Wraps an accumulator whose result does not depend on duplicates, such as min() or count_distinct(): in a single
 * group, each dictionary entry is added once.
 */
export class OncePerDictionaryEntry implements Accumulator {
  readonly reads = 1
  readonly #context: ExecContext
  readonly #inner: Accumulator
  #dictionary: Pick<DictionaryStrings, 'owner' | 'columnId'> | null = null
  /** By code: the round in which it was last added; reset() begins a new round. */
  #rounds = new Uint32Array(0)
  #round = 1
  /** The new codes of a batch (u32), followed by their entries. */
  #scratch = 0

  constructor(context: ExecContext, inner: Accumulator) {
    this.#context = context
    this.#inner = inner
  }

  add([column]: readonly [Vector], rows: number, ids: number, groups: number): void {
    const strings = ids === 0 ? dictionaryStrings(column) : undefined
    if (strings === undefined) {
      this.#inner.add([column], rows, ids, groups)
      return
    }
    const added = this.#takeNew(strings, rows)
    if (added === 0) return
    const encoded = { ...strings, codes: this.#scratch }
    this.#inner.add([dictionaryVector(column.type, encoded, () => this.#entriesOf(strings, added))], added, 0, groups)
  }

  result(group: number): Value {
    return this.#inner.result(group)
  }

  reset(): void {
    this.#round++
    this.#inner.reset()
  }

  /** Writes the codes that are new in this round; returns how many. */
  #takeNew(strings: DictionaryStrings, rows: number): number {
    const { arena, memory } = this.#context
    if (this.#scratch === 0) this.#scratch = arena.take((this.#context.rowsMax ?? batchRowsMax) * 12)
    if (!sameStrings(strings, this.#dictionary) || this.#rounds.length < strings.count) {
      this.#dictionary = strings
      this.#rounds = new Uint32Array(strings.count)
    }
    const { u32 } = memory
    const rounds = this.#rounds
    const [from, to] = [strings.codes >>> 2, this.#scratch >>> 2]
    let added = 0
    for (let row = 0; row < rows; row++) {
      const code = u32[from + row]!
      if (rounds[code] === this.#round) continue
      rounds[code] = this.#round
      u32[to + added++] = code
    }
    return added
  }

  #entriesOf({ entries }: DictionaryStrings, count: number): number {
    const { u32 } = this.#context.memory
    const codes = this.#scratch >>> 2
    const into = ((this.#context.rowsMax ?? batchRowsMax) * 4 + this.#scratch) >>> 2
    for (let index = 0; index < count; index++) {
      const entry = (entries >>> 2) + u32[codes + index]! * 2
      u32[into + index * 2] = u32[entry]!
      u32[into + index * 2 + 1] = u32[entry + 1]!
    }
    return into * 4
  }
}
