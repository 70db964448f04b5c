// Runs the writer's jobs (flush, import, compaction, rewrite) on a query thread in two lanes: one for flushes and
// imports, one for the rest. A lane runs one job at a time in the order of arrival; each step runs a slice of the
// current job of both lanes. While a job waits for rows of the object store, the next job of its lane runs. Files of
// consecutive small flushes are synced together, and only then these jobs are reported as done. The lanes are separate
// because a flush must not wait for a compaction: the compaction may wait for query memory that is freed only when
// ingestion goes on, and ingestion may need the memory that the flush frees.

import { assert } from '../base/assert.js'
import { errorRecord, FileError } from '../base/errors.js'
import { programRunner } from '../exec/run/rewrite-rows.js'
import type { Kernels } from '../kernels/load.js'
import { type CompactionTools, createCompactionJob } from '../storage/jobs/compaction.js'
import { createFlushJob } from '../storage/jobs/flush.js'
import { type Job, type JobResult, type StageWork, smallFlushRows } from '../storage/jobs/messages.js'
import type { StorageJob } from '../storage/jobs/part-job.js'
import { createRewriteJob, type RewriteTools } from '../storage/jobs/rewrite.js'
import { createStageJob } from '../storage/jobs/stage.js'
import { SyncGroup } from '../storage/part/sync-group.js'
import type { FromQueryHost } from './messages.js'

export type JobRunnerTools = Omit<CompactionTools, 'group'> & { readonly kernels: Kernels }

interface Waiting {
  readonly jobId: number
  readonly job: Job | StageWork
}

interface Started {
  readonly jobId: number
  readonly job: StorageJob
}

interface Lane {
  readonly waiting: Waiting[]
  running: Started | null
  /** Jobs that wait for rows of the object store, or for memory beside those; they have their turns. */
  readonly fetching: Started[]
  /** Whether all jobs of the lane that have begun wait for memory, or for the object store. */
  starved: boolean
  /** Finished flushes whose parts are not durable yet, because they are synced in groups. */
  readonly unsynced: { readonly jobId: number; readonly result: JobResult }[]
  readonly group: SyncGroup | null
}

/** Maximum number of flushes that are synced together. */
const unsyncedMax = 32
/** Maximum number of jobs of a lane that wait for the object store, apart from the one that runs. */
const fetchingMax = 8

export class JobRunner {
  readonly #tools: RewriteTools
  readonly #post: (message: FromQueryHost) => void
  readonly #flushes: Lane
  readonly #others = newLane(null)

  constructor(tools: JobRunnerTools, post: (message: FromQueryHost) => void) {
    this.#tools = { ...tools, group: null, run: programRunner(tools) }
    this.#flushes = newLane(new SyncGroup(tools.files))
    this.#post = post
  }

  add(jobId: number, job: Job | StageWork): void {
    const lane = job.kind === 'flush' || job.kind === 'stage' ? this.#flushes : this.#others
    lane.waiting.push({ jobId, job })
  }

  /** Whether a job waits for memory: step() should be called again soon, although it was idle. */
  get starved(): boolean {
    return this.#flushes.starved || this.#others.starved
  }

  step(): 'worked' | 'idle' {
    const flushed = this.#stepLane(this.#flushes)
    const worked = this.#stepLane(this.#others)
    return flushed === 'worked' ? flushed : worked
  }

  #stepLane(lane: Lane): 'worked' | 'idle' {
    if (this.#syncIsDue(lane)) return this.#sync(lane)
    const isFree = lane.running === null && lane.fetching.length < fetchingMax
    const next = isFree ? lane.waiting.shift() : undefined
    if (next === undefined) lane.running ??= lane.fetching.shift() ?? null
    lane.starved = false
    try {
      if (next !== undefined) lane.running = { jobId: next.jobId, job: this.#start(next.job, lane.group) }
      return this.#work(lane)
    } catch (error) {
      const jobId = lane.running?.jobId ?? next?.jobId
      lane.running = null
      // If the group contains parts of other jobs, their sync will report an error of the disk.
      if (lane.unsynced.length === 0) lane.group?.close()
      if (jobId !== undefined) this.#post({ kind: 'jobFailed', jobId, error: errorRecord(error) })
      return 'worked'
    }
  }

  #work(lane: Lane): 'worked' | 'idle' {
    const { running, group } = lane
    if (running === null) return 'idle'
    const { jobId, job } = running
    const outcome = job.step()
    lane.starved = outcome === 'waiting' || outcome === 'fetching'
    // One that waits for memory passes its turn on, too, if others may have it.
    if (outcome === 'fetching' || (outcome === 'waiting' && lane.fetching.length > 0)) {
      lane.fetching.push(running)
      lane.running = null
    }
    if (lane.starved) return lane.unsynced.length > 0 ? this.#sync(lane) : 'idle'
    if (outcome !== 'done') return 'worked'
    const { result } = job
    assert(result !== undefined, 'M2: a job that is done has its result')
    lane.running = null
    if (group === null) this.#post({ kind: 'jobDone', jobId, result })
    else lane.unsynced.push({ jobId, result })
    return 'worked'
  }

  /** Whether to sync now, because no small flush follows that could join the group. */
  #syncIsDue({ unsynced, running, waiting }: Lane): boolean {
    if (unsynced.length === 0 || running !== null) return false
    const next = waiting[0]?.job
    const shared = next?.kind === 'flush' && next.rows <= smallFlushRows
    return !shared || unsynced.length >= unsyncedMax
  }

  #sync({ unsynced, group }: Lane): 'worked' {
    const ended = unsynced.splice(0)
    try {
      group?.commit()
      for (const { jobId, result } of ended) this.#post({ kind: 'jobDone', jobId, result })
    } catch (error) {
      for (const { jobId, result } of ended) {
        for (const { file } of result.parts) this.#removeQuietly(file)
        this.#post({ kind: 'jobFailed', jobId, error: errorRecord(error) })
      }
    } finally {
      group?.close()
    }
    return 'worked'
  }

  /** Removes a part that will not be published. If that fails, the next start removes it. */
  #removeQuietly(file: string): void {
    const { files, directory } = this.#tools
    try {
      if (files.exists(`${directory}/${file}`)) files.remove(`${directory}/${file}`)
    } catch (error) {
      if (!(error instanceof FileError)) throw error
    }
  }

  #start(job: Job | StageWork, group: SyncGroup | null): StorageJob {
    switch (job.kind) {
      case 'flush':
        return createFlushJob({ ...this.#tools, group }, job)
      case 'stage':
        return createStageJob({ ...this.#tools, group }, job)
      case 'merge':
        return createCompactionJob(this.#tools, job)
      case 'rewrite':
        return createRewriteJob(this.#tools, job)
    }
  }
}

function newLane(group: SyncGroup | null): Lane {
  return { waiting: [], running: null, fetching: [], starved: false, unsynced: [], group }
}
