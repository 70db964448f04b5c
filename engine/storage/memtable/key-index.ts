// The index over the keys of one memtable's rows, for an enforced key (PRIMARY KEY .. ENFORCED). Each look-up first
// adds the committed rows that the index lacks. Rows that arrive in time order need no look-up, so the index costs them
// nothing. It never contains a row that a failed commit takes back.
//
// The index is a hash table of row numbers with open addressing, as for DEDUP (memtable-dedup.ts). It belongs to the
// writer and is on the JavaScript heap: 4 bytes a slot, at most half full. Rows that upserts have removed are skipped,
// and their slots are used again.

import { assert } from '../../base/assert.js'
import { blockColumn } from '../../memory/column-layout.js'
import type { SharedMemory } from '../../memory/shared-memory.js'
import type { TableSchema } from '../schema/schema.js'
import { hashRow, type KeyColumn, keyColumnsAt, sameRow } from './key-columns.js'
import type { Memtable } from './memtable.js'

const slotsFirst = 64

interface KeyBlock {
  readonly address: number
  readonly firstRow: number
  readonly columns: readonly KeyColumn[]
  /** All columns have memory, so the description stays right. */
  readonly isComplete: boolean
}

export interface KeyIndexOptions {
  readonly memory: SharedMemory
  readonly memtable: Memtable
  readonly schema: Pick<TableSchema, 'columns'>
  readonly columnIds: readonly number[]
  /** Address of nullBytes bytes. */
  readonly nulls: number
}

export class KeyIndex {
  private readonly options: KeyIndexOptions
  private readonly blocks: KeyBlock[] = []
  private indexed = 0
  /** Row number + 1; 0 is free. */
  private slots = new Uint32Array(slotsFirst)
  private used = 0

  constructor(options: KeyIndexOptions) {
    this.options = options
  }

  /** Adds the rows that the memtable has gained. */
  catchUp(): void {
    const { memtable, memory } = this.options
    assert(this.indexed <= memtable.rows, 'S1: indexed rows are never taken back')
    while (this.indexed < memtable.rows) {
      const block = this.blockOf(this.indexed)
      const end = Math.min(memtable.rows, block.firstRow + memtable.rowsOf(block.address))
      for (; this.indexed < end; this.indexed++) {
        if ((this.used + 1) * 2 > this.slots.length) this.grow()
        const at = this.indexed - block.firstRow
        if (!memtable.isSuperseded(block.address, at)) this.add(this.indexed, hashRow(memory, block.columns, at))
      }
    }
  }

  /** A row with the keys of that row of a batch, which upserts have not removed; -1 if there is none. */
  find(columns: readonly KeyColumn[], row: number, hash: number): number {
    const { memory, memtable } = this.options
    const mask = this.slots.length - 1
    for (let at = hash & mask; ; at = (at + 1) & mask) {
      const other = this.slots[at]! - 1
      if (other < 0) return -1
      const block = this.blockOf(other)
      const index = other - block.firstRow
      if (!sameRow(memory, block.columns, index, columns, row)) continue
      if (!memtable.isSuperseded(block.address, index)) return other
    }
  }

  private add(row: number, hash: number): void {
    const mask = this.slots.length - 1
    for (let at = hash & mask; ; at = (at + 1) & mask) {
      const other = this.slots[at]! - 1
      if (other >= 0 && !this.isGone(other)) continue
      if (other < 0) this.used++
      this.slots[at] = row + 1
      return
    }
  }

  private isGone(row: number): boolean {
    const { address, firstRow } = this.blockOf(row)
    return this.options.memtable.isSuperseded(address, row - firstRow)
  }

  private grow(): void {
    const rows = this.slots.filter((slot) => slot !== 0)
    this.slots = new Uint32Array(this.slots.length * 2)
    this.used = 0
    for (const slot of rows) {
      const { columns, firstRow } = this.blockOf(slot - 1)
      if (!this.isGone(slot - 1)) this.add(slot - 1, hashRow(this.options.memory, columns, slot - 1 - firstRow))
    }
  }

  /** The block of a row. The last one is described anew, because a column gets its memory with its first value. */
  private blockOf(row: number): KeyBlock {
    let low = 0
    let high = this.blocks.length - 1
    while (low < high) {
      const middle = (low + high + 1) >>> 1
      if (this.blocks[middle]!.firstRow <= row) low = middle
      else high = middle - 1
    }
    const found = this.blocks[low]
    if (found !== undefined && this.isWithin(found, row)) return found
    const { memory, memtable, schema, columnIds, nulls } = this.options
    const { address, index } = memtable.blockOfRow(row)
    const firstRow = row - index
    const columns = keyColumnsAt(memory, schema, columnIds, nulls, (id) => blockColumn(memory, address, id))
    const block = { address, firstRow, columns, isComplete: columns.every(({ stride }) => stride > 0) }
    if (found === undefined || firstRow > found.firstRow) this.blocks.push(block)
    else this.blocks[low] = block
    return block
  }

  private isWithin({ address, firstRow, isComplete }: KeyBlock, row: number): boolean {
    return isComplete && row < firstRow + this.options.memtable.rowsOf(address)
  }
}
