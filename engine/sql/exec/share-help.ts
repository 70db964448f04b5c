// A query of another thread that this thread helps with: it plans the shared fragment once more from the same snapshot and
// takes chunks of it. It holds what it made until the lead needs it no more, and everything ends when all
// helpers are dismissed: one may be in the middle of what another has made.
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
  readonly #context: ExecContext
  readonly #endings: (() => void)[] = []
  #run: HelperRun | null = null
  #over = false

  constructor(host: QueryHost, message: HelpQuery) {
    const { request, subqueries, nowMicros } = message
    this.queryId = request.queryId
    this.#host = host
    this.#message = message
    this.#context = queryContext(host, request, subqueries, nowMicros, (release) => this.#endings.push(release))
  }

  /** False when there is nothing to do now; there may be memory that the lead still reads. */
  step(): boolean {
    if (this.#over) return false
    try {
      this.#run ??= this.#begin()
      const outcome = this.#run?.step() ?? 'done'
      if (outcome === 'done') this.close()
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
    for (const release of this.#endings.splice(0)) release()
    this.#context.space.freeAll()
  }

  #begin(): HelperRun | null {
    const { board, node, details, request } = this.#message
    const { memory, threads } = this.#host
    const plan = planNumbers(request.query)[node]
    const worker = plan === undefined ? undefined : buildHelper(this.#context, plan, details, request.encoding)
    if (threads === undefined || worker === undefined) return null
    return new HelperRun(threads, new ShareBoard(memory, board, threads.threadId), worker)
  }
}
