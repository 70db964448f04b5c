// Accumulator of count_distinct(). It gives each distinct value an id, in order of appearance (batch/key-codes.ts), and
// then counts in one of two ways.
//
//   one group   an array holds, for each id, the number of the round in which the value was last counted, so that a
//               value counts once in a round; reset() begins the next round without clearing the array
//   by group    each pair of group and value gets an id, too; each new pair adds one to the count of its group
//
// The planner turns count_distinct() into a nested aggregation where possible (sql/plan/separate-aggregates.ts). This
// accumulator serves the other cases: SAMPLE BY, which resets it after each time bucket, and inputs that can be read
// only once, while the nested aggregation would read them twice. Values keep their ids from one bucket to the next,
// unless there are many. The accumulators of states (state-accumulators.ts) are told of each value that is new in its group.

import { assert, nonNull } from '../../base/assert.js'
import { storageOf } from '../../types/column-types.js'
import type { Value } from '../../types/value.js'
import type { ExecContext } from '../batch/context.js'
import { dictionaryStrings } from '../batch/dictionary-strings.js'
import { type Coder, keyCoder } from '../batch/key-codes.js'
import { KeyTable } from '../batch/key-table.js'
import type { QueryArena } from '../batch/query-arena.js'
import { valueReader } from '../batch/values.js'
import type { Vector } from '../batch/vector.js'
import type { Accumulator } from './accumulator.js'

/** Up to this many ids of values or pairs are kept for the next bucket. */
const numbersRetained = 16_384
const marksFirst = 64
const scratchRowsStep = 64

/** The hash tables of the values, in an arena of their own. */
interface Known {
  readonly arena: QueryArena
  readonly coder: Coder
  /**
   * Ids of pairs, or, with a single group, of codes that are not consecutive; null when the codes are consecutive ids.
   */
  readonly table: KeyTable | null
  /** Address of the rounds (u32) by id. */
  marks: number
  markCount: number
  /** All ids are below this. */
  count: number
}

/** Buffer for the pairs, codes and groups of a batch during one call, shared by all accumulators of the operator. */
class BatchScratch {
  rows = 0
  readonly #arena: QueryArena
  #address = 0

  constructor(arena: QueryArena) {
    this.#arena = arena
  }

  /** 8 bytes a row for pairs, after them 4 for codes and 4 for groups. */
  address(rows: number): number {
    // The arena may have been freed meanwhile.
    const held = this.#arena.holds(this.#address)
    if (held && rows <= this.rows) return this.#address
    if (held) this.#arena.give(this.#address)
    this.rows = Math.ceil(rows / scratchRowsStep) * scratchRowsStep
    this.#address = this.#arena.take(this.rows * 16)
    return this.#address
  }
}

const scratches = new WeakMap<QueryArena, BatchScratch>()

function scratchOf({ arena }: ExecContext): BatchScratch {
  const known = scratches.get(arena) ?? new BatchScratch(arena)
  scratches.set(arena, known)
  return known
}

/** Called for the first row of a group with each value, of the vector that is being added. */
export type SeenValue = (group: number, row: number) => void

export class DistinctAccumulator implements Accumulator {
  readonly reads = 1
  readonly #context: ExecContext
  /** undefined before the first rows. */
  #grouped: boolean | undefined
  #known: Known | null = null
  #round = 1
  /** Pairs use the group id plus this base, which grows with each bucket. */
  #base = 0
  #counts: number[] = []
  readonly #scratch: BatchScratch
  readonly #seen: SeenValue | undefined

  constructor(context: ExecContext, seen?: SeenValue) {
    this.#context = context
    this.#scratch = scratchOf(context)
    this.#seen = seen
  }

