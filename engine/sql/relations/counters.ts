// Numbers that are given once. There are two kinds of counters:
//
// Columns that INSERT numbers (`serial`, `generated .. as identity`): their default asks a counter for its next number. It is
// known by the column that it belongs to; nothing of it is stored. Behind a start it goes on from the largest number of its
// column, which whoever opens the engine tells it by setval().
//
// Sequences (CREATE SEQUENCE): entries of the catalog that say up to which number all may have been given. Some are noted
// there ahead, so that most numbers cost nothing; those that are left when the server ends are never given. A number may be
// told once what was noted is stored: settled().

import { SqlError } from '../../base/errors.js'
import type { ColumnSchema, SequenceSchema, StoredSequence } from '../../storage/schema/schema.js'
import { nameParts } from '../../types/identifier.js'

const callPattern = /^nextval\('((?:[^']|'')*)'\)$/

/** Numbers of a sequence that are noted ahead, at least. */
const notedAhead = 32

/** The default of a counted column. */
export function counterText(table: string, column: string): string {
  return nextText(`${table}_${column}_seq`)
}

/** Whether the default of a column asks its own counter: in the words above, or in those of PostgreSQL's dumps. */
export function isOwnCounter(text: string, table: string, column: string): boolean {
  const name = /^\s*nextval\('((?:[^']|'')*)'(?:\s*::\s*(?:pg_catalog\.)?regclass)?\)\s*$/i.exec(text)?.[1]
  if (name === undefined) return false
  const asked = nameParts(name.replaceAll("''", "'")).at(-1) ?? ''
  return nextText(asked).toLowerCase() === counterText(table, column).toLowerCase()
}

/** The default of a column that a counter of the name numbers. */
export function nextText(counter: string): string {
  return `nextval('${counter.replaceAll("'", "''")}')`
}

/** The counter of a column, as nextval() names it; null: it has none. */
export function counterOf({
  default: text,
}: {
  readonly default?: ColumnSchema['default'] | undefined
}): string | null {
  return (text === undefined ? null : callPattern.exec(text)?.[1]?.replaceAll("''", "'")) ?? null
}

export interface CounterOptions {
  /** Which column has the counter of that name (in lower case), as a text that no other column ever has. */
  readonly columnOf: (name: string) => string | undefined
  readonly sequenceOf: (name: string) => StoredSequence | undefined
  /** Notes what a sequence has given; what is noted later is stored later, rows that are sent later as well. */
  readonly store: (id: number, sequence: SequenceSchema) => Promise<unknown>
}

/** Of a sequence; null: it has given none. */
interface SequenceState {
  last: bigint | null
  /** Numbers behind it that are noted as given. */
  left: number
}

/** Counters that a transaction has made: they go before others. */
export interface OwnCounters extends Pick<CounterOptions, 'columnOf' | 'sequenceOf'> {
  /** Undefined: the sequence is stored. */
  readonly store: (id: number, sequence: SequenceSchema) => Promise<unknown> | undefined
}

/** What all views of the counters share. */
interface GivenNumbers {
  /** By column: one that is dropped and made again begins anew. */
  readonly last: Map<string, bigint>
  readonly sequences: Map<number, SequenceState>
  settled: Promise<void> | null
}

/** The last numbers. Names match without case, with their schema or without it. */
export class Counters {
  readonly #given: GivenNumbers
  readonly #options: CounterOptions

  constructor(options: CounterOptions, given: GivenNumbers = { last: new Map(), sequences: new Map(), settled: null }) {
    this.#options = options
    this.#given = given
  }

  /** As a transaction sees them. */
  within({ columnOf, sequenceOf, store }: OwnCounters): Counters {
    const stored = this.#options
    return new Counters(
      {
        columnOf: (name) => columnOf(name) ?? stored.columnOf(name),
        sequenceOf: (name) => sequenceOf(name) ?? stored.sequenceOf(name),
        store: (id, sequence) => store(id, sequence) ?? stored.store(id, sequence),
      },
      this.#given,
    )
  }

  /** undefined: there is no such counter. Throws SqlError when there is no further number. */
  next(written: string): bigint | undefined {
    const sequence = this.#options.sequenceOf(nameOf(written))
    if (sequence !== undefined) return this.#nextOf(sequence)
    const last = this.last(written)
    return last === undefined ? undefined : this.set(written, last + 1n)
  }

