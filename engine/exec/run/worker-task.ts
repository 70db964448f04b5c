// A query of another thread that this thread helps with: it plans the shared fragment once more from the same snapshot and
// takes chunks of it. It holds what it made until the lead needs it no more, and everything ends when all
// helpers are dismissed: one may be in the middle of what another has made. While the reader of the query has stopped it holds
// nothing, and begins anew when the lead goes on.
//
// Errors are the lead's to report: the chunk under way goes back, and whoever does it next meets the same error.

import type { Plan } from '../../sql/plan/plan.js'
import type { ExecContext } from '../batch/context.js'
import { morselFormatOf } from '../encode/create-encoder.js'
import { encodeWorker } from '../encode/parallel-encode.js'
import { aggregateWorker, distinctGroups } from '../fragment/aggregate-parallel.js'
import { planWorker } from '../fragment/fragment-operators.js'
import { sortWorker } from '../fragment/sort-parallel.js'
import { type ChunkWorker, type FragmentDetails, planNumbers, WorkerRun } from '../parallel/coordinator.js'
import { WorkQueue } from '../parallel/work-queue.js'
import { scanShape } from '../scan/scan-shape.js'
import type { Encoding, JoinFragment } from './messages.js'
import { type QueryHost, queryContext } from './query-host.js'

export class WorkerTask {
  readonly queryId: number
  readonly #host: QueryHost
  readonly #message: JoinFragment
  #context: ExecContext | null = null
  readonly #endings: (() => void)[] = []
  #run: WorkerRun | null = null
  #over = false
  readonly #queue: WorkQueue | null

  constructor(host: QueryHost, message: JoinFragment) {
    this.queryId = message.request.queryId
    this.#host = host
    this.#message = message
    const { memory, threads } = host
    this.#queue = threads === undefined ? null : new WorkQueue(memory, message.queue, threads.threadId)
  }

  /** False when there is nothing to do now; there may be memory that the lead still reads. */
  step(): boolean {
    if (this.#over) return false
    if (this.#run === null && this.#queue?.resting === true) {
      this.#queue.awaitMerge()
      return false
    }
    try {
      this.#run ??= this.#begin()
      const outcome = this.#run?.step() ?? 'done'
      if (outcome === 'done') this.close()
      if (outcome === 'resting') this.#giveBack()
      return outcome === 'working'
    } catch {
      this.#run?.giveUp()
      this.#over = true
      return false
    }
  }

  /** Does nothing any more; what it made stays. */
  stop(): void {
    this.#run?.giveUp()
    this.#over = true
  }

  close(): void {
    this.stop()
    this.#giveBack()
  }

  #giveBack(): void {
    for (const release of this.#endings.splice(0)) release()
    this.#context?.space.freeAll()
    this.#context = null
    this.#run = null
  }

  #begin(): WorkerRun | null {
    const { node, details, request, subqueries, nowMicros } = this.#message
    const onEnd = (release: () => void): void => void this.#endings.push(release)
    const context = queryContext(this.#host, request, subqueries, nowMicros, onEnd)
    this.#context = context
    const { threads } = this.#host
    const plan = planNumbers(request.query)[node]
    const worker = plan === undefined ? undefined : buildWorker(context, plan, details, request.encoding)
    if (threads === undefined || this.#queue === null || worker === undefined) return null
    return new WorkerRun(threads, this.#queue, worker)
  }
}

// From a plan whose fragment another thread shares to the work on its chunks.

/** undefined: this thread cannot help. */
function buildWorker(
  context: ExecContext,
  plan: Plan,
  details: FragmentDetails,
  encoding: Encoding,
): ChunkWorker | undefined {
  if (details.counts === null) {
    const format = morselFormatOf(encoding, context, plan.columns)
    const encodes = format === undefined ? undefined : encodeWorker(context, plan, format, details)
    if (encodes !== undefined) return encodes
    if (plan.kind === 'sort') return sortWorker(context, plan, details)
    const groups = plan.kind === 'distinct' ? distinctGroups(plan) : plan
    return groups.kind === 'aggregate' ? aggregateWorker(context, groups, details) : undefined
  }
  if (!('input' in plan) || plan.input.kind !== 'scan') return undefined
  return planWorker(context, plan, scanShape(context, plan.input), details)
}
