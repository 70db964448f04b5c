// Looks up keys in one part (Parquet file) for PRIMARY KEY .. ENFORCED. The first column of the key is the designated
// timestamp, by which the rows of a part are sorted. So the time bounds of the pages and a binary search find the rows
// with a timestamp; then the other key columns of these rows are compared. Pages are read through the chunk cache (the
// cache of decoded pages).

import { assert } from '../../base/assert.js'
import type { SharedMemory } from '../../memory/shared-memory.js'
import { type KeyColumn, keyColumnsAt, sameRow } from '../memtable/key-columns.js'
import type { PartAccess, PartHandle } from '../part/part-access.js'
import type { PartDescriptor, TableVersion } from '../schema/schema.js'

/** Pages of a part that are pinned at the same time. */
const pagesMax = 8

interface Page {
  /** Address of the timestamps. */
  readonly times: number
  /** The other columns of the key. */
  readonly others: readonly KeyColumn[]
  readonly pinned: readonly number[]
}

export class PartKeys {
  private readonly memory: SharedMemory
  private readonly parts: PartAccess
  private readonly schema: TableVersion['schema']
  private readonly columnIds: readonly number[]
  private readonly nulls: number
  private readonly handle: PartHandle
  private readonly isRemoved: (row: number) => boolean
  private readonly pages = new Map<number, Page>()

  /** Throws CorruptionError, FileError. Call release() at the end. */
  constructor(
    { memory, parts, nulls }: { readonly memory: SharedMemory; readonly parts: PartAccess; readonly nulls: number },
    part: PartDescriptor,
    version: TableVersion,
    columnIds: readonly number[],
    isRemoved: (row: number) => boolean,
  ) {
    this.memory = memory
    this.parts = parts
    this.schema = version.schema
    this.columnIds = columnIds
    this.nulls = nulls
    this.handle = parts.open(part, version)
    this.isRemoved = isRemoved
  }

  /** Whether the part has a row with the keys of this row of a batch. Throws ResourceError and what opening throws. */
  has(ts: bigint, columns: readonly KeyColumn[], row: number): boolean {
    const { minTs, pageCount, firstRows } = this.handle
    const rest = columns.slice(1)
    for (let page = this.firstPage(ts); page < pageCount && minTs[page]! <= ts; page++) {
      const { times, others } = this.columnsOf(page)
      const rows = firstRows[page + 1]! - firstRows[page]!
      const first = times >>> 2
      const [low, high] = [Number(BigInt.asUintN(32, ts)), Number(ts >> 32n)]
      const { u32, i32 } = this.memory
      let at = lowerBound(this.memory, first, rows, low, high)
      for (; at < rows && u32[first + at * 2] === low && i32[first + at * 2 + 1] === high; at++)
        if (sameRow(this.memory, others, at, rest, row) && !this.isRemoved(firstRows[page]! + at)) return true
    }
    return false
  }

  release(): void {
    for (const page of [...this.pages.keys()]) this.releasePage(page)
  }

  /** The first page that may have the timestamp. */
  private firstPage(ts: bigint): number {
    const { maxTs, pageCount } = this.handle
    let low = 0
    let high = pageCount
    while (low < high) {
      const middle = (low + high) >>> 1
      if (maxTs[middle]! < ts) low = middle + 1
      else high = middle
    }
    return low
  }

  private columnsOf(page: number): Page {
    const known = this.pages.get(page)
    if (known !== undefined) return known
    const oldest = this.pages.size < pagesMax ? undefined : this.pages.keys().next().value
    if (oldest !== undefined) this.releasePage(oldest)
    const pinned: number[] = []
    try {
      const columns = keyColumnsAt(this.memory, this.schema, this.columnIds, this.nulls, (id) => {
        const address = this.parts.pin(this.handle, id, page)
        pinned.push(address)
        return address
      })
      const opened = { times: columns[0]?.address ?? 0, others: columns.slice(1), pinned }
      this.pages.set(page, opened)
      return opened
    } catch (thrown) {
      for (const address of pinned) this.parts.unpin(address)
      throw thrown
    }
  }

  private releasePage(page: number): void {
    assert(this.pages.has(page), 'S4: pages are released once')
    for (const address of this.pages.get(page)?.pinned ?? []) this.parts.unpin(address)
    this.pages.delete(page)
  }
}

/** The first of ascending timestamps that is not less. Pairs of words are faster than a bigint each. */
function lowerBound(
  { u32, i32 }: SharedMemory,
  first: number,
  rows: number,
  lowWord: number,
  highWord: number,
): number {
  let low = 0
  let high = rows
  while (low < high) {
    const middle = (low + high) >>> 1
    const word = i32[first + middle * 2 + 1]!
    if (word < highWord || (word === highWord && u32[first + middle * 2]! < lowWord)) low = middle + 1
    else high = middle
  }
  return low
}
