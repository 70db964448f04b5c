// Creates the executor of small queries on the main thread (exec/run/inline-executor.ts) with its WebAssembly kernels
// and its access to parts (Parquet files). That access reads only cached pages, since the main thread must not wait for
// a disk.

import type { Clock } from '../base/clock.js'
import { nodeFiles } from '../base/files.js'
import { InlineExecutor, readyChunks } from '../exec/run/inline-executor.js'
import { loadKernels } from '../kernels/load.js'
import { createAllocator } from '../memory/allocator.js'
import type { SharedMemory } from '../memory/shared-memory.js'
import type { ChunkCache } from '../storage/cache/chunk-cache.js'
import { createPartAccess } from '../storage/part/part-reader.js'
import { threadIds } from '../threads/wake.js'

interface InlineOptions {
  readonly memory: SharedMemory
  /** Address of the memory of the queries. */
  readonly arena: number
  readonly cache: ChunkCache
  /** The database directory. */
  readonly directory: string
  readonly clock: Clock
}

/** An executor that waits for no lock and reads no pages from disk. */
export function openInlineExecutor({ memory, arena, cache, directory, clock }: InlineOptions): InlineExecutor {
  const kernels = loadKernels(memory)
  const partAccess = createPartAccess({
    files: nodeFiles(),
    directory,
    memory,
    allocator: createAllocator(memory, threadIds.main),
    kernels,
    cache: readyChunks(cache),
  })
  return new InlineExecutor({ memory, clock, kernels, partAccess, arena })
}
