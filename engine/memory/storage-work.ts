// The most recent flushes and compactions of all tables: a ring in shared memory that the writer fills and the main
// thread reads, for the statistics of tables().
//
//    0  count u32       jobs recorded since the start
//   64  entries, 24 bytes each:
//        0  rows f64        written into parts; -1 while the entry is being written
//        8  seconds f64     from the start of the job to its result
//       16  tableId u32
//       20  kind u32        0 flush, 1 compaction

import { storageWorkAddress } from './layout.js'
import type { SharedMemory } from './shared-memory.js'

const entriesMax = 1024
const entryBytes = 24
const entriesAddress = storageWorkAddress + 64
const kinds = ['flush', 'merge'] as const

export interface StorageWork {
  readonly kind: (typeof kinds)[number]
  readonly rows: number
  readonly seconds: number
}

export function noteStorageWork({ u32, f64 }: SharedMemory, tableId: number, work: StorageWork): void {
  const count = u32[storageWorkAddress >>> 2]!
  const entry = entriesAddress + (count % entriesMax) * entryBytes
  f64[entry >>> 3] = -1
  f64[(entry + 8) >>> 3] = work.seconds
  u32[(entry + 16) >>> 2] = tableId
  u32[(entry + 20) >>> 2] = kinds.indexOf(work.kind)
  f64[entry >>> 3] = work.rows
  Atomics.store(u32, storageWorkAddress >>> 2, count + 1)
}

/** The recorded jobs of a table, oldest first. */
export function rememberedWork({ u32, f64 }: SharedMemory, tableId: number): StorageWork[] {
  const found: StorageWork[] = []
  const count = Atomics.load(u32, storageWorkAddress >>> 2)
  for (let index = Math.max(0, count - entriesMax); index < count; index++) {
    const entry = entriesAddress + (index % entriesMax) * entryBytes
    const kind = kinds[u32[(entry + 20) >>> 2]!]
    if (u32[(entry + 16) >>> 2] !== tableId || kind === undefined) continue
    const [rows = -1, seconds = 0] = f64.subarray(entry >>> 3, (entry >>> 3) + 2)
    // The writer may have overwritten the entry during the read.
    if (rows >= 0 && u32[(entry + 16) >>> 2] === tableId) found.push({ kind, rows, seconds })
  }
  return found
}
