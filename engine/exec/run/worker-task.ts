// WorkerTask: the work that a thread does for a query of another thread. It builds the operators of the plan's parallel
// fragment for itself, from the same snapshot, and processes chunks (ranges) of the input. It keeps its results until
// the coordinator has merged them, and frees everything when all workers of the query have been dismissed, because
// another worker may still read its results. While the client of the query does not read, the task holds no memory; it
// starts again when the coordinator continues.
//
// The task reports no errors. If a chunk fails, the task gives it up, and another thread takes it and meets the same
// error; if no other worker takes it, the coordinator (the thread that runs the query) does, and reports the error.

import type { Plan } from '../../sql/plan/plan.js'
import type { ExecContext } from '../batch/context.js'
import { morselFormatOf } from '../encode/create-encoder.js'
import { encodeWorker } from '../encode/parallel-encode.js'
import { aggregateWorker, distinctGroups } from '../fragment/aggregate-parallel.js'
import { planWorker } from '../fragment/fragment-operators.js'
import { sortWorker } from '../fragment/sort-parallel.js'
import { type ChunkWorker, type FragmentDetails, planNumbers } from '../parallel/coordinator.js'
import { WorkQueue } from '../parallel/work-queue.js'
import { WorkerRun } from '../parallel/worker-run.js'
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

  /** Whether it may hold memory. */
  get begun(): boolean {
    return this.#run !== null
  }

  /** False when there is nothing to do at present; the coordinator may still read results. */
  step(): boolean {
    if (this.#over) {
      this.#run?.freeMerged()
      return false
    }
    if (this.#run === null && this.#queue?.idle === true) {
      this.#queue.awaitMerge()
      return false
    }
    try {
      this.#run ??= this.#begin()
      const outcome = this.#run?.step() ?? 'done'
      if (outcome === 'done') this.close()
      if (outcome === 'idle') this.#giveBack()
      return outcome === 'working'
    } catch {
      this.#run?.fail()
      this.#over = true
      return false
    }
  }

  /** Stops working; the results stay. */
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
    this.#context?.arena.freeAll()
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

// Builds a worker's work on the chunks of a shared fragment from its plan.

/** undefined when this thread cannot take part. */
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
