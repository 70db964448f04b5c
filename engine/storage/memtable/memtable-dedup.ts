// Deduplication of rows within one memtable (DEDUP UPSERT KEYS), by a hash index over timestamp and keys. When a new
// row has the keys of an older one, the number of the new row is stored at the older one in the block's `superseded`
// array, by which readers and the flush skip the older row. With DEDUP SKIP it is the other way round: the number of
// the older row is stored at the new one.
//
// The index uses open addressing over row numbers and compares keys in the blocks. It belongs to the writer and is on
// the JavaScript heap: 4 bytes a slot, at most half full.

import { assert } from '../../base/assert.js'
import { ResourceError } from '../../base/errors.js'
import { blockColumn } from '../../memory/column-layout.js'
import type { SharedMemory } from '../../memory/shared-memory.js'
import { type DataType, isVariable, widthOf } from '../../types/column-types.js'
import type { Memtable } from './memtable.js'

const slotsFirst = 64

export interface KeyColumn {
  readonly id: number
  readonly type: DataType
}

export class DedupIndex {
  private readonly memory: SharedMemory
  private readonly memtable: Memtable
  private readonly keys: readonly KeyColumn[]
  private readonly skips: boolean
  /** Row number + 1; 0 is free. */
  private slots = new Uint32Array(slotsFirst)
  private used = 0

  /** `skips`: the first row with equal keys stays. */
  constructor(memory: SharedMemory, memtable: Memtable, keys: readonly KeyColumn[], skips: boolean) {
    this.memory = memory
    this.skips = skips
    this.memtable = memtable
    this.keys = keys
  }

  /**
   * Adds rows to the index and marks rows whose keys other rows have. Throws ResourceError if a mark cannot be stored.
   */
  add(from: number, to: number): void {
    assert(to <= this.memtable.rows, 'S1: only appended rows are indexed')
    for (let row = from; row < to; row++) {
      if ((this.used + 1) * 2 > this.slots.length) this.grow()
      this.addRow(row)
    }
  }

  private addRow(row: number): void {
    const mask = this.slots.length - 1
    for (let at = this.hashOf(row) & mask; ; at = (at + 1) & mask) {
      const other = this.slots[at]! - 1
      if (other < 0) {
        this.slots[at] = row + 1
        this.used++
        return
      }
      if (!this.sameKeys(other, row)) continue
      assert(other < row, 'T2: a row is superseded by a later one')
      if (this.skips) {
        this.supersede(row, other)
        return
      }
      this.supersede(other, row)
      this.slots[at] = row + 1
      return
    }
  }

  private supersede(row: number, by: number): void {
    const { address, index } = this.memtable.blockOfRow(row)
    const superseded = this.memtable.supersededOf(address)
    if (superseded === 0) throw new ResourceError('out of memory for superseded rows')
    Atomics.store(this.memory.u32, (superseded >>> 2) + index, by + 1)
  }

  private grow(): void {
    const rows = this.slots.filter((slot) => slot !== 0)
    this.slots = new Uint32Array(this.slots.length * 2)
    const mask = this.slots.length - 1
    for (const slot of rows) {
      let at = this.hashOf(slot - 1) & mask
      while (this.slots[at] !== 0) at = (at + 1) & mask
      this.slots[at] = slot
    }
  }

  private hashOf(row: number): number {
    const { address, index } = this.memtable.blockOfRow(row)
    let hash = 0x811c9dc5
    for (const key of this.keys) hash = this.hashValue(hash, key, address, index)
    return (hash ^ (hash >>> 15)) >>> 0
  }

  private hashValue(seed: number, { id, type }: KeyColumn, block: number, index: number): number {
    const { at, bytes } = this.valueOf(id, type, block, index)
    let hash = Math.imul(seed ^ bytes, 0x01000193)
    for (let byte = 0; byte < bytes; byte++) hash = Math.imul(hash ^ this.memory.u8[at + byte]!, 0x01000193)
    return hash ^ (hash >>> 13)
  }

  private sameKeys(x: number, y: number): boolean {
    const a = this.memtable.blockOfRow(x)
    const b = this.memtable.blockOfRow(y)
    return this.keys.every(({ id, type }) => {
      const left = this.valueOf(id, type, a.address, a.index)
      const right = this.valueOf(id, type, b.address, b.index)
      if (left.bytes !== right.bytes) return false
      for (let byte = 0; byte < left.bytes; byte++) {
        if (this.memory.u8[left.at + byte] !== this.memory.u8[right.at + byte]) return false
      }
      return true
    })
  }

  /** Location of the value's bytes. A NULL of a variable-width type has -1 bytes. */
  private valueOf(id: number, type: DataType, block: number, index: number): { at: number; bytes: number } {
    const column = blockColumn(this.memory, block, id)
    if (column === 0) return isVariable(type) ? { at: 0, bytes: -1 } : this.nullOf(type)
    const width = widthOf(type)
    const at = column + index * width
    if (!isVariable(type)) return { at, bytes: width }
    return { at: this.memory.u32[at >>> 2]!, bytes: this.memory.i32[(at >>> 2) + 1]! }
  }

  /** A column without memory in a block is NULL there, which equals a stored NULL. */
  private nullOf(type: DataType): { at: number; bytes: number } {
    return { at: this.memtable.nullValue(type), bytes: widthOf(type) }
  }
}