  add([vector]: readonly [Vector], rows: number, ids: number): void {
    this.#grouped ??= ids !== 0
    assert(this.#grouped === (ids !== 0), 'Q2: rows come by group, or all in one')
    this.#known ??= this.#begin(vector)
    const known = this.#known
    const pairs = this.#scratch.address(rows)
    const codes = pairs + this.#scratch.rows * 8
    known.coder(vector, 0, rows, codes)
    if (ids === 0) this.#addSingle(known, vector, rows, pairs, codes)
    else this.#addGrouped(known, vector, rows, ids, pairs, codes)
  }

  result(group: number): Value {
    return BigInt(this.#counts[group] ?? 0)
  }

  reset(): void {
    this.#round++
    this.#base += this.#counts.length
    this.#counts = []
    if ((this.#known?.count ?? 0) <= numbersRetained) return
    this.#known?.arena.freeAll()
    this.#known = null
    this.#base = 0
  }

  #begin({ type }: Vector): Known {
    const arena = this.#context.arena.child()
    const own = { ...this.#context, arena }
    const numbered = ['i64', 'f64', 'b16', 'b32', 'entry'].includes(storageOf(type))
    const table = numbered && this.#grouped === false ? null : new KeyTable(own, 8)
    return { arena, coder: keyCoder(own, type), table, marks: 0, markCount: 0, count: 0 }
  }

  #addSingle(known: Known, vector: Vector, rows: number, pairs: number, codes: number): void {
    if (known.table !== null) {
      this.#context.kernels.aggregate.pairIds(codes, 0, rows, pairs)
      known.table.number(pairs, 0, rows, codes)
    }
    const { u32 } = this.#context.memory
    const first = codes >>> 2
    for (let row = 0; row < rows; row++) known.count = Math.max(known.count, u32[first + row]! + 1)
    this.#growMarks(known)
    const isNull = this.#nullTest(vector)
    const marks = known.marks >>> 2
    let count = this.#counts[0] ?? 0
    for (let row = 0; row < rows; row++) {
      const mark = marks + u32[first + row]!
      if (u32[mark] === this.#round) continue
      u32[mark] = this.#round
      if (isNull(row)) continue
      count++
      this.#seen?.(0, row)
    }
    this.#counts[0] = count
  }

  #growMarks(known: Known): void {
    if (known.count <= known.markCount) return
    const { u8 } = this.#context.memory
    const size = Math.max(marksFirst, known.count, known.markCount * 2)
    const fresh = known.arena.take(size * 4)
    u8.copyWithin(fresh, known.marks, known.marks + known.markCount * 4)
    u8.fill(0, fresh + known.markCount * 4, fresh + size * 4)
    if (known.marks !== 0) known.arena.give(known.marks)
    known.marks = fresh
    known.markCount = size
  }

  #addGrouped(known: Known, vector: Vector, rows: number, ids: number, pairs: number, codes: number): void {
    const { kernels, memory } = this.#context
    const { u32 } = memory
    const table = nonNull(known.table)
    const groups = pairs + this.#scratch.rows * 12
    for (let row = 0; row < rows; row++) u32[(groups >>> 2) + row] = this.#base + u32[(ids >>> 2) + row]!
    kernels.aggregate.pairIds(codes, groups, rows, pairs)
    const before = table.count
    // Overwrites the codes, which are no longer needed.
    table.number(pairs, 0, rows, codes)
    known.count = table.count
    if (table.count > before) this.#countNew(vector, rows, codes, groups, before)
  }

  /** New pairs have consecutive ids, in the order of their first rows. */
  #countNew(vector: Vector, rows: number, numbers: number, groups: number, before: number): void {
    const { u32 } = this.#context.memory
    const isNull = this.#nullTest(vector)
    for (let row = 0, next = before; row < rows; row++) {
      if (u32[(numbers >>> 2) + row] !== next) continue
      next++
      const group = u32[(groups >>> 2) + row]! - this.#base
      // Counts a group of NULLs as 0 rather than not at all, because reset() derives the next base from the number of
      // groups.
      const isValue = !isNull(row)
      this.#counts[group] = (this.#counts[group] ?? 0) + (isValue ? 1 : 0)
      if (isValue) this.#seen?.(group, row)
    }
  }

  #nullTest(vector: Vector): (row: number) => boolean {
    const { memory, strings } = this.#context
    if (storageOf(vector.type) === 'entry') {
      const { codes, entries } = dictionaryStrings(vector) ?? { codes: 0, entries: vector.address }
      // Check the entry, not the code: in a computed column, any code may be NULL, and code 0 may be a string
      // (lookup-table.ts).
      const entryOf = (row: number): number => (codes === 0 ? row : memory.u32[(codes >>> 2) + row]!)
      return (row) => memory.i32[(entries >>> 2) + entryOf(row) * 2 + 1]! < 0
    }
    const valueAt = valueReader(memory, strings, vector)
    return (row) => valueAt(row) === null
  }
}
