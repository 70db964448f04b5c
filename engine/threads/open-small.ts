// What small queries need on the main thread: kernels, and parts of which only cached pages are read. A module of its own,
// so that it is loaded when somebody asks.

import { nodeFiles } from '../base/files.js'
import { loadKernels } from '../kernels/load.js'
import { createAllocator } from '../memory/allocator.js'
import { readyChunks, SmallQueries } from '../sql/exec/small-queries.js'
import { createPartAccess } from '../storage/part-reader.js'
import type { EngineOptions, Prepared } from './open-engine.js'
import { threadIds } from './wake.js'

/** Small queries run on the main thread, which neither waits for locks nor reads pages. */
export function openSmallQueries(
  { memory, arena, cache }: Prepared,
  { directory, clock }: Pick<EngineOptions, 'directory' | 'clock'>,
): SmallQueries {
  const kernels = loadKernels(memory)
  const partAccess = createPartAccess({
    files: nodeFiles(),
    directory,
    memory,
    allocator: createAllocator(memory, threadIds.main),
    kernel: kernels.parquet,
    cache: readyChunks(cache),
  })
  return new SmallQueries({ memory, clock, kernels, partAccess, arena })
}
