// The index over the keys of one memtable's visible rows, for readers that look for few keys: the cost of a search does
// not depend on the number of rows. Each search first adds the rows that have become visible since the last one, so
// tables whose keys nobody looks up cost nothing. Each reader of the newest snapshots has an index of its own, on the
// JavaScript heap: 12 to 24 bytes a row.
//
// Rows with the same hash form a chain, the newest first. When a search meets rows that upserts have removed, it
// removes them from the chain, so a key that changes often does not slow down its searches. That is safe because
// snapshots only get newer: no later search needs such a row.

import { assert } from '../../base/assert.js'
import { blockAt, blockColumn, blockCount, supersededRows } from '../../memory/column-layout.js'
import type { SharedMemory } from '../../memory/shared-memory.js'
import type { TableSchema } from '../schema/schema.js'
import { hashRow, type KeyColumn, keyColumnsAt, sameRow } from './key-columns.js'

const headsFirst = 64

interface KeyBlock {
  readonly address: number
  readonly firstRow: number
  readonly columns: readonly KeyColumn[]
  /** All columns have memory, so the description stays right. */
  readonly isComplete: boolean
}

export interface VisibleKeysOptions {
  readonly memory: SharedMemory
  /** Address of the MEMTABLE structure. */
  readonly memtable: number
  readonly schema: Pick<TableSchema, 'columns'>
  readonly columnIds: readonly number[]
  /** Address of nullBytes bytes, which indexes may share: they are filled again before each use. */
  readonly nulls: number
}

export class VisibleKeys {
  private readonly options: VisibleKeysOptions
  private readonly blocks: KeyBlock[] = []
  private rows = 0
  /** By bits of the hash: the newest row + 1; 0 is none. */
  private heads = new Int32Array(headsFirst)
  /** By row: the next older row of its chain + 1, and the hash of its key. */
  private older = new Int32Array(headsFirst)
  private hashes = new Int32Array(headsFirst)

  constructor(options: VisibleKeysOptions) {
    this.options = options
  }

  /**
   * Adds up to `rowsMax` of the visible rows. Returns whether it has exactly these: not if there are more, or if the
   * snapshot is older than that of an earlier search.
   */
  catchUp(visibleRows: number, rowsMax: number): boolean {
    const end = Math.min(visibleRows, this.rows + rowsMax)
    while (this.rows < end) {
      const block = this.blockOf(this.rows)
      if (block === null) return false
      const blockEnd = Math.min(end, block.firstRow + this.rowsOf(block))
      assert(blockEnd > this.rows, 'S2: a visible row is in a block')
      this.grow(blockEnd)
      for (; this.rows < blockEnd; this.rows++) this.add(this.rows, block, visibleRows)
    }
    return this.rows === visibleRows
  }

  /** The rows with the keys of that row, the newest first. Columns and hash as of hashRow(). */
  find(columns: readonly KeyColumn[], row: number, hash: number, visibleRows: number): number[] {
    const { memory } = this.options
    const head = hash & (this.heads.length - 1)
    const found: number[] = []
    let newer = -1
    for (let at = this.heads[head]! - 1; at >= 0; at = this.older[at]! - 1) {
      const block = this.blockOf(at)
      assert(block !== null, 'S2: a visible row is in a block')
      if (this.isGone(block, at, visibleRows)) {
        if (newer < 0) this.heads[head] = this.older[at]!
        else this.older[newer] = this.older[at]!
        continue
      }
      newer = at
      if (this.hashes[at] === hash && sameRow(memory, block.columns, at - block.firstRow, columns, row)) found.push(at)
    }
    return found
  }

  /** The block that has the row, and the row's index in it. */
  placeOf(row: number): { readonly block: number; readonly index: number } {
    const block = this.blockOf(row)
    assert(block !== null, 'S2: a visible row is in a block')
    return { block: block.address, index: row - block.firstRow }
  }

  private add(row: number, block: KeyBlock, visibleRows: number): void {
    if (this.isGone(block, row, visibleRows)) return
    const hash = hashRow(this.options.memory, block.columns, row - block.firstRow)
    const head = hash & (this.heads.length - 1)
    this.hashes[row] = hash
    this.older[row] = this.heads[head]!
    this.heads[head] = row + 1
  }

  /** Makes room for so many rows. */
  private grow(rows: number): void {
    if (rows > this.older.length) {
      const length = Math.max(rows, this.older.length * 2)
      this.older = lengthened(this.older, length)
      this.hashes = lengthened(this.hashes, length)
    }
    if (rows <= this.heads.length) return
    let length = this.heads.length
    while (length < rows) length *= 2
    const before = this.heads
    this.heads = new Int32Array(length)
    for (let head = 0; head < before.length; head++) this.divide(before[head]! - 1)
  }

  /** Adds the rows of a chain to those that they belong to now, in the same order. */
  private divide(newest: number): void {
    const rows: number[] = []
    for (let at = newest; at >= 0; at = this.older[at]! - 1) rows.push(at)
    for (const row of rows.reverse()) {
      const head = this.hashes[row]! & (this.heads.length - 1)
      this.older[row] = this.heads[head]!
      this.heads[head] = row + 1
    }
  }

  private isGone({ address, firstRow }: KeyBlock, row: number, visibleRows: number): boolean {
    const marks = supersededRows(this.options.memory, address)
    const mark = marks === 0 ? 0 : this.options.memory.u32[(marks >>> 2) + row - firstRow]!
    return mark !== 0 && mark <= visibleRows
  }

  private rowsOf({ address }: KeyBlock): number {
    return this.options.memory.u32[(address + 8) >>> 2]!
  }

  /** The last block is described anew, because a column gets its memory with its first value. */
  private blockOf(row: number): KeyBlock | null {
    let low = 0
    let high = this.blocks.length - 1
    while (low < high) {
      const middle = (low + high + 1) >>> 1
      if (this.blocks[middle]!.firstRow <= row) low = middle
      else high = middle - 1
    }
    const found = this.blocks[low]
    if (found !== undefined && row < found.firstRow + this.rowsOf(found)) {
      if (!found.isComplete) this.blocks[low] = this.described(found.address)
      return this.blocks[low]!
    }
    const { memory, memtable } = this.options
    for (let index = this.blocks.length; index < blockCount(memory, memtable); index++) {
      const block = this.described(blockAt(memory, memtable, index))
      if (this.rowsOf(block) === 0) return null
      this.blocks.push(block)
      if (row < block.firstRow + this.rowsOf(block)) return block
    }
    return null
  }

  private described(address: number): KeyBlock {
    const { memory, schema, columnIds, nulls } = this.options
    const columns = keyColumnsAt(memory, schema, columnIds, nulls, (id) => blockColumn(memory, address, id))
    const firstRow = memory.u32[address >>> 2]!
    return { address, firstRow, columns, isComplete: columns.every(({ stride }) => stride > 0) }
  }
}

function lengthened(array: Int32Array, length: number): Int32Array<ArrayBuffer> {
  const made = new Int32Array(length)
  made.set(array)
  return made
}
