// The common base of the storage jobs that write Parquet files: flush, compaction, rewrite (UPDATE, DELETE, changes of
// column types) and import. Defines the files, memory and WebAssembly kernels that a job gets, and a class that runs a
// job as a sequence of steps of about a millisecond, so that a query thread can run queries in between.

import type { Files } from '../../base/files.js'
import type { ParquetKernel } from '../../kernels/parquet.js'
import type { SortKernel } from '../../kernels/sort.js'
import type { Allocator, Budget } from '../../memory/budgets.js'
import { dictionaryEntry } from '../../memory/column-layout.js'
import type { SharedMemory } from '../../memory/shared-memory.js'
import type { PageCodec } from '../part/parquet-codec.js'
import type { PartAccess } from '../part/part-access.js'
import { Arena } from '../part/part-arena.js'
import { Scratch } from '../part/part-scratch.js'
import type { PartTools } from '../part/part-writer.js'
import type { SyncGroup } from '../part/sync-group.js'
import type { PartDescriptor, TableSchema, TableVersion } from '../schema/schema.js'
import type { JobResult } from './messages.js'

export interface JobTools {
  readonly files: Files
  /** The database directory. */
  readonly directory: string
  readonly memory: SharedMemory
  readonly allocator: Allocator
  readonly kernels: { readonly parquet: ParquetKernel; readonly sort: SortKernel }
  readonly codec: PageCodec
  /** See PartTools. */
  readonly group: SyncGroup | null
}

/** Default of the setting for the page codec. A column chunk is compressed only if that makes it smaller enough. */
export const pageCodecDefault: PageCodec = 'lz4_raw'

/** The slices of a job; one that only waits yields 'waiting' (for memory) or 'fetching' (rows of the object store). */
export type JobSteps<T> = Generator<undefined | 'waiting' | 'fetching', T>

/** A job in progress: call step() until it returns 'done'. Each call takes about a millisecond. */
export class StorageJob {
  private readonly steps: JobSteps<JobResult>
  private finished: JobResult | undefined

  constructor(steps: JobSteps<JobResult>) {
    this.steps = steps
  }

  /**
   * 'waiting' while the job has no memory, 'fetching' while it waits for the object store. Throws the job's error; its
   * memory has been freed by then.
   */
  step(): 'worked' | 'waiting' | 'fetching' | 'done' {
    const { done, value } = this.steps.next()
    if (done !== true) return value ?? 'worked'
    this.finished = value
    return 'done'
  }

  /** Set after step() has returned 'done'. */
  get result(): JobResult | undefined {
    return this.finished
  }

  /** Cancels the job: frees its memory and removes the part that it was writing. */
  cancel(): void {
    this.steps.return({ parts: [] })
  }
}

/**
 * Runs `work` with a scratch space in an arena of the budget, of `bytesMax` at most; yields 'waiting' until the memory is
 * available.
 */
export function* withArena<T>(
  tools: JobTools,
  budget: Budget,
  bytes: number,
  work: (scratch: Scratch) => JobSteps<T>,
  bytesMax = tools.allocator.limit(budget) - arenaSpareBytes,
): JobSteps<T> {
  // What does not fit into the arena is allocated from the budget directly.
  const wanted = Math.max(0, Math.min(bytes, bytesMax))
  let arena = Arena.take(tools.allocator, budget, wanted)
  while (arena === undefined) {
    // The memory is in use by other jobs or queries.
    yield 'waiting'
    arena = Arena.take(tools.allocator, budget, wanted)
  }
  const scratch = new Scratch(tools.memory, arena, budget)
  try {
    return yield* work(scratch)
  } finally {
    scratch.release()
    arena.release()
  }
}

/** Waits until all rows of the parts can be read on this disk. Throws ResourceError if the object store is away. */
export function* untilReadable(
  parts: PartAccess,
  wanted: readonly PartDescriptor[],
  version: TableVersion,
): JobSteps<void> {
  const handles = wanted.map((part) => parts.open(part, version))
  while (handles.filter((handle) => !parts.readyWhole(handle)).length > 0) yield 'fetching'
}

/** Left free in the budget, because the allocator rounds allocations up to whole pages. */
const arenaSpareBytes = 1024 * 1024

export function partTools(tools: JobTools, scratch: Scratch): PartTools {
  const { files, directory, codec, kernels, group } = tools
  return { files, directory, codec, group, kernel: kernels.parquet, scratch }
}

const MIB = 1024 * 1024

/** Estimate of the bytes that writing a part of that many rows takes, for strings of usual length. */
export function writerBytes(schema: TableSchema, rows: number): number {
  const page = Math.min(rows, 65_536)
  const strings = schema.columns.some(({ type }) => ['STRING', 'VARCHAR', 'BINARY', 'ARRAY'].includes(type.name))
  const pages = page * 32 * 6
  const dictionary = Math.min(rows, 2 ** 20) * (8 + 8 + 4) + rows * 4
  return 1 * MIB + pages + dictionary + rows / 8 + (strings ? Math.min(24 * MIB, rows * 256 + MIB) : 0)
}

/** Looks up the strings of the table's symbols by column id and symbol id. */
export function symbolStrings(
  memory: SharedMemory,
  version: TableVersion,
): (columnId: number, id: number) => Uint8Array {
  const addresses = new Map(version.dictionaries)
  return (columnId, id) => {
    const entry = dictionaryEntry(memory, addresses.get(columnId) ?? 0, id) >>> 2
    const address = memory.u32[entry]!
    return memory.u8.subarray(address, address + memory.u32[entry + 1]!)
  }
}
