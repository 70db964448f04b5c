// Entry point of a query thread, a worker: runs queries, jobs of the writer and CSV decoding in turns. A job works in
// slices of a few milliseconds, so a query never waits for it for long.

import { AnchoredClock, systemTime } from '../base/clock.js'
import { CancelledError } from '../base/errors.js'
import { nodeFiles } from '../base/files.js'
import { QueryLoop } from '../exec/run/query-loop.js'
import { loadKernels } from '../kernels/load.js'
import { createAllocator } from '../memory/allocator.js'
import { isCancelFlagSet } from '../memory/cancel-flags.js'
import { Ledger, recorded } from '../memory/ledger.js'
import type { QueryThreadOptions } from '../session/open-engine.js'
import { ChunkCache } from '../storage/cache/chunk-cache.js'
import { pageCodecDefault } from '../storage/jobs/part-job.js'
import { reclaiming } from '../storage/memtable/reclaimed-memory.js'
import { createPartAccess } from '../storage/part/part-reader.js'
import { RemoteBlocks } from '../storage/part/remote-blocks.js'
import { temporaryFiles } from '../storage/part/temporary-files.js'
import { noteActivity } from './activity.js'
import { CsvLoop, isCsvMessage } from './csv-loop.js'
import { heapGuard } from './heap-guard.js'
import { JobRunner } from './job-runner.js'
import type { FromQueryHost, ToQueryHost } from './messages.js'
import { runWorker, workerContext } from './thread.js'
import { ReceivedVersions, type SentToQueryHost } from './version-delta.js'
import { wake } from './wake.js'

const idleMs = 1000
/** Idle time-out while a query waits for morsels that other threads have taken: it takes them over after some time. */
const waitingMs = 5
/** Idle time-out while a reader may have stopped reading. */
const watchingMs = 100
/** Idle time-out while a job waits for memory. */
const starvedMs = 2
/** Work in ms after which other threads are invited to a fragment, which costs about as much. */
const inviteAfterMs = 0.3
/** Minimum remaining work in ms: with less, the coordinator is done about when other threads join. */
const inviteForMs = 1

const context = workerContext<QueryThreadOptions, SentToQueryHost, FromQueryHost>()
const { memory, threadId, options, post } = context
const plain = createAllocator(memory, threadId)
const allocator = options.ledger === 0 ? plain : recorded(plain, new Ledger(memory, options.ledger))
const clock = new AnchoredClock(systemTime, options.clockAnchor)
const kernels = loadKernels(memory)
const files = nodeFiles()
const cache = new ChunkCache(memory, plain, options.cacheAddress, threadId)
const remote = new RemoteBlocks({ files, directory: options.blocks, post, nowMs: () => clock.monotonicMs() })
const partAccess = createPartAccess({
  files,
  directory: options.directory,
  memory,
  allocator: plain,
  kernels,
  cache,
  remote,
})
const queries = new QueryLoop({
  memory,
  allocator,
  kernels,
  partAccess,
  clock,
  post,
  working: noteActivity(memory, threadId),
  check: (queryId) => {
    if (isCancelFlagSet(memory, queryId)) throw new CancelledError()
  },
  ...(options.temporary === undefined
    ? {}
    : { temporary: temporaryFiles({ files, directory: options.temporary, memory, threadId }) }),
  spillBytesMax: options.spillBytesMax,
  heapState: heapGuard(() => clock.monotonicMs()),
  threads: {
    threadId,
    workers: options.queryThreads - 1,
    inviteAfterMs,
    inviteForMs,
    wake: (other) => wake(memory, other),
  },
})
const tools = {
  files,
  directory: options.directory,
  memory,
  allocator,
  kernels,
  codec: pageCodecDefault,
  parts: partAccess,
}
const jobs = new JobRunner(tools, post)
const csv = new CsvLoop({ memory, allocator: reclaiming(plain, cache), kernels }, post)
const versions = new ReceivedVersions()
let closing = false

runWorker<SentToQueryHost>(context, (message) => receive(versions.whole(message)), step, untilNextMs)

function untilNextMs(): number {
  if (jobs.starved) return starvedMs
  if (queries.waiting) return waitingMs
  return queries.watching ? watchingMs : idleMs
}

function receive(message: ToQueryHost): void {
  if (message.kind === 'close') closing = true
  else if (isCsvMessage(message)) csv.receive(message)
  else if (message.kind === 'fetched') remote.fetched(message.requestId, message.error)
  else if (message.kind === 'job') jobs.add(message.jobId, message.job)
  else queries.receive(message)
}

function step(): 'worked' | 'idle' | 'ended' {
  if (closing) {
    csv.close()
    queries.close()
    return 'ended'
  }
  const outcome = queries.step()
  const decoded = csv.step()
  if (jobs.step() === 'worked' || decoded === 'worked' || outcome === 'worked') return 'worked'
  partAccess.goIdle()
  return 'idle'
}
