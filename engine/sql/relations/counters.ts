// Counters behind nextval(), which returns the next number for a row of INSERT. There are two kinds.
//
// Column counters (`serial`, `generated .. as identity`): the column's default calls nextval(). The counter belongs to
// the column and is not stored. When the server starts, it is set to the largest value in the column.
//
// Sequences (CREATE SEQUENCE): the catalog stores the last number that may have been assigned. Numbers are reserved
// there in advance, at least 32 at a time, so that most calls of nextval() write nothing. Reserved numbers that are
// unused when the server stops are lost. Results may be sent to the client only when their reservation is stored, for
// which settled() waits.

import { SqlError } from '../../base/errors.js'
import type { ColumnSchema, SequenceSchema, StoredSequence } from '../../storage/schema/schema.js'
import { nameParts } from '../../types/identifier.js'

const callPattern = /^nextval\('((?:[^']|'')*)'\)$/

/** Least count of numbers that a sequence reserves at once. */
const notedAhead = 32

/** The default expression of a column with its own counter. */
export function counterText(table: string, column: string): string {
  return nextText(`${table}_${column}_seq`)
}

/** Whether a default calls the column's own counter, in the form above or in that of PostgreSQL's dumps. */
export function isOwnCounter(text: string, table: string, column: string): boolean {
  const name = /^\s*nextval\('((?:[^']|'')*)'(?:\s*::\s*(?:pg_catalog\.)?regclass)?\)\s*$/i.exec(text)?.[1]
  if (name === undefined) return false
  const requested = nameParts(name.replaceAll("''", "'")).at(-1) ?? ''
  return nextText(requested).toLowerCase() === counterText(table, column).toLowerCase()
}

/** The default expression that calls the named counter. */
export function nextText(counter: string): string {
  return `nextval('${counter.replaceAll("'", "''")}')`
}

/** Name of the counter that a column's default calls; null if there is none. */
export function counterOf({
  default: text,
}: {
  readonly default?: ColumnSchema['default'] | undefined
}): string | null {
  return (text === undefined ? null : callPattern.exec(text)?.[1]?.replaceAll("''", "'")) ?? null
}

export interface CounterOptions {
  /** The column whose counter has this name (in lower case), as a key that is never reused for another column. */
  readonly columnOf: (name: string) => string | undefined
  readonly sequenceOf: (name: string) => StoredSequence | undefined
  /** Stores the last assigned number of a sequence. Calls are stored in order, and before rows that are sent later. */
  readonly store: (id: number, sequence: SequenceSchema) => Promise<unknown>
}

/** State of a sequence. `last` is null until a number is assigned. */
interface SequenceState {
  last: bigint | null
  /** Count of numbers after `last` that are already reserved. */
  left: number
}

/** Counters that a transaction has created; they take precedence over others. */
export interface OwnCounters extends Pick<CounterOptions, 'columnOf' | 'sequenceOf'> {
  /** Undefined if the sequence is not one of the transaction's. */
  readonly store: (id: number, sequence: SequenceSchema) => Promise<unknown> | undefined
}

/** State that all views of the counters share. */
interface GivenNumbers {
  /** Last number by column key. A column that is dropped and created again starts anew. */
  readonly last: Map<string, bigint>
  readonly sequences: Map<number, SequenceState>
  settled: Promise<void> | null
}

/** The counters of the catalog. Names ignore case and may be qualified with the schema. */
export class Counters {
  readonly #given: GivenNumbers
  readonly #options: CounterOptions

  constructor(options: CounterOptions, given: GivenNumbers = { last: new Map(), sequences: new Map(), settled: null }) {
    this.#options = options
    this.#given = given
  }

  /** The counters as a transaction sees them. */
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

  /** The next number; undefined if there is no such counter. Throws SqlError when a sequence is exhausted. */
  next(written: string): bigint | undefined {
    const sequence = this.#options.sequenceOf(nameOf(written))
    if (sequence !== undefined) return this.#nextOf(sequence)
    const last = this.last(written)
    return last === undefined ? undefined : this.set(written, last + 1n)
  }

  /** The last number, 0 if none was assigned; undefined if there is no such counter. */
  last(written: string): bigint | undefined {
    const sequence = this.#options.sequenceOf(nameOf(written))
    if (sequence !== undefined) return this.#stateOf(sequence).last ?? 0n
    const column = this.#options.columnOf(nameOf(written))
    return column === undefined ? undefined : (this.#given.last.get(column) ?? 0n)
  }

  /** Implements setval(). If `isGiven` is false, `value` is the next number. Undefined if there is no such counter. */
  set(written: string, value: bigint, isGiven = true): bigint | undefined {
    const sequence = this.#options.sequenceOf(nameOf(written))
    if (sequence !== undefined) return this.#setOf(sequence, value, isGiven)
    const column = this.#options.columnOf(nameOf(written))
    if (column === undefined) return undefined
    this.#given.last.set(column, isGiven ? value : value - 1n)
    return value
  }

  /** Resolves when all numbers assigned so far are stored; null if they are. */
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
        // Statements that wait for these numbers fail. The stored state determines how the sequence continues.
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

/** The name as passed to nextval(), without its schema and quotes. */
export function counterName(written: string): string {
  return written.replace(/^"?public"?\./i, '').replace(/^"(.*)"$/, '$1')
}

function nameOf(written: string): string {
  return counterName(written).toLowerCase()
}
