// Entry point of the writer thread, a worker: runs the writer. Input comes from the ingest ring, from commands of the
// main thread and from reports of the log thread; each of them wakes this thread. The log thread syncs the log; if a
// single client waits for each of its commits, this thread does so itself (inline-sync.ts).

import { nonNull } from '../base/assert.js'
import { AnchoredClock, systemTime } from '../base/clock.js'
import { errorRecord } from '../base/errors.js'
import { nodeFiles } from '../base/files.js'
import { loadKernels } from '../kernels/load.js'
import { createAllocator } from '../memory/allocator.js'
import { ringUsed } from '../memory/ring.js'
import type { WriterThreadOptions } from '../session/open-engine.js'
import { ChunkCache } from '../storage/cache/chunk-cache.js'
import { chooseCompaction } from '../storage/jobs/compaction.js'
import type { FromWriter, ToWriter } from '../storage/jobs/messages.js'
import { reclaiming } from '../storage/memtable/reclaimed-memory.js'
import { createPartAccess } from '../storage/part/part-reader.js'
import { WriterLoop } from '../storage/writer-loop.js'
import { createLogLoop } from '../wal/log-loop.js'
import type { LogReport, LogRequest } from '../wal/types.js'
import { InlineSync } from './inline-sync.js'
import { receiveFrom, runWorker, workerContext } from './thread.js'
import { threadIds, wake, wakeWord } from './wake.js'

/** The writer's timers need a step at least this often, in ms. */
const idleMs = 50

const context = workerContext<WriterThreadOptions, ToWriter, FromWriter>()
const { memory, threadId, options } = context
const peer = nonNull(context.peer)

/** Decides about inline syncs, which `ownLog` performs instead of the log thread. */
const inlineSync = new InlineSync()
const ownRequests: LogRequest[] = []
const ownReports: LogReport[] = []
const ownLog = createLogLoop({
  files: nodeFiles(),
  take: () => ownRequests.shift(),
  report: (report) => ownReports.push(report),
})
/** Value of the wake word when the step began. */
let seen = 0

const allocator = createAllocator(memory, threadId)
const loop = openLoop()
runWorker<ToWriter>(context, (message) => loop.receive(message), step, idleMs)

function openLoop(): WriterLoop {
  const cache = new ChunkCache(memory, allocator, options.cacheAddress, threadId)
  const kernels = loadKernels(memory)
  const [files, { directory }] = [nodeFiles(), options]
  try {
    return new WriterLoop({
      memory,
      allocator: reclaiming(allocator, cache),
      kernels,
      files,
      directory,
      partAccess: createPartAccess({ files, directory, memory, allocator, kernels, cache }),
      clock: new AnchoredClock(systemTime, options.clockAnchor),
      log: context.log,
      post: context.post,
      sendLog,
      commitMode: options.commitMode,
      syncIntervalMs: options.syncIntervalMs,
      walBytesMax: options.walBytesMax,
      settings: options.writer,
      chooseCompaction,
    })
  } catch (error) {
    context.post({ kind: 'fatal', error: errorRecord(error) })
    throw error
  }
}

function sendLog(request: LogRequest): void {
  if (request.kind === 'sync' && inlineSync.isInline(request.sequence, isQuiet())) {
    ownRequests.push(request)
    ownLog.step()
    inlineSync.done(!isQuiet())
    return
  }
  peer?.postMessage(request)
  wake(memory, threadIds.log)
}

/** Whether no input has arrived since the step began. */
function isQuiet(): boolean {
  return wakeWord(memory, threadId) === seen && ringUsed(memory) === 0
}

function step(): 'worked' | 'idle' | 'ended' {
  seen = wakeWord(memory, threadId)
  for (let report = receiveFrom<LogReport>(peer); report !== undefined; report = receiveFrom<LogReport>(peer)) {
    if (report.kind === 'synced' || report.kind === 'syncFailed') inlineSync.reported(report.sequence)
    loop.report(report)
  }
  for (const report of ownReports.splice(0)) loop.report(report)
  const outcome = loop.step()
  return loop.closed ? 'ended' : outcome
}
