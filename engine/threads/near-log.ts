// Where a sync of the log is done: by the log thread, so that the writer decodes on meanwhile, or here, on the writer's own
// thread, when it has nothing else to do: a client that waits for its answer is spared two hand-overs between threads, which
// take longer than the sync itself (0.15 ms on an idle disk). A disk that is slow is left to the log thread for a while.

import type { Files } from '../base/files.js'
import { syncReport } from '../wal/log-role.js'
import type { LogReport, LogRequest } from '../wal/types.js'

export interface NearLogOptions {
  readonly files: Files
  /** To the log thread. */
  readonly send: (request: LogRequest) => void
  readonly report: (report: LogReport) => void
  /** Nothing waits for the writer. */
  readonly isIdle: () => boolean
  readonly nowMs: () => number
}

const slowMs = 1
const pauseMs = 1000

export class NearLog {
  readonly #options: NearLogOptions
  #waiting: Extract<LogRequest, { kind: 'sync' }>[] = []
  /** Syncs that the log thread has not reported: they come first. */
  #sent = 0
  #reported = 0
  #pausedUntilMs = 0

  constructor(options: NearLogOptions) {
    this.#options = options
  }

  send(request: LogRequest): void {
    if (request.kind === 'sync') this.#waiting.push(request)
    else this.#options.send(request)
  }

  /** A report of the log thread has come. */
  heard(report: LogReport): void {
    if (report.kind === 'synced' || report.kind === 'syncFailed') this.#reported = report.sequence
  }

  /** The writer's step is over: what it asked for is done, or on its way. True: something was done. */
  settle(): boolean {
    const requests = this.#waiting
    const first = requests[0]
    if (first === undefined) return false
    this.#waiting = []
    const { files, send, report, isIdle, nowMs } = this.#options
    const begun = nowMs()
    if (requests.length === 1 && this.#sent === this.#reported && begun >= this.#pausedUntilMs && isIdle()) {
      this.#sent = first.sequence
      this.#reported = first.sequence
      report(syncReport(files, first))
      const now = nowMs()
      if (now - begun > slowMs) this.#pausedUntilMs = now + pauseMs
      return true
    }
    for (const request of requests) {
      this.#sent = request.sequence
      send(request)
    }
    return false
  }
}
