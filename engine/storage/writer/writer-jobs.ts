// Receives the results and failures of flush, compaction and rewrite jobs, which query threads run for the writer, and
// passes each on to the module that started it. A failed flush or compaction is retried later.

import { assert } from '../../base/assert.js'
import type { ErrorRecord } from '../../base/errors.js'
import { addMetric } from '../../memory/metrics.js'
import type { JobResult } from '../jobs/messages.js'
import { mergeDone } from './writer-flush.js'
import { refuseWaiters } from './writer-manifest.js'
import { rewriteDone, rewriteFailed } from './writer-rewrite.js'
import type { PostedJob, RunningJob, WriterState } from './writer-state.js'
import type { WriterTable } from './writer-table.js'

const retryMs = 1000
const mergeRetryMs = 10_000

export function jobDone(state: WriterState, jobId: number, result: JobResult): void {
  const running = state.jobs.get(jobId)
  if (running === undefined) return
  state.jobs.delete(jobId)
  running.table.jobs--
  assert(running.table.jobs >= 0, 'S4: a job of a table ends once')
  settle(state, running, result)
  leaveIdle(state)
}

function settle(state: WriterState, running: PostedJob, result: JobResult): void {
  const { job, table, entry } = running
  switch (job.kind) {
    case 'flush':
      assert(entry !== undefined, 'S2: a flush is of a memtable')
      state.flushed.push({ table, entry, parts: result.parts })
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
  running.table.jobs--
  const { table, job } = running
  addMetric(state.options.memory, 'failedJobs', 1)
  if (error.name === 'AssertionError')
    state.options.log('C', 'writer', `${job.kind} [table=${table.schema.name}]: ${error.stack}`)
  if (job.kind === 'rewrite') rewriteFailed(state, table, error)
  else failed(state, running, error)
  leaveIdle(state)
}

function failed(state: WriterState, { table, entry, job }: RunningJob, error: ErrorRecord): void {
  // The files of a dropped table may be gone already. Its result is not needed, and other jobs need not wait.
  const isDropped = state.dropped.has(table.id)
  state.options.log(
    isDropped ? 'W' : 'E',
    'writer',
    `${job.kind} failed [table=${table.schema.name}, error=${error.message}]`,
  )
  if (entry?.state === 'gone') entry.memtable.free()
  if (entry?.state === 'flushing') entry.state = 'frozen'
  if (isDropped) return
  const now = state.options.clock.monotonicMs()
  // Rows are accepted and flushed without compactions, so one that lacks memory does not hold them up.
  if (job.kind === 'merge' && error.name !== 'FileError') state.mergeRetryAtMs = now + mergeRetryMs
  else state.retryAtMs = now + retryMs
  if (error.name === 'FileError') refuseWaiters(state, error)
}

/**
 * Calls `leave` when no job reads or writes the table any more. Jobs read symbols in the table's memory, and sync its
 * parts in groups with those of other tables, for which its folder must exist.
 */
export function whenIdle(state: WriterState, table: WriterTable, leave: () => void): void {
  state.leaving.push({ table, leave })
  leaveIdle(state)
}

function leaveIdle(state: WriterState): void {
  if (state.leaving.length === 0) return
  const busy = new Set([...state.jobs.values()].map(({ table }) => table))
  const idle = state.leaving.filter(({ table }) => !busy.has(table))
  const left = state.leaving.filter(({ table }) => busy.has(table))
  state.leaving.splice(0, state.leaving.length, ...left)
  for (const { leave } of idle) leave()
}
