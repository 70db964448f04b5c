// Lists the newest row of each value of a symbol column (dictionary-encoded strings) in a part (Parquet file). A part
// is immutable and sorted by time, so the list stays valid as long as the part exists. The first LATEST ON that can use
// the list makes it and stores it in the chunk cache, which may evict it like any page. Later queries read the list
// instead of the rows.
//
// The list is made page by page from the end of the part, until all values have been found. A part with fewer than
// eight rows per value on average gets no list.
//
// Layout: count u32, padded to 16 bytes; then an entry for each value, in descending order of row numbers:
//
//     0  slot u32   id in the table's dictionary + 1; 0 is NULL
//     4  row u32    number of the row within the part
//     8  time i64   its designated timestamp

import { nonNull } from '../../base/assert.js'
import type { PartHandle } from '../../storage/part/part-access.js'
import type { ExecContext } from '../batch/context.js'
import type { Run, ScanMorsel } from './morsels.js'

export const listHeaderBytes = 16
export const listEntryBytes = 16
/** With fewer rows for each symbol, the rows are read instead: the list would be as long as the column. */
const rowsEach = 8

/** Entries of the part's list; 0 when the part has so many symbols that none is made. */
export function listEntries(run: Run, part: PartHandle, columnId: number): number {
  const symbols = run.symbols?.(columnId)
  if (symbols === undefined) return 0
  const entries = symbols.length + (run.nulls?.(columnId) === 0 ? 0 : 1)
  return entries * rowsEach <= part.rows ? entries : 0
}

/** Makes the list of a part, one page in each step. */
export class NewestInPart {
  /** Address of the list; valid until free(). */
  readonly list: number
  readonly #context: ExecContext
  readonly #run: Run
  readonly #entries: number
  /** One bit for each slot: whether it has an entry. */
  readonly #seen: number
  #count = 0
  #left: number

  /** `slots`: number of the table's symbols + 1. */
  constructor(context: ExecContext, run: Run, entries: number, slots: number) {
    const { arena, memory } = context
    this.#context = context
    this.#run = run
    this.#entries = entries
    this.#left = run.morsels.length
    this.list = arena.take(listHeaderBytes + entries * listEntryBytes)
    const seenBytes = (slots >>> 3) + 4
    this.#seen = arena.take(seenBytes)
    memory.u8.fill(0, this.#seen, this.#seen + seenBytes)
  }

  get bytes(): number {
    return listHeaderBytes + this.#count * listEntryBytes
  }

  /** Whether the list is complete after this step. */
  step(columnId: number, timestampId: number): boolean | 'waiting' {
    const page = nonNull(this.#run.morsels[this.#left - 1])
    if (!page.ready([columnId, timestampId])) return 'waiting'
    this.#left--
    this.#readPage(page, columnId, timestampId)
    page.release()
    if (this.#left > 0 && this.#count < this.#entries) return false
    this.#context.memory.u32[this.list >>> 2] = this.#count
    return true
  }

  free(): void {
    const { arena } = this.#context
    arena.give(this.list)
    arena.give(this.#seen)
  }

  #readPage(page: ScanMorsel, columnId: number, timestampId: number): void {
    const { u32, i32 } = this.#context.memory
    const keys = page.column(columnId) >>> 2
    const times = page.column(timestampId) >>> 2
    const seen = this.#seen >>> 2
    let word = (this.list + listHeaderBytes + this.#count * listEntryBytes) >>> 2
    const end = (this.list + listHeaderBytes + this.#entries * listEntryBytes) >>> 2
    for (let row = page.rows - 1; row >= 0 && word < end; row--) {
      const slot = keys === 0 ? 0 : i32[keys + row]! + 1
      const known = u32[seen + (slot >>> 5)]!
      const bit = 1 << (slot & 31)
      if ((known & bit) !== 0) continue
      u32[seen + (slot >>> 5)] = known | bit
      u32[word] = slot
      u32[word + 1] = page.firstRow + row
      u32[word + 2] = u32[times + row * 2]!
      u32[word + 3] = u32[times + row * 2 + 1]!
      word += listEntryBytes / 4
    }
    this.#count = (word * 4 - this.list - listHeaderBytes) / listEntryBytes
  }
}
