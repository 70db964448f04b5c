// Inverted indexes of symbols (dictionary-encoded strings), one per page: for each symbol the rows that have it. A
// query for few of many symbols reads these lists and does not look at every row. The index is built at the second such
// request for a page, and is kept in the chunk cache only, not on disk.
//
// Chunk: {numbers u32, padded to 64 bytes}, starts u32[numbers + 2], row numbers u16[rows]. NULL has number 0 and
// symbol id n has number n + 1; the rows of a number are those from starts[number] to before starts[number + 1],
// ascending.

import { assert } from '../../base/assert.js'
import { CorruptionError } from '../../base/errors.js'
import { pageRowsMax } from '../../base/limits.js'
import type { SortKernel } from '../../kernels/sort.js'
import type { SharedMemory } from '../../memory/shared-memory.js'
import type { PartAccess } from '../part/part-access.js'
import type { PartColumn } from '../part/part-index.js'
import type { OpenedPart } from '../part/part-opened.js'
import { type PageCache, rowPages } from './chunk-cache.js'

export interface InvertedIndexOptions {
  readonly memory: SharedMemory
  readonly cache: PageCache
  readonly sort: Pick<SortKernel, 'groupRows'>
  readonly parts: Pick<PartAccess, 'pin' | 'unpin'>
  /** Calls `use` with the part's symbols as ids of the table's dictionary. */
  readonly ids: (part: OpenedPart, column: PartColumn, use: (ids: Int32Array) => void) => void
}

const headerBytes = 64
/** With more symbols than this, the index would take more memory than the page. */
const numbersMax = 32_768
/** With fewer symbols in the part per requested one, so many rows match that a scan is about as fast. */
const symbolsEach = 64
/** The index is built at this request for the page: building it for a single read does not pay. */
const indexedAt = 2

/** Whether the index is used when a query requests `requested` of a part's symbols. */
export function areIndexed(requested: number, symbols: number): boolean {
  return requested > 0 && requested * symbolsEach <= symbols
}

export class InvertedIndex {
  readonly #options: InvertedIndexOptions
  /** A bitmap of rows, which merges several lists in row order. All zero between calls. */
  readonly #seen = new Uint32Array(pageRowsMax / 32)

  constructor(options: InvertedIndexOptions) {
    this.#options = options
  }

  /** See PartAccess.symbolRows. */
  select(
    part: OpenedPart,
    column: PartColumn,
    page: number,
    ids: readonly number[],
    from: number,
    rows: number,
    out: number,
  ): number {
    const symbols = column.symbols?.count ?? 0
    if (!areIndexed(ids.length, symbols)) return -1
    const data = this.#pin(part, column, page)
    if (data === 0) return -1
    const count = this.#take(data, ids, from, rows, out)
    this.#options.cache.unpin(data)
    return count
  }

  /** Address of the pinned index of the page, or 0 if there is none. */
  #pin(part: OpenedPart, column: PartColumn, page: number): number {
    const { cache, ids } = this.#options
    const use = part.symbolUse(column)
    const times = Math.min(indexedAt, use.requested[page]! + 1)
    use.requested[page] = times
    const key = part.chunk(column, page + rowPages)
    const ready = cache.pinReady(key)
    if (ready !== 0 || times < indexedAt) return ready
    if (use.idMax === null)
      ids(part, column, (held) => {
        use.idMax = held.reduce((max, id) => Math.max(max, id), -1)
      })
    const numbers = (use.idMax as number) + 2
    if (numbers > numbersMax) return 0
    return cache.pin(key, { load: (room) => this.#list(part, column, page, numbers, room) })
  }

  #list(
    part: OpenedPart,
    column: PartColumn,
    page: number,
    numbers: number,
    room: (bytes: number) => number,
  ): { readonly needs: number; readonly cost: 'decompress' } {
    const { memory, sort, parts } = this.#options
    const rows = part.firstRows[page + 1]! - part.firstRows[page]!
    const values = parts.pin(part, column.metadata.id, page)
    try {
      const data = room(headerBytes + (numbers + 2) * 4 + rows * 2)
      memory.u32[data >>> 2] = numbers
      const starts = data + headerBytes
      if (sort.groupRows(values, rows, -1, numbers, starts, starts + (numbers + 2) * 4) === 0)
        throw new CorruptionError('a page has a symbol that is not in the dictionary of its part', part.path, 0)
    } finally {
      parts.unpin(values)
    }
    return { needs: 0, cost: 'decompress' }
  }

  #take(data: number, ids: readonly number[], from: number, rows: number, out: number): number {
    const { u16, u32 } = this.#options.memory
    const numbers = u32[data >>> 2]!
    const starts = (data + headerBytes) >>> 2
    const lists = (data + headerBytes + (numbers + 2) * 4) >>> 1
    const seen = this.#seen
    assert(rows <= pageRowsMax, 'K2: every row of a page has its bit')
    const word = out >>> 2
    let count = 0
    for (let at = 0; at < ids.length; at++) {
      const number = (ids[at] as number) + 1
      if (number >= numbers) continue
      const end = lists + u32[starts + number + 1]!
      for (let next = lists + u32[starts + number]!; next < end; next++) {
        const row = u16[next]! - from
        if (row < 0 || row >= rows) continue
        if (ids.length === 1) u32[word + count] = row
        else seen[row >>> 5] = seen[row >>> 5]! | (1 << (row & 31))
        count++
      }
    }
    if (ids.length > 1 && count > 0) this.#takeSeen(word, rows)
    return count
  }

  #takeSeen(word: number, rows: number): void {
    const { u32 } = this.#options.memory
    let next = word
    for (let base = 0; base < rows; base += 32) {
      let bits = this.#seen[base >>> 5]!
      if (bits === 0) continue
      this.#seen[base >>> 5] = 0
      for (; bits !== 0; bits &= bits - 1) u32[next++] = base + 31 - Math.clz32(bits & -bits)
    }
  }
}
