// Finds where the newest row of each symbol (dictionary-encoded string) of a column is stored, for LATEST ON
// (latest-symbols.ts). A part (Parquet file) may have a list of its newest rows (newest-in-part.ts), and those of a
// memtable may be known (newest-in-memtable.ts). They are used if the query has at most one time range and this range
// does not end within the part or memtable. Other parts and the blocks of other memtables are read backwards. Parts,
// pages and blocks are read in the order of their last timestamps, newest first, until none of them can have a newer row
// of any symbol.
//
// Invariants:
//   1. The place of a symbol is replaced only by a row with a later timestamp, or with the same timestamp if that row
//      was committed later.
//   2. `slots` covers the ids of every row that the snapshot shows, since symbols are published before their rows.

import { nonNull } from '../../base/assert.js'
import type { TimeRange } from '../../sql/plan/plan.js'
import type { PartHandle } from '../../storage/part/part-access.js'
import type { ExecContext } from '../batch/context.js'
import { covers, type Run, runOf, type ScanMorsel, touches } from './morsels.js'
import { type NewestInMemtable, placeWords } from './newest-in-memtable.js'
import { listEntries, listEntryBytes, listHeaderBytes, NewestInPart } from './newest-in-part.js'

/** Rows of one run that do not overlap in time unless they are read in any order. */
export interface PlacedUnit {
  readonly run: Run
  readonly sorted: boolean
  readonly maxTs: bigint
  /** Of a memtable. Its rows are read if a query of a later snapshot has added rows since. */
  readonly newest?: NewestInMemtable
}

/** Rows or entries read in one step. */
const stepRows = 65_536
/** Rows after which a scan checks whether the rest can be skipped. */
const checkedRows = 1024

export interface PlacesShape {
  readonly columnId: number
  readonly timestampId: number
  readonly ranges: readonly TimeRange[] | null
  /** Number of the table's symbols + 1. */
  readonly slots: number
  /**
   * Rows that do not count any more: those that a later row of the same time and symbol has replaced, which change
   * nothing here; those that have marks; or also others, which only a comparison of the runs finds.
   */
  readonly replaced: 'bySymbol' | 'marked' | 'compared'
}

export class NewestPlaces {
  /** In commit order, so that of two rows with equal timestamps the one in the later unit counts. */
  readonly units: readonly PlacedUnit[]
  readonly #context: ExecContext
  readonly #shape: PlacesShape
  /** By slot (symbol id + 1, 0 is NULL): number of the unit + 1, or 0; row within its part or memtable; timestamp. */
  readonly #unitOf: number
  readonly #rowOf: number
  readonly #timeOf: number
  /** Numbers of the units that are not read yet, the next one last. */
  readonly #queue: number[]
  /** Morsels of the current unit that are not read yet. */
  #left = -1
  #making: NewestInPart | null = null
  #found = 0
  /** Whether some place changed since #bound was computed. */
  #changed = true
  #bound = 0n

