// Entry point of the log thread, a worker: it runs log-loop.ts, so that the writer can decode while the log is synced.
// It talks to the writer over a port of their own. On 'close' it ends after completing all requests.

import { nonNull } from '../base/assert.js'
import { nodeFiles } from '../base/files.js'
import { createLogLoop } from '../wal/log-loop.js'
import type { LogReport, LogRequest } from '../wal/types.js'
import { receiveFrom, runWorker, workerContext } from './thread.js'
import { threadIds, wake } from './wake.js'

export interface LogThreadMessage {
  readonly kind: 'close'
}

const idleMs = 60_000

const context = workerContext<null, LogThreadMessage, never>()
const { memory } = context
const peer = nonNull(context.peer)
let closing = false

const loop = createLogLoop({
  files: nodeFiles(),
  take: () => receiveFrom<LogRequest>(peer),
  report: (report: LogReport) => {
    peer.postMessage(report)
    wake(memory, threadIds.writer)
  },
})

runWorker<LogThreadMessage>(
  context,
  () => {
    closing = true
  },
  () => {
    const outcome = loop.step()
    return outcome === 'idle' && closing ? 'ended' : outcome
  },
  idleMs,
)
