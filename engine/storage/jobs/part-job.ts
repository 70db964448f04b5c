// What flush and merge have in common: tools, memory, and the shape of a job that a query thread runs in slices.

import type { Files } from '../../base/files.js'
import type { ParquetKernel } from '../../kernels/parquet.js'
import type { SortKernel } from '../../kernels/sort.js'
import type { Allocator, Budget } from '../../memory/budgets.js'
import { dictionaryEntry } from '../../memory/column-layout.js'
import type { SharedMemory } from '../../memory/shared-memory.js'
import type { PageCodec } from '../part/parquet-codec.js'
import { Arena } from '../part/part-arena.js'
import { Scratch } from '../part/part-scratch.js'
import type { PartTools } from '../part/part-writer.js'
import type { SyncGroup } from '../part/sync-group.js'
import type { TableSchema, TableVersion } from '../schema/schema.js'
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

/** Default of the setting that names the page codec: it is used per column chunk, where it pays. */
export const pageCodecDefault: PageCodec = 'lz4_raw'

/** Slices of a job; those that only wait say so. */
export type JobSteps<T> = Generator<undefined | 'waiting', T>

/** A flush or merge in progress: call step() until it says 'done'; each call works for a millisecond or so. */
export class StorageJob {
  private readonly steps: JobSteps<JobResult>
  private finished: JobResult | undefined

  constructor(steps: JobSteps<JobResult>) {
    this.steps = steps
  }

  /** 'waiting' while there is no memory for it. Throws what went wrong; the job's memory is free then. */
  step(): 'worked' | 'waiting' | 'done' {
    const { done, value } = this.steps.next()
    if (done !== true) return value ?? 'worked'
    this.finished = value
    return 'done'
  }

  /** Set when step() said 'done'. */
  get result(): JobResult | undefined {
    return this.finished
  }

  /** Gives the job up: its memory is freed and the part that it was writing is removed. */
  cancel(): void {
    this.steps.return({ parts: [] })
  }
}

/** Runs `work` with a scratch over an arena of the budget; waits, slice by slice, until that is to be had. */
export function* withArena<T>(
  tools: JobTools,
  budget: Budget,
  bytes: number,
  work: (scratch: Scratch) => Generator<undefined, T>,
): JobSteps<T> {
  // Without a block of its own a job takes its buffers from the budget one by one.
  const wanted = Math.max(0, Math.min(bytes, tools.allocator.limit(budget) - arenaSpareBytes))
  let arena = Arena.take(tools.allocator, budget, wanted)
  while (arena === undefined) {
    // Another job or a query has it.
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

/** The allocator hands out whole pages. */
const arenaSpareBytes = 1024 * 1024

export function partTools(tools: JobTools, scratch: Scratch): PartTools {
  const { files, directory, codec, kernels, group } = tools
  return { files, directory, codec, group, kernel: kernels.parquet, scratch }
}

const MIB = 1024 * 1024

/** What writing a part of so many rows takes at most, if its texts are no longer than usual. */
export function writerBytes(schema: TableSchema, rows: number): number {
  const page = Math.min(rows, 65_536)
  const texts = schema.columns.some(({ type }) => ['STRING', 'VARCHAR', 'BINARY', 'ARRAY'].includes(type.name))
  const pages = page * 32 * 6
  const dictionary = Math.min(rows, 2 ** 20) * (8 + 8 + 4) + rows * 4
  return 1 * MIB + pages + dictionary + rows / 8 + (texts ? Math.min(24 * MIB, rows * 256 + MIB) : 0)
}

/** Texts of the table's symbols. */
export function symbolTexts(memory: SharedMemory, version: TableVersion): (columnId: number, id: number) => Uint8Array {
  const addresses = new Map(version.dictionaries)
  return (columnId, id) => {
    const entry = dictionaryEntry(memory, addresses.get(columnId) ?? 0, id) >>> 2
    const address = memory.u32[entry]!
    return memory.u8.subarray(address, address + memory.u32[entry + 1]!)
  }
}
