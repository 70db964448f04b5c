// Worker: hosts the writer role. News comes from three sides: the ingest ring, the main thread's commands and the log
// thread's reports; each side wakes this thread.

import { assert } from '../base/assert.js'
import { systemClock } from '../base/clock.js'
import { errorRecord } from '../base/errors.js'
import { nodeFiles } from '../base/files.js'
import { loadKernels } from '../kernels/load.js'
import { createAllocator } from '../memory/allocator.js'
import { chooseMerge } from '../storage/merge.js'
import type { FromWriter, ToWriter } from '../storage/messages.js'
import { WriterRole } from '../storage/writer-role.js'
import type { LogReport } from '../wal/types.js'
import type { WriterThreadOptions } from './open-engine.js'
import { receiveFrom, runWorker, workerContext } from './thread.js'
import { threadIds, wake } from './wake.js'

/** The role's timers need a step at least this often. */
const idleMs = 50

const context = workerContext<WriterThreadOptions, ToWriter, FromWriter>()
const { memory, threadId, options, peer } = context
assert(peer !== null, 'the writer has a line to the log thread')

const role = openRole()
runWorker<ToWriter>(context, (message) => role.receive(message), step, idleMs)

function openRole(): WriterRole {
  try {
    return new WriterRole({
      memory,
      allocator: createAllocator(memory, threadId),
      kernels: loadKernels(memory),
      files: nodeFiles(),
      directory: options.directory,
      clock: systemClock,
      log: context.log,
      post: context.post,
      sendLog: (request) => {
        peer?.postMessage(request)
        wake(memory, threadIds.log)
      },
      commitMode: options.commitMode,
      syncIntervalMs: options.syncIntervalMs,
      walBytesMax: options.walBytesMax,
      settings: options.writer,
      chooseMerge,
    })
  } catch (error) {
    context.post({ kind: 'fatal', error: errorRecord(error) })
    throw error
  }
}

function step(): 'worked' | 'idle' | 'ended' {
  assert(peer !== null, 'the writer has a line to the log thread')
  for (let report = receiveFrom<LogReport>(peer); report !== undefined; report = receiveFrom<LogReport>(peer))
    role.report(report)
  const outcome = role.step()
  return role.closed ? 'ended' : outcome
}
