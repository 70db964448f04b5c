// Rows of parts that upserts have replaced or deleted. Parts (Parquet files) are immutable, so each such part has an
// array of marks in shared memory: for each row the number of the table transaction that removed it, or 0. Readers skip
// rows whose mark their snapshot includes, as they skip superseded rows of memtables. Compactions and rewrites leave
// removed rows out.
//
// Durability: the log has the removals of each transaction (schema/logged-change.ts). When the memtable of these
// transactions is flushed, the row numbers are stored in the part's descriptor in the manifest (`removedRows`).
// Removals by later transactions are not stored there yet, since the log frame (record) with the rows that replace them
// may not be durable yet.
//
// Invariant: a mark is set once and never changed, while the part is neither compacted nor rewritten.

import { assert } from '../../base/assert.js'
import { CorruptionError } from '../../base/errors.js'
import { type Allocator, budgets } from '../../memory/budgets.js'
import type { SharedMemory } from '../../memory/shared-memory.js'
import type { TableVersion } from '../schema/schema.js'

export class PartMarks {
  readonly partId: number
  readonly rows: number
  /** Address of a u32 for each row of the part. */
  readonly address: number
  /** Number of removed rows. */
  count = 0
  /** The largest transaction whose removals the descriptor in the manifest lacks; 0: it lacks none. */
  private unwritten = 0
  private readonly memory: SharedMemory

  /** Throws ResourceError. */
  constructor(memory: SharedMemory, allocator: Allocator, partId: number, rows: number) {
    this.memory = memory
    this.partId = partId
    this.rows = rows
    this.address = allocator.allocateOrThrow(rows * 4, budgets.memtables)
    memory.u32.fill(0, this.address >>> 2, (this.address >>> 2) + rows)
  }

  isRemoved(row: number): boolean {
    return this.memory.u32[(this.address >>> 2) + row] !== 0
  }

  mark(row: number, transaction: number): void {
    assert(row < this.rows, 'S2: a removed row is in its part')
    if (this.isRemoved(row)) return
    Atomics.store(this.memory.u32, (this.address >>> 2) + row, transaction)
    this.count++
    if (transaction > this.unwritten) this.unwritten = transaction
  }

  get isUnwritten(): boolean {
    return this.unwritten > 0
  }

  /** The descriptor has the removals up to the transaction. */
  written(upTo: number): void {
    if (this.unwritten <= upTo) this.unwritten = 0
  }

  /** The numbers of the rows that transactions up to this one have removed, as text. */
  encoded(upTo: number): string {
    const numbers = new Uint32Array(this.count)
    const { u32 } = this.memory
    const first = this.address >>> 2
    let at = 0
    for (let row = 0; row < this.rows; row++) {
      const mark = u32[first + row]!
      if (mark !== 0 && mark <= upTo) numbers[at++] = row
    }
    return encodeRowNumbers(numbers.subarray(0, at))
  }
}

/** Whether readers of the table must check its rows for removed or superseded ones. */
export function hidesRows({ schema, removals }: TableVersion): boolean {
  return schema.dedupKeys.length > 0 || removals !== undefined
}

/** Address of the marks of a part; 0 if no row of it is removed. */
export function marksOf({ removals }: TableVersion, partId: number): number {
  return removals?.find(([id]) => id === partId)?.[1] ?? 0
}

/** Ascending row numbers as text: base64 of their differences in variable length, 7 bits a byte. */
export function encodeRowNumbers(numbers: Uint32Array): string {
  const bytes = Buffer.alloc(numbers.length * 5)
  let at = 0
  let before = -1
  for (const number of numbers) {
    assert(number > before, 'S2: row numbers ascend')
    let left = number - before
    for (before = number; left > 0x7f; left >>>= 7) bytes[at++] = (left & 0x7f) | 0x80
    bytes[at++] = left
  }
  return bytes.toString('base64', 0, at)
}

/** Throws CorruptionError. */
export function decodeRowNumbers(text: string): Uint32Array {
  const bytes = Buffer.from(text, 'base64')
  const numbers = new Uint32Array(bytes.reduce((count, byte) => count + (byte < 0x80 ? 1 : 0), 0))
  let at = 0
  let [left, shift, before] = [0, 0, -1]
  for (const byte of bytes) {
    left += (byte & 0x7f) * 2 ** shift
    shift += 7
    if (byte >= 0x80) continue
    before += left
    numbers[at++] = before
    ;[left, shift] = [0, 0]
  }
  if (shift > 0) throw new CorruptionError('a list of removed rows is damaged', 'row numbers', bytes.length)
  return numbers
}
