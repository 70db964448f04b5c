// The writer's jobs on a query thread: one at a time, in the order of their arrival, a slice per step.

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

export class JobRunner {
  readonly #tools: RewriteTools
  readonly #post: (message: FromQueryHost) => void
  readonly #waiting: Waiting[] = []
  #running: { readonly jobId: number; readonly job: StorageJob } | null = null

  constructor(tools: MergeTools & { readonly kernels: Kernels }, post: (message: FromQueryHost) => void) {
    this.#tools = { ...tools, run: programRunner(tools) }
    this.#post = post
  }

  add(jobId: number, job: Job): void {
    this.#waiting.push({ jobId, job })
  }

  step(): 'worked' | 'idle' {
    const next = this.#running === null ? this.#waiting.shift() : undefined
    try {
      if (next !== undefined) this.#running = { jobId: next.jobId, job: this.#start(next.job) }
      return this.#work()
    } catch (error) {
      const jobId = this.#running?.jobId ?? next?.jobId
      this.#running = null
      if (jobId !== undefined) this.#post({ kind: 'jobFailed', jobId, error: errorRecord(error) })
      return 'worked'
    }
  }

  #work(): 'worked' | 'idle' {
    const running = this.#running
    if (running === null) return 'idle'
    if (running.job.step() === 'worked') return 'worked'
    const { result } = running.job
    assert(result !== undefined, 'a job that is done has its result')
    this.#running = null
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
