// Stage: a generation of an import becomes parts that no table names yet. As a flush, but that symbols are numbered by the
// file: the ids of the table take their place first. The memory of the generation is freed, whatever happens.

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
    assert(word > 0, 'A1: a column of symbols has memory')
    for (let row = 0; row < rows; row++) {
      const local = i32[word + row]!
      if (local >= 0) i32[word + row] = ids[local]!
    }
  }
}