  /** 0: it has given none; undefined: there is no such counter. */
  last(written: string): bigint | undefined {
    const sequence = this.#options.sequenceOf(nameOf(written))
    if (sequence !== undefined) return this.#stateOf(sequence).last ?? 0n
    const column = this.#options.columnOf(nameOf(written))
    return column === undefined ? undefined : (this.#given.last.get(column) ?? 0n)
  }

  /** `isGiven` false: it is the next number. undefined: there is no such counter. */
  set(written: string, value: bigint, isGiven = true): bigint | undefined {
    const sequence = this.#options.sequenceOf(nameOf(written))
    if (sequence !== undefined) return this.#setOf(sequence, value, isGiven)
    const column = this.#options.columnOf(nameOf(written))
    if (column === undefined) return undefined
    this.#given.last.set(column, isGiven ? value : value - 1n)
    return value
  }

  /** Resolves when all numbers that have been given are noted; null: they are. */
  settled(): Promise<void> | null {
    return this.#given.settled
  }

  #stateOf({ id, sequence: { given } }: StoredSequence): SequenceState {
    const known = this.#given.sequences.get(id)
    if (known !== undefined) return known
    const state = { last: given === null ? null : BigInt(given), left: 0 }
    this.#given.sequences.set(id, state)
    return state
  }

  #nextOf(stored: StoredSequence): bigint {
    const { sequence } = stored
    const state = this.#stateOf(stored)
    const next = following(stored, state.last)
    if (state.left === 0) {
      const increment = BigInt(sequence.increment)
      const end = BigInt(increment > 0n ? sequence.maximum : sequence.minimum)
      const room = (end - next) / increment
      const more = BigInt(Math.max(notedAhead, sequence.cache) - 1)
      const ahead = room < more ? room : more
      state.left = Number(ahead) + 1
      this.#note(stored, next + ahead * increment)
    }
    state.left--
    state.last = next
    return next
  }

  #setOf(stored: StoredSequence, value: bigint, isGiven: boolean): bigint {
    const { name, sequence } = stored
    if (value < BigInt(sequence.minimum) || value > BigInt(sequence.maximum))
      throw new SqlError(
        `value is out of bounds of the sequence [value=${value}, sequence=${name}, min=${sequence.minimum}, max=${sequence.maximum}]`,
        0,
      )
    const last = isGiven ? value : value - BigInt(sequence.increment)
    this.#given.sequences.set(stored.id, { last, left: 0 })
    this.#note(stored, last)
    return value
  }

  #note({ id, sequence }: StoredSequence, given: bigint): void {
    const stored = this.#options.store(id, { ...sequence, given: String(given) })
    const all = Promise.all([this.#given.settled, stored]).then(
      () => {
        if (this.#given.settled === all) this.#given.settled = null
      },
      (error: unknown) => {
        // Whoever has such a number is told the error, and what is stored says how it goes on.
        this.#given.sequences.delete(id)
        if (this.#given.settled === all) this.#given.settled = null
        throw error
      },
    )
    all.catch(() => {})
    this.#given.settled = all
  }
}

function following({ name, sequence }: StoredSequence, last: bigint | null): bigint {
  if (last === null) return BigInt(sequence.start)
  const increment = BigInt(sequence.increment)
  const [minimum, maximum] = [BigInt(sequence.minimum), BigInt(sequence.maximum)]
  const next = last + increment
  if (next >= minimum && next <= maximum) return next
  if (!sequence.cycle) {
    const bound =
      increment > 0n
        ? `maximum value of sequence "${name}" (${maximum})`
        : `minimum value of sequence "${name}" (${minimum})`
    throw new SqlError(`nextval: reached ${bound}`, 0)
  }
  return increment > 0n ? minimum : maximum
}

export function sequenceMissing(name: string, position: number): SqlError {
  return new SqlError(`sequence does not exist [sequence=${name}]`, position)
}

/** As it is written for nextval(), without its schema and quotes. */
export function counterName(written: string): string {
  return written.replace(/^"?public"?\./i, '').replace(/^"(.*)"$/, '$1')
}

function nameOf(written: string): string {
  return counterName(written).toLowerCase()
}
