// Removes rows of some partitions from memory durably, for DROP PARTITION and TTL, without a flush, which would write a
// small Parquet file for each remaining partition. The remaining rows are copied to a new memtable. They are also
// written to the log again, in a relocation frame (log record), which replaces all earlier log frames of the table's
// unflushed rows (writer-relocate.ts).

import { ResourceError } from '../../base/errors.js'
import { blockAt, blockColumn, blockCount, blockRows, lastWriteMicros } from '../../memory/column-layout.js'
import { metricOf, writeRefusals } from '../../memory/metrics.js'
import type { SharedMemory } from '../../memory/shared-memory.js'
import type { Lsn } from '../../wal/types.js'
import type { Receipt } from '../jobs/messages.js'
import type { Memtable } from '../memtable/memtable.js'
import { noteTimestamp, type RowChunk } from './writer-batch.js'
import { freeMemtable } from './writer-flush.js'
import { appendRelocationFrame, chunkOf } from './writer-relocate.js'
import { enqueue, type WriterState } from './writer-state.js'
import type { MemtableEntry, WriterTable } from './writer-table.js'

/**
 * Multiple of the size up to which memtables are relocated in the background, since a client waits for the statement.
 */
const relocationsPerDrop = 8

/**
 * Removes the rows for whose timestamps `leaves` is true. Returns false, and changes nothing, if the table has much in
 * memory, if no row would remain, or if memory or log have no room.
 */
export function dropMemtableRows(
  state: WriterState,
  table: WriterTable,
  leaves: (timestamp: bigint) => boolean,
  receipts: (lsn: Lsn) => Receipt[],
): boolean {
  const { wal, settings, options } = state
  const [entry] = table.memtables
  if (entry?.state !== 'open' || table.memtables.length > 1) return false
  // The log refers to its rows by their numbers.
  if (entry.hasRemovals === true) return false
  if (entry.memtable.bytes > settings.relocatedBytesMax * relocationsPerDrop) return false
  if (wal.state === 'poisoned' || metricOf(options.memory, 'refusal') !== writeRefusals.none) return false
  return relocateRest(state, table, entry, leaves, receipts)
}

/** Replaces the table's only memtable by one without these rows. */
function relocateRest(
  state: WriterState,
  table: WriterTable,
  old: MemtableEntry,
  leaves: (timestamp: bigint) => boolean,
  receipts: (lsn: Lsn) => Receipt[],
): boolean {
  const { neededLsn, symbolsLsn, memtables } = table
  const firstLsn = state.wal.headLsn
  const { memory, clock } = state.options
  table.memtables = []
  let rest: MemtableEntry | undefined
  try {
    const chunks = stayingChunks(memory, table, old.memtable, leaves)
    if (chunks.length > 0) {
      rest = table.addMemtable(state.nextMemtableId++, clock)
      fillMemtable(table, rest, chunks)
      rest.memtable.mark(table.transaction, lastWriteMicros(memory, old.memtable.address))
      appendRelocationFrame(state, table, rest)
    }
  } catch (thrown) {
    rest?.memtable.free()
    rest = undefined
    if (!(thrown instanceof ResourceError)) throw thrown
  }
  if (rest === undefined) {
    table.memtables = memtables
    return false
  }
  const { memtable, lastLsn } = rest
  Object.assign(rest, { minTxn: old.minTxn, maxTxn: old.maxTxn, firstLsn })
  table.memtables = [rest]
  table.rewrites++
  table.retire(() => freeMemtable(state, old), old)
  state.removals.push({ endLsn: lastLsn, retainedLsn: Math.min(neededLsn, symbolsLsn) })
  enqueue(state, {
    visible: [{ memtable, rows: memtable.rows }],
    versions: [table.nextVersion()],
    receipts: receipts(lastLsn),
  })
  return true
}

/** Throws ResourceError. */
function fillMemtable({ schema }: WriterTable, { memtable, dedup }: MemtableEntry, chunks: readonly RowChunk[]): void {
  if (!memtable.append(chunks, schema.timestampId)) throw new ResourceError('out of memory for the remaining rows')
  dedup?.add(0, memtable.rows)
}

/** The ranges of remaining rows as views of the memtable. */
function stayingChunks(
  memory: SharedMemory,
  table: WriterTable,
  memtable: Memtable,
  leaves: (timestamp: bigint) => boolean,
): RowChunk[] {
  const chunks: RowChunk[] = []
  for (let index = 0; index < blockCount(memory, memtable.address); index++) {
    const block = blockAt(memory, memtable.address, index)
    const rows = blockRows(memory, block)
    const times = blockColumn(memory, block, table.schema.timestampId) >>> 3
    for (let first = 0; first < rows; ) {
      const isLeaving = leaves(memory.i64[times + first]!)
      let end = first + 1
      while (end < rows && leaves(memory.i64[times + end]!) === isLeaving) end++
      if (!isLeaving) {
        const chunk = chunkOf(memory, table, block, first, end - first)
        for (let row = first; row < end; row++) noteTimestamp(chunk, memory.i64[times + row]!)
        chunks.push(chunk)
      }
      first = end
    }
  }
  return chunks
}
