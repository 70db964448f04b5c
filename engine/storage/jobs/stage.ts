// The stage job of an import: writes a generation as parts that no table references yet. It is a flush whose rows have
// the import's own symbol numbers, which it first replaces by ids of the table's dictionaries. It frees the
// generation's memory in any case.

import { assert } from '../../base/assert.js'
import { blockAt, blockColumn, blockCount, blockRows } from '../../memory/column-layout.js'
import type { SharedMemory } from '../../memory/shared-memory.js'
import { flushGeneration } from './flush.js'
import type { JobResult, StageWork } from './messages.js'
import { type JobSteps, type JobTools, StorageJob } from './part-job.js'

export function createStageJob(tools: JobTools, job: StageWork): StorageJob {
  return new StorageJob(stage(tools, job))
}

function* stage(tools: JobTools, job: StageWork): JobSteps<JobResult> {
  try {
    for (const [columnId, ids] of job.symbolIds) replaceIds(tools.memory, job.generation, columnId, ids)
    yield
    return yield* flushGeneration(tools, { ...job, minTxn: 0, maxTxn: 0 })
  } finally {
    for (const address of job.allocations) tools.allocator.free(address)
  }
}

function replaceIds(memory: SharedMemory, generation: number, columnId: number, ids: Int32Array): void {
  const { i32 } = memory
  for (let index = 0; index < blockCount(memory, generation); index++) {
    const block = blockAt(memory, generation, index)
    const word = blockColumn(memory, block, columnId) >>> 2
    const rows = blockRows(memory, block)
    assert(word > 0, 'A1: a symbol column has memory')
    for (let row = 0; row < rows; row++) {
      const local = i32[word + row]!
      if (local >= 0) i32[word + row] = ids[local]!
    }
  }
}