  constructor(context: ExecContext, runs: readonly Run[], shape: PlacesShape) {
    const { arena, memory } = context
    const { slots, ranges } = shape
    this.#context = context
    this.#shape = shape
    this.units = runs
      .filter((run) => touches(ranges, run.minTs, run.maxTs))
      .flatMap((run) => knownUnit(context, run, shape) ?? unitsOf(run))
    this.#queue = this.units
      .map((_, number) => number)
      .sort((a, b) => compareTimes(nonNull(this.units[a]), nonNull(this.units[b])) || a - b)
    this.#unitOf = arena.take(slots * 4)
    this.#rowOf = arena.take(slots * 4)
    this.#timeOf = arena.take(slots * 8)
    memory.u32.fill(0, this.#unitOf >>> 2, (this.#unitOf >>> 2) + slots)
  }

  /** Reads some rows; true when all places are known. */
  step(): boolean | 'waiting' {
    for (let rows = 0; rows < stepRows; ) {
      const number = this.#queue.at(-1)
      if (number === undefined) return true
      const read = this.#read(number)
      if (read === 'waiting') return read
      rows += read
    }
    return false
  }

  /** Writes each place as an i64: number of the unit << 32 | row. Returns how many. */
  write(out: number): number {
    const { u32 } = this.#context.memory
    const units = this.#unitOf >>> 2
    const rows = this.#rowOf >>> 2
    let word = out >>> 2
    for (let slot = 0; slot < this.#shape.slots; slot++) {
      const unit = u32[units + slot]!
      if (unit === 0) continue
      u32[word] = u32[rows + slot]!
      u32[word + 1] = unit - 1
      word += 2
    }
    return (word - (out >>> 2)) / 2
  }

  get count(): number {
    return this.#found
  }

  /** The places are forgotten; the units remain. */
  free(): void {
    for (const address of [this.#unitOf, this.#rowOf, this.#timeOf]) this.#context.arena.give(address)
  }

  /** Reads a list, or a morsel, or a page for a list; returns how many rows that took. */
  #read(number: number): number | 'waiting' {
    const unit = nonNull(this.units[number])
    const { run } = unit
    if (this.#making !== null) return this.#make(this.#making, number)
    if (unit.newest !== undefined && unit.newest.rows <= run.rows) return this.#fromMemtable(run, unit.newest, number)
    if (this.#left < 0) {
      if (this.#isDone(unit.maxTs, () => mayHoldNull(run, this.#shape.columnId, this.#context))) return this.#end()
      const listed = run.part === undefined ? 0 : this.#fromList(run, run.part, number)
      if (listed !== 0) return listed
      this.#left = run.morsels.length
    }
    if (this.#left === 0) return this.#end()
    const morsel = nonNull(run.morsels[this.#left - 1])
    if (!morsel.ready([this.#shape.columnId, this.#shape.timestampId])) return 'waiting'
    this.#left--
    const { columnId, ranges } = this.#shape
    const mayBeNull = (): boolean => morsel.nulls(columnId) !== 0
    if (!touches(ranges, morsel.minTs, morsel.maxTs) || this.#isDone(morsel.maxTs, mayBeNull)) return 1
    this.#readMorsel(morsel, number, unit.sorted)
    morsel.release()
    return morsel.rows
  }

  #end(): number {
    this.#queue.pop()
    this.#left = -1
    return 1
  }

  /** 0 when the part's rows have to be read. */
  #fromList(run: Run, part: PartHandle, number: number): number {
    const { ranges, columnId, slots } = this.#shape
    if (!endsAfter(ranges, run.maxTs)) return 0
    const { partAccess } = this.#context
    const list = partAccess.pinNewest(part, columnId)
    if (list !== 0) {
      const entries = this.#takeList(list, number)
      partAccess.unpin(list)
      this.#end()
      return entries + 1
    }
    const entries = listEntries(run, part, columnId)
    if (entries === 0) return 0
    this.#making = new NewestInPart(this.#context, run, entries, slots)
    return 1
  }

  #fromMemtable(run: Run, newest: NewestInMemtable, number: number): number {
    const { columnId, timestampId, slots, ranges } = this.#shape
    const added = newest.add(this.#context.memory, run, columnId, timestampId)
    if (added > 0) return added
    const from = ranges?.[0]?.lo
    const { words } = newest
    for (let slot = 0, word = 0; slot < slots; slot++, word += placeWords) {
      const place = words[word]! >>> 0
      if (place === 0) continue
      const [low, high] = [words[word + 1]! >>> 0, words[word + 2]!]
      if (from === undefined || timeOf(low, high) >= from) this.#offer(slot, number, place - 1, low, high)
    }
    this.#end()
    return slots
  }

  #make(making: NewestInPart, number: number): number | 'waiting' {
    const { columnId, timestampId } = this.#shape
    const complete = making.step(columnId, timestampId)
    if (complete === 'waiting') return complete
    if (complete) {
      this.#takeList(making.list, number)
      const { part } = nonNull(this.units[number]).run
      if (part !== undefined) this.#context.partAccess.keepNewest(part, columnId, making.list, making.bytes)
      making.free()
      this.#making = null
      this.#end()
    }
    return checkedRows
  }

  #takeList(list: number, number: number): number {
    const { u32, i32 } = this.#context.memory
    const { ranges } = this.#shape
    const from = ranges?.[0]?.lo
    const entries = u32[list >>> 2]!
    let word = (list + listHeaderBytes) >>> 2
    for (let entry = 0; entry < entries; entry++, word += listEntryBytes / 4) {
      const low = u32[word + 2]!
      const high = i32[word + 3]!
      // Newest first: the others are older still.
      if (from !== undefined && timeOf(low, high) < from) break
      this.#offer(u32[word]!, number, u32[word + 1]!, low, high)
    }
    return entries
  }

  #readMorsel(morsel: ScanMorsel, number: number, sorted: boolean): void {
    const { columnId, timestampId, ranges } = this.#shape
    const keys = morsel.column(columnId)
    const times = morsel.column(timestampId)
    const inRange = covers(ranges, morsel.minTs, morsel.maxTs)
    for (let to = morsel.rows; to > 0; ) {
      const from = Math.max(0, to - checkedRows)
      this.#readRows({ morsel, number, sorted, keys, times, inRange }, from, to)
      to = from
      if (!sorted || to === 0) continue
      const newest = this.#context.memory.i64[(times >>> 3) + to - 1]!
      if (this.#isDone(newest, () => keys === 0 || hasNull(this.#context, keys, to))) return
    }
  }

  #readRows({ morsel, number, sorted, keys, times, inRange }: Read, from: number, to: number): void {
    const { u32, i32 } = this.#context.memory
    const { ranges } = this.#shape
    const units = this.#unitOf >>> 2
    const dead = morsel.superseded >>> 2
    for (let row = to - 1; row >= from; row--) {
      const slot = keys === 0 ? 0 : i32[(keys >>> 2) + row]! + 1
      if (sorted && u32[units + slot]! === number + 1) continue
      if (dead !== 0) {
        const by = u32[dead + row]!
        if (by !== 0 && by - 1 < morsel.visibleRows) continue
      }
      const low = u32[(times >>> 2) + row * 2]!
      const high = i32[(times >>> 2) + row * 2 + 1]!
      if (!inRange && !touchesTime(ranges, timeOf(low, high))) continue
      this.#offer(slot, number, morsel.firstRow + row, low, high)
    }
  }

  #offer(slot: number, number: number, row: number, low: number, high: number): void {
    const { u32, i32 } = this.#context.memory
    const unit = (this.#unitOf >>> 2) + slot
    const place = (this.#rowOf >>> 2) + slot
    const time = (this.#timeOf >>> 2) + slot * 2
    const known = u32[unit]!
    if (known === 0) this.#found++
    else {
      const knownHigh = i32[time + 1]!
      const knownLow = u32[time]!
      if (high < knownHigh || (high === knownHigh && low < knownLow)) return
      const equal = high === knownHigh && low === knownLow
      if (equal && (known > number + 1 || (known === number + 1 && u32[place]! > row))) return
    }
    this.#changed = true
    u32[unit] = number + 1
    u32[place] = row
    u32[time] = low
    i32[time + 1] = high
  }

  /** Whether rows up to this timestamp cannot be newer than what is known. `mayBeNull`: they may have NULL as symbol. */
  #isDone(maxTs: bigint, mayBeNull: () => boolean): boolean {
    const { memory } = this.#context
    const hasNullPlace = memory.u32[this.#unitOf >>> 2] !== 0
    if (this.#found - (hasNullPlace ? 1 : 0) < this.#shape.slots - 1 || this.#shape.slots === 1) return false
    if (this.#changed) this.#bound = this.#oldest(hasNullPlace ? 0 : 1)
    this.#changed = false
    return maxTs < this.#bound && (hasNullPlace || !mayBeNull())
  }

  #oldest(from: number): bigint {
    const { u32, i32 } = this.#context.memory
    const times = this.#timeOf >>> 2
    let [low, high] = [0xffff_ffff, 0x7fff_ffff]
    for (let slot = from; slot < this.#shape.slots; slot++) {
      const [slotLow, slotHigh] = [u32[times + slot * 2]!, i32[times + slot * 2 + 1]!]
      if (slotHigh > high || (slotHigh === high && slotLow >= low)) continue
      low = slotLow
      high = slotHigh
    }
    return timeOf(low, high)
  }
}

interface Read {
  readonly morsel: ScanMorsel
  readonly number: number
  readonly sorted: boolean
  readonly keys: number
  readonly times: number
  /** Whether all rows are in the ranges of the query. */
  readonly inRange: boolean
}

/** undefined: the newest rows of the run are not remembered, as it is a part or some of its rows do not count. */
function knownUnit(context: ExecContext, run: Run, shape: PlacesShape): PlacedUnit | undefined {
  const { columnId, slots, replaced } = shape
  if (run.memtable < 0 || replaced === 'compared' || !endsAfter(shape.ranges, run.maxTs)) return undefined
  if (replaced === 'marked' && run.morsels.some(({ superseded }) => superseded !== 0)) return undefined
  const newest = context.newest?.of(run, columnId, slots)
  return newest === undefined ? undefined : { run, sorted: run.sorted, maxTs: run.maxTs, newest }
}

/** Whether the newest rows up to this time are also the newest ones of the ranges, if they are in them. */
function endsAfter(ranges: readonly TimeRange[] | null, maxTs: bigint): boolean {
  return ranges === null || (ranges.length === 1 && nonNull(ranges[0]).hi >= maxTs)
}

function unitsOf(run: Run): PlacedUnit[] {
  if (run.sorted) return [{ run, sorted: true, maxTs: run.maxTs }]
  return run.morsels.map((morsel) => {
    return { run: runOf([morsel], true, run.memtable), sorted: morsel.sorted, maxTs: morsel.maxTs }
  })
}

function compareTimes(a: PlacedUnit, b: PlacedUnit): number {
  return a.maxTs < b.maxTs ? -1 : a.maxTs > b.maxTs ? 1 : 0
}

function mayHoldNull(run: Run, columnId: number, context: ExecContext): boolean {
  const known = run.nulls?.(columnId)
  if (known !== undefined) return known > 0
  if (run.memtable < 0) return true
  return run.morsels.some((morsel) => {
    const keys = morsel.column(columnId)
    return keys === 0 || hasNull(context, keys, morsel.rows)
  })
}

function hasNull({ memory: { i32 } }: ExecContext, keys: number, rows: number): boolean {
  return i32.subarray(keys >>> 2, (keys >>> 2) + rows).includes(-1)
}

function timeOf(low: number, high: number): bigint {
  return (BigInt(high) << 32n) | BigInt(low)
}

function touchesTime(ranges: readonly TimeRange[] | null, time: bigint): boolean {
  return touches(ranges, time, time)
}
