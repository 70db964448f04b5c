// The job of a bulk import that writes decoded rows as Parquet files (parts), which no table references before the
// import commits. It is a flush with one more step at the start: the import numbers the strings of SYMBOL columns on
// its own, and these numbers are replaced by ids of the table's symbol dictionaries. The memory of the decoded rows is
// freed even if the job fails.

import { assert } from '../../base/assert.js'
import { blockAt, blockColumn, blockCount, blockRows } from '../../memory/column-layout.js'
import type { SharedMemory } from '../../memory/shared-memory.js'
import { flushMemtable } from './flush.js'
import type { JobResult, StageWork } from './messages.js'
import { type JobSteps, type JobTools, StorageJob } from './part-job.js'

export function createStageJob(tools: JobTools, job: StageWork): StorageJob {
  return new StorageJob(stage(tools, job))
}

function* stage(tools: JobTools, job: StageWork): JobSteps<JobResult> {
  try {
    for (const [columnId, ids] of job.symbolIds) replaceIds(tools.memory, job.memtable, columnId, ids)
    yield
    return yield* flushMemtable(tools, { ...job, minTxn: 0, maxTxn: 0 })
  } finally {
    for (const address of job.allocations) tools.allocator.free(address)
  }
}

function replaceIds(memory: SharedMemory, memtable: number, columnId: number, ids: Int32Array): void {
  const { i32 } = memory
  for (let index = 0; index < blockCount(memory, memtable); index++) {
    const block = blockAt(memory, memtable, index)
    const word = blockColumn(memory, block, columnId) >>> 2
    const rows = blockRows(memory, block)
    assert(word > 0, 'A1: a symbol column has memory')
    for (let row = 0; row < rows; row++) {
      const local = i32[word + row]!
      if (local >= 0) i32[word + row] = ids[local]!
    }
  }
}
