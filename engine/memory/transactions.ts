// The most recent row transactions of all tables: a ring in shared memory that the writer fills and the main thread
// reads, for wal_transactions().
//
//    0  count u32       transactions recorded since the start
//   64  entries, 40 bytes each:
//        0  transaction f64   number within the table; 0 while the entry is being written
//        8  micros f64        wall clock of the commit in microseconds since the epoch; 0: committed before the start
//       16  minTs i64         of the designated timestamp, in the table's unit; undefined for tables without one
//       24  maxTs i64
//       32  tableId u32
//       36  rows u32

import { assert } from '../base/assert.js'
import { transactionsAddress } from './layout.js'
import type { SharedMemory } from './shared-memory.js'

const entriesMax = 4096
const entryBytes = 40
const entriesAddress = transactionsAddress + 64

export interface RowTransaction {
  /** Within its table, from 1. */
  readonly transaction: number
  readonly tableId: number
  readonly rows: number
  /** Wall clock of the commit in microseconds since the epoch; 0: unknown. */
  readonly micros: number
  /** Bounds of the designated timestamp, in the table's unit; undefined for tables without one. */
  readonly minTs: bigint
  readonly maxTs: bigint
}

export function noteTransaction(memory: SharedMemory, noted: RowTransaction): void {
  assert(noted.transaction > 0, 'S3: transactions count from 1')
  const { u32, f64, i64 } = memory
  const count = u32[transactionsAddress >>> 2]!
  const entry = entriesAddress + (count % entriesMax) * entryBytes
  f64[entry >>> 3] = 0
  f64[(entry + 8) >>> 3] = noted.micros
  i64[(entry + 16) >>> 3] = noted.minTs
  i64[(entry + 24) >>> 3] = noted.maxTs
  u32[(entry + 32) >>> 2] = noted.tableId
  u32[(entry + 36) >>> 2] = noted.rows
  f64[entry >>> 3] = noted.transaction
  Atomics.store(u32, transactionsAddress >>> 2, count + 1)
}

/** The recorded transactions of a table by their number. */
export function rememberedTransactions(memory: SharedMemory, tableId: number): Map<number, RowTransaction> {
  const found = new Map<number, RowTransaction>()
  const count = Atomics.load(memory.u32, transactionsAddress >>> 2)
  for (let index = Math.max(0, count - entriesMax); index < count; index++) {
    const entry = entriesAddress + (index % entriesMax) * entryBytes
    // Checked before decoding, because most entries belong to other tables.
    if (memory.u32[(entry + 32) >>> 2] !== tableId) continue
    const seen = entryAt(memory, entry)
    // The writer may have overwritten the entry during the read.
    if (seen.transaction === 0 || memory.f64[entry >>> 3] !== seen.transaction) continue
    if (seen.tableId === tableId) found.set(seen.transaction, seen)
  }
  return found
}

function entryAt({ u32, f64, i64 }: SharedMemory, entry: number): RowTransaction {
  return {
    transaction: f64[entry >>> 3]!,
    micros: f64[(entry + 8) >>> 3]!,
    minTs: i64[(entry + 16) >>> 3]!,
    maxTs: i64[(entry + 24) >>> 3]!,
    tableId: u32[(entry + 32) >>> 2]!,
    rows: u32[(entry + 36) >>> 2]!,
  }
}
