// Remembers, for a memtable and one of its symbol columns (dictionary-encoded strings), where the newest row of each
// symbol is among the first rows of the memtable. Visible rows of a memtable never change, so what is known of them
// stays right. A query adds the rows that have become visible since the last one. So the newest rows of memtables cost
// each query the symbols and the new rows, and ingestion pays nothing.
//
// Each thread that executes queries remembers a few columns on its JavaScript heap, those used last, and reads the rows
// of a forgotten one again.
//
// Layout: three words for each slot, 12 bytes. Slot: id in the table's dictionary + 1; 0 is NULL.
//
//     0  row u32    number of the row within the memtable + 1; 0: the symbol has no row
//     4  time i64   its designated timestamp
//
// Invariants:
//   1. The place of a symbol is that of the row with the latest timestamp among the first `rows` rows; of rows with
//      equal timestamps that of the last one.
//   2. A query uses it only if it sees at least these rows, and if rows that were removed or replaced change nothing.

import { assert, nonNull } from '../../base/assert.js'
import { Lru } from '../../base/lru.js'
import type { SharedMemory } from '../../memory/shared-memory.js'
import type { Run, ScanMorsel } from './morsels.js'

export const placeWords = 3
/** What a thread remembers at most. */
const limits = { countMax: 256, weightMax: 4 * 1024 * 1024 }
const slotsMax = Math.floor(limits.weightMax / (placeWords * 4))
/** With fewer rows for each symbol, the rows are read instead. */
const rowsEach = 2

export class NewestInMemtables {
  readonly #known = new Lru<string, NewestInMemtable>(limits)

  /**
   * Those of a whole memtable whose rows are all valid. undefined: its rows have to be read, since there are too few
   * rows for each of the `slots`, too many slots, or since a query of a later snapshot was here.
   */
  of(run: Run, columnId: number, slots: number): NewestInMemtable | undefined {
    if (slots * rowsEach > run.rows || slots > slotsMax) return undefined
    const key = `${run.memtable}:${columnId}`
    let newest = this.#known.get(key)
    if (newest === undefined || newest.words.length < slots * placeWords) {
      newest = new NewestInMemtable(slots, newest)
      this.#known.set(key, newest, newest.words.byteLength)
    }
    return newest.rows > run.rows ? undefined : newest
  }
}

export class NewestInMemtable {
  readonly words: Int32Array
  /** Number of rows that are taken into account: the first ones of the memtable. */
  rows = 0

  /** Takes over what another one knows. There is room for more symbols than there are, up to the limit. */
  constructor(slots: number, before: NewestInMemtable | undefined) {
    this.words = new Int32Array(Math.min(slotsMax, 2 ** Math.ceil(Math.log2(slots))) * placeWords)
    if (before === undefined) return
    this.words.set(before.words)
    this.rows = before.rows
  }

  /** Adds some more of the run's rows, up to the end of a block. Returns how many; 0 when none is left. */
  add(memory: SharedMemory, { morsels, rows }: Run, columnId: number, timestampId: number): number {
    assert(this.rows <= rows, 'S1: a snapshot sees the rows whose newest are known')
    if (this.rows === rows) return 0
    const morsel = nonNull(morsels.findLast(({ firstRow }) => firstRow <= this.rows))
    const from = this.rows - morsel.firstRow
    assert(from < morsel.rows, 'S1: the visible rows of a memtable have no gaps')
    this.#read(memory, morsel, from, columnId, timestampId)
    this.rows = morsel.firstRow + morsel.rows
    return morsel.rows - from
  }

  #read({ i32 }: SharedMemory, morsel: ScanMorsel, from: number, columnId: number, timestampId: number): void {
    const keys = morsel.column(columnId)
    const times = morsel.column(timestampId)
    assert(times !== 0, 'R1: every row has a designated timestamp')
    readRows(this.words, i32, keys >>> 2, times >>> 2, from, morsel.rows, morsel.firstRow + 1)
    morsel.release()
  }
}

/** `firstPlace`: what is stored as the place of row 0. `keys` 0: all are NULL. */
function readRows(
  words: Int32Array,
  i32: Int32Array,
  keys: number,
  times: number,
  from: number,
  to: number,
  firstPlace: number,
): void {
  for (let row = from; row < to; row++) {
    const at = (keys === 0 ? 0 : i32[keys + row]! + 1) * placeWords
    const low = i32[times + row * 2]!
    const high = i32[times + row * 2 + 1]!
    const knownHigh = words[at + 2]!
    if (words[at] !== 0 && (high < knownHigh || (high === knownHigh && low >>> 0 < words[at + 1]! >>> 0))) continue
    words[at] = firstPlace + row
    words[at + 1] = low
    words[at + 2] = high
  }
}
