// The writer's jobs on a query thread, in two lanes: one job of a lane at a time, in the order of their arrival, a slice of
// each lane per step. Flushes have a lane of their own. They alone give memory back to the writer, and what a merge waits
// for, memory of the queries, may come back only when ingest goes on: a flush must never stand behind it.

import { assert } from '../base/assert.js'
import { errorRecord } from '../base/errors.js'
import type { Kernels } from '../kernels/load.js'
import { programRunner } from '../sql/exec/rewrite-rows.js'
import { createFlushJob } from '../storage/flush.js'
import { createMergeJob, type MergeTools } from '../storage/merge.js'
import type { Job } from '../storage/messages.js'
import type { StorageJob } from '../storage/part-job.js'
import { createRewriteJob, type RewriteTools } from '../storage/rewrite.js'
import type { FromQueryHost } from './messages.js'

interface Waiting {
  readonly jobId: number
  readonly job: Job
}

interface Lane {
  readonly waiting: Waiting[]
  running: { readonly jobId: number; readonly job: StorageJob } | null
  /** The running job lacks memory. */
  starved: boolean
}

export class JobRunner {
  readonly #tools: RewriteTools
  readonly #post: (message: FromQueryHost) => void
  readonly #flushes = newLane()
  readonly #others = newLane()

  constructor(tools: MergeTools & { readonly kernels: Kernels }, post: (message: FromQueryHost) => void) {
    this.#tools = { ...tools, run: programRunner(tools) }
    this.#post = post
  }

  add(jobId: number, job: Job): void {
    const lane = job.kind === 'flush' ? this.#flushes : this.#others
    lane.waiting.push({ jobId, job })
  }

  /** A job waits for memory: step() is to be called again soon, though it was 'idle'. */
  get starved(): boolean {
    return this.#flushes.starved || this.#others.starved
  }

  step(): 'worked' | 'idle' {
    const flushed = this.#stepLane(this.#flushes)
    const worked = this.#stepLane(this.#others)
    return flushed === 'worked' ? flushed : worked
  }

  #stepLane(lane: Lane): 'worked' | 'idle' {
    const next = lane.running === null ? lane.waiting.shift() : undefined
    lane.starved = false
    try {
      if (next !== undefined) lane.running = { jobId: next.jobId, job: this.#start(next.job) }
      return this.#work(lane)
    } catch (error) {
      const jobId = lane.running?.jobId ?? next?.jobId
      lane.running = null
      if (jobId !== undefined) this.#post({ kind: 'jobFailed', jobId, error: errorRecord(error) })
      return 'worked'
    }
  }

  #work(lane: Lane): 'worked' | 'idle' {
    const { running } = lane
    if (running === null) return 'idle'
    const outcome = running.job.step()
    lane.starved = outcome === 'waiting'
    if (outcome !== 'done') return lane.starved ? 'idle' : 'worked'
    const { result } = running.job
    assert(result !== undefined, 'a job that is done has its result')
    lane.running = null
    this.#post({ kind: 'jobDone', jobId: running.jobId, result })
    return 'worked'
  }

  #start(job: Job): StorageJob {
    switch (job.kind) {
      case 'flush':
        return createFlushJob(this.#tools, job)
      case 'merge':
        return createMergeJob(this.#tools, job)
      case 'rewrite':
        return createRewriteJob(this.#tools, job)
    }
  }
}

function newLane(): Lane {
  return { waiting: [], running: null, starved: false }
}
