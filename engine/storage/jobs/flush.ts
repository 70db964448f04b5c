// The flush job: takes a memtable (rows in memory) to which no more rows are added, sorts its rows by the designated
// timestamp (the table's time column), splits them by partition and writes each partition's rows as one or more Parquet
// files (parts). A query thread runs the job in short slices between queries. Its memory comes from a reserved block,
// the flush arena; while another flush uses that, the job waits.

import { assert } from '../../base/assert.js'
import { budgets } from '../../memory/budgets.js'
import { blockColumn } from '../../memory/column-layout.js'
import type { SharedMemory } from '../../memory/shared-memory.js'
import { mappingOf } from '../part/parquet-types.js'
import type { Scratch } from '../part/part-scratch.js'
import { type RowSource, writePart } from '../part/part-writer.js'
import { partitionDefault, partitionFinder } from '../schema/partition.js'
import type { ColumnSchema, PartDescriptor } from '../schema/schema.js'
import { type Job, type JobResult, partIdsPerFlush } from './messages.js'
import {
  type JobSteps,
  type JobTools,
  partTools,
  StorageJob,
  symbolStrings,
  withArena,
  writerBytes,
} from './part-job.js'
import { blocksOf, type MemtableBlocks, type SortedSlice, sorterBytes, sortMemtable } from './sorter.js'

/** Maximum number of rows of a part written by a flush. */
export const flushRowsMax = 1 << 21

type Flush = Omit<Job & { readonly kind: 'flush' }, 'kind'>

export function createFlushJob(tools: JobTools, job: Job & { readonly kind: 'flush' }): StorageJob {
  return new StorageJob(flushMemtable(tools, job))
}

export function flushMemtable(tools: JobTools, job: Flush): JobSteps<JobResult> {
  const rows = Math.min(job.rows, flushRowsMax)
  const bytes = sorterBytes(job.rows) + rows * 4 + writerBytes(job.version.schema, rows)
  return withArena(tools, budgets.flush, bytes, (scratch) => flush(tools, job, scratch))
}

/** If a part cannot be written, the parts before it are removed as well; the next attempt writes all of them. */
function* flush(tools: JobTools, job: Flush, scratch: Scratch): Generator<undefined, JobResult> {
  const parts: PartDescriptor[] = []
  let finished = false
  try {
    yield* flushParts(tools, job, scratch, parts)
    finished = true
    return { parts }
  } finally {
    if (!finished) removeParts(tools, parts)
  }
}

function removeParts({ files, directory }: JobTools, parts: readonly PartDescriptor[]): void {
  for (const { file } of parts) {
    const path = `${directory}/${file}`
    if (files.exists(path)) files.remove(path)
  }
}

function* flushParts(tools: JobTools, job: Flush, scratch: Scratch, parts: PartDescriptor[]): Generator<undefined> {
  const { schema } = job.version
  const memtable = blocksOf(tools.memory, job.memtable, job.rows, schema.timestampId)
  const gathered = { ...job, tools, scratch, memtable }
  const batches = schema.timestampId < 0 ? inCommitOrder(tools.memory, memtable) : inTimeOrder(gathered)
  let pending: PendingPart = { partition: partitionDefault, rows: 0 }
  for (const batch of batches) {
    if (batch === undefined) {
      yield
      continue
    }
    if (job.leaving?.has(batch.partition) === true) continue
    for (let first = 0; first < batch.rows; ) {
      if (pending.rows === flushRowsMax || (pending.rows > 0 && pending.partition !== batch.partition)) {
        parts.push(yield* writePending(gathered, pending, parts.length))
        pending = { partition: batch.partition, rows: 0 }
      }
      const rows = Math.min(batch.rows - first, flushRowsMax - pending.rows)
      appendPositions(scratch, pending.rows, batch, first, rows)
      pending = { partition: batch.partition, rows: pending.rows + rows }
      first += rows
    }
  }
  if (pending.rows > 0) parts.push(yield* writePending(gathered, pending, parts.length))
}

interface FlushContext extends Omit<Flush, 'memtable'> {
  readonly tools: JobTools
  readonly scratch: Scratch
  readonly memtable: MemtableBlocks
}

/** Rows of one partition in their final order: an address of positions, or ascending positions from a first one. */
interface Batch {
  readonly partition: string
  readonly rows: number
  readonly positions: number
  readonly firstPosition: number
}

/** The part being collected. Its positions are in the scratch buffer 'positions'. */
interface PendingPart {
  readonly partition: string
  readonly rows: number
}

