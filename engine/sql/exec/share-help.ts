// A query of another thread that this thread helps with: it plans the shared fragment once more from the same snapshot and
// takes chunks of it. It holds what it made until the lead needs it no more, and everything ends when all
// helpers are dismissed: one may be in the middle of what another has made. While the reader of the query has stopped it holds
// nothing, and begins anew when the lead goes on.
//
// Errors are the lead's to report: the chunk under way goes back, and whoever does it next meets the same error.

import { buildHelper } from './build-helper.js'
import type { ExecContext } from './context.js'
import type { HelpQuery } from './messages.js'
import { type QueryHost, queryContext } from './query-host.js'
import { HelperRun, planNumbers } from './share.js'
import { ShareBoard } from './share-board.js'

export class HelpTask {
  readonly queryId: number
  readonly #host: QueryHost
  readonly #message: HelpQuery
  #context: ExecContext | null = null
  readonly #endings: (() => void)[] = []
  #run: HelperRun | null = null
  #over = false
  readonly #board: ShareBoard | null

  constructor(host: QueryHost, message: HelpQuery) {
    this.queryId = message.request.queryId
    this.#host = host
    this.#message = message
    const { memory, threads } = host
    this.#board = threads === undefined ? null : new ShareBoard(memory, message.board, threads.threadId)
  }

  /** False when there is nothing to do now; there may be memory that the lead still reads. */
  step(): boolean {
    if (this.#over) return false
    if (this.#run === null && this.#board?.resting === true) {
      this.#board.awaitMerge()
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

  #begin(): HelperRun | null {
    const { node, details, request, subqueries, nowMicros } = this.#message
    const onEnd = (release: () => void): void => void this.#endings.push(release)
    const context = queryContext(this.#host, request, subqueries, nowMicros, onEnd)
    this.#context = context
    const { threads } = this.#host
    const plan = planNumbers(request.query)[node]
    const worker = plan === undefined ? undefined : buildHelper(context, plan, details, request.encoding)
    if (threads === undefined || this.#board === null || worker === undefined) return null
    return new HelperRun(threads, this.#board, worker)
  }
}
