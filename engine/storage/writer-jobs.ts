// What becomes of jobs that query threads have done, or could not do.

import { assert } from '../base/assert.js'
import type { ErrorRecord } from '../base/errors.js'
import { addFigure } from '../memory/figures.js'
import type { JobResult } from './messages.js'
import { mergeDone } from './writer-flush.js'
import { rewriteDone, rewriteFailed } from './writer-rewrite.js'
import type { WriterState } from './writer-state.js'

const retryMs = 1000

export function jobDone(state: WriterState, jobId: number, result: JobResult): void {
  const running = state.jobs.get(jobId)
  if (running === undefined) return
  state.jobs.delete(jobId)
  const { job, table, generation } = running
  switch (job.kind) {
    case 'flush':
      assert(generation !== undefined, 'a flush is of a generation')
      state.flushed.push({ table, generation, parts: result.parts })
      return
    case 'merge':
      mergeDone(state, running, result.parts)
      return
    case 'rewrite':
      rewriteDone(state, table, result)
  }
}

export function jobFailed(state: WriterState, jobId: number, error: ErrorRecord): void {
  const running = state.jobs.get(jobId)
  if (running === undefined) return
  state.jobs.delete(jobId)
  const { table, generation, job } = running
  addFigure(state.options.memory, 'failedJobs', 1)
  if (job.kind === 'rewrite') {
    rewriteFailed(state, table, error)
    return
  }
  state.options.log('E', 'writer', `${job.kind} failed [table=${table.schema.name}, error=${error.message}]`)
  if (generation?.state === 'gone') generation.memtable.free()
  if (generation?.state === 'flushing') generation.state = 'frozen'
  state.retryAtMs = state.options.clock.monotonicMs() + retryMs
}