function* inCommitOrder({ u32 }: SharedMemory, { blocks, shift, rows: all }: MemtableBlocks): Generator<Batch> {
  const batch = (rows: number, firstPosition: number): Batch => {
    return { partition: partitionDefault, rows, positions: 0, firstPosition }
  }
  for (const [index, { rows, superseded }] of blocks.entries()) {
    const first = index * 2 ** shift
    const isRemoved = (row: number): boolean => {
      const mark = superseded === 0 ? 0 : u32[(superseded >>> 2) + row]!
      return mark !== 0 && mark <= all
    }
    for (let from = 0; from < rows; ) {
      let end = from
      while (end < rows && !isRemoved(end)) end++
      if (end > from) yield batch(end - from, first + from)
      from = end + 1
    }
  }
}

function* inTimeOrder({ version, tools, scratch, memtable }: FlushContext): Generator<Batch | undefined> {
  const find = partitionFinder(version.schema)
  for (const slice of sortMemtable(tools.kernels.sort, scratch, memtable)) {
    if (slice === undefined) yield undefined
    else yield* cutSlice(tools, slice, find)
  }
}

function* cutSlice(
  { memory, kernels }: JobTools,
  { rows, timestamps, positions }: SortedSlice,
  find: ReturnType<typeof partitionFinder>,
): Generator<Batch> {
  for (let first = 0; first < rows; ) {
    const { name, to } = find(memory.i64[(timestamps >>> 3) + first]!)
    const end = kernels.sort.lowerBound(timestamps, first, rows, to)
    assert(end <= rows, 'K3: a bound is within the rows')
    // No timestamp is above the maximum of the type, so no bound is either.
    const next = end > first ? end : rows
    yield { partition: name, rows: next - first, positions: positions + first * 4, firstPosition: 0 }
    first = next
  }
}

function appendPositions(scratch: Scratch, filled: number, batch: Batch, first: number, rows: number): void {
  const room = Math.min(flushRowsMax, Math.max(filled + rows, filled * 2))
  assert(filled + rows <= flushRowsMax, 'F2: a part has at most flushRowsMax rows')
  const target = scratch.room('positions', room * 4, filled * 4) + filled * 4
  const { u32 } = scratch.memory
  if (batch.positions !== 0) {
    const from = batch.positions + first * 4
    scratch.memory.copy(target, from, from + rows * 4)
    return
  }
  for (let row = 0; row < rows; row++) u32[(target >>> 2) + row] = batch.firstPosition + first + row
}

function* writePending(
  context: FlushContext,
  pending: PendingPart,
  number: number,
): Generator<undefined, PartDescriptor> {
  assert(number < partIdsPerFlush, 'S3: a flush stays within its part ids')
  const { tools, scratch, version, minTxn, maxTxn, firstPartId } = context
  return yield* writePart(partTools(tools, scratch), {
    ...{ schema: version.schema, partId: firstPartId + number, partition: pending.partition, minTxn, maxTxn },
    source: sourceOf(context, pending.rows),
  })
}

function sourceOf(context: FlushContext, rows: number): RowSource {
  const { tools, scratch, version, memtable } = context
  const { blocks, shift } = memtable
  let basesOf = -1
  return {
    rows,
    has: (columnId) => blocks.some(({ address }) => blockColumn(tools.memory, address, columnId) !== 0),
    read: (column, first, count) => {
      const bases = scratch.room('bases', blocks.length * 4)
      if (basesOf !== column.id) {
        for (const [index, { address }] of blocks.entries()) {
          tools.memory.u32[(bases >>> 2) + index] = blockColumn(tools.memory, address, column.id)
        }
        basesOf = column.id
      }
      return readPositions(tools, scratch, column, { first, count, shift, bases })
    },
    symbol: symbolStrings(tools.memory, version),
  }
}

interface Reading {
  readonly first: number
  readonly count: number
  readonly shift: number
  readonly bases: number
}

/** Address of the values of rows of the pending part: in the block if they are contiguous there, else gathered. */
function readPositions(
  tools: JobTools,
  scratch: Scratch,
  { type }: ColumnSchema,
  { first, count, shift, bases }: Reading,
): number {
  assert(count > 0, 'F2: a page has rows')
  const { memoryBytes, nullKind } = mappingOf(type)
  const positions = scratch.room('positions', (first + count) * 4, 0) + first * 4
  const { u32 } = tools.memory
  if (areConsecutive(u32, positions >>> 2, count, shift)) {
    const position = u32[positions >>> 2]!
    const base = u32[(bases >>> 2) + (position >>> shift)]!
    return base === 0 ? 0 : base + (position & (2 ** shift - 1)) * memoryBytes
  }
  const target = scratch.room('gathered', count * memoryBytes)
  tools.kernels.parquet.gatherBlocks(positions, count, shift, bases, memoryBytes, nullKind, target)
  return target
}

function areConsecutive(u32: Uint32Array, at: number, count: number, shift: number): boolean {
  const first = u32[at]!
  const last = u32[at + count - 1]!
  if (last - first !== count - 1 || first >>> shift !== last >>> shift) return false
  for (let i = 1; i < count; i++) if (u32[at + i] !== first + i) return false
  return true
}
