// A worker thread as the main thread sees it: it posts messages and wakes the thread, hears messages and its end.
// Also what every worker starts with: the data it is given and its loop.

import { MessagePort, parentPort, receiveMessageOnPort } from 'node:worker_threads'
import { assert } from '../base/assert.js'
import { collectYoung } from '../base/collect-young.js'
import type { Log, LogLevel } from '../base/log.js'
import { SharedMemory } from '../memory/shared-memory.js'
import { awaitData, startWorker } from './launch.js'
import { waitForWake, wake, wakeWord } from './wake.js'

export interface LogMessage {
  readonly kind: 'log'
  readonly level: LogLevel
  readonly logger: string
  readonly message: string
}

interface ThreadData<Options> {
  readonly memory: WebAssembly.Memory
  readonly threadId: number
  readonly options: Options
  /** A direct line to another worker, past the main thread. */
  readonly peer: MessagePort | null
}

export interface Thread<To> {
  readonly threadId: number
  post(message: To): void
  /** Ends the thread at once. */
  terminate(): Promise<void>
}

export interface ThreadEvents<From> {
  readonly onMessage: (message: From) => void
  /** The thread ended by itself: by an error, or with code 0 after it was told to. */
  readonly onEnd: (error: Error | null) => void
  readonly log: Log
}

/** Starts a worker from the module beside this one. */
export function startThread<Options, To, From>(
  memory: SharedMemory,
  threadId: number,
  module: string,
  options: Options,
  events: ThreadEvents<From>,
  peer: MessagePort | null = null,
): Thread<To> {
  const data: ThreadData<Options> = { memory: memory.memory, threadId, options, peer }
  const worker = startWorker(module, data, peer === null ? [] : [peer])
  let failure: Error | null = null
  worker.on('message', (message: From | LogMessage) => {
    if (isLogMessage(message)) events.log(message.level, message.logger, message.message)
    else events.onMessage(message)
  })
  worker.on('error', (error) => {
    failure = error instanceof Error ? error : new Error(String(error))
  })
  worker.on('exit', () => events.onEnd(failure))
  return {
    threadId,
    post: (message) => {
      worker.postMessage(message)
      wake(memory, threadId)
    },
    terminate: async () => {
      await worker.terminate()
    },
  }
}

function isLogMessage(message: unknown): message is LogMessage {
  return typeof message === 'object' && message !== null && 'kind' in message && message.kind === 'log'
}

/** What a worker is, from inside. */
export interface WorkerContext<Options, To, From> {
  readonly memory: SharedMemory
  readonly threadId: number
  readonly options: Options
  readonly post: (message: From) => void
  readonly log: Log
  /** The oldest message that waits, or undefined. */
  readonly receive: () => To | undefined
  readonly peer: MessagePort | null
}

/** The oldest message that waits at a port, or undefined. */
export function receiveFrom<T>(port: MessagePort): T | undefined {
  return (receiveMessageOnPort(port) as { message: T } | undefined)?.message
}

export function workerContext<Options, To, From>(): WorkerContext<Options, To, From> {
  assert(parentPort instanceof MessagePort, 'a worker has a parent port')
  const port = parentPort
  const { memory, threadId, options, peer } = awaitData(port) as ThreadData<Options>
  return {
    memory: new SharedMemory(memory),
    threadId,
    options,
    post: (message) => port.postMessage(message),
    log: (level, logger, message) => port.postMessage({ kind: 'log', level, logger, message } satisfies LogMessage),
    receive: () => receiveFrom<To>(port),
    peer,
  }
}

/** A thread that has waited so long rests. */
const restMs = 50

/** The loop of a worker: messages first, then work; waits when there is neither. Ends when `step` says 'ended'. */
export function runWorker<To>(
  context: Pick<WorkerContext<unknown, To, never>, 'memory' | 'threadId' | 'receive'>,
  receive: (message: To) => void,
  step: () => 'worked' | 'idle' | 'ended',
  idleMs: number | (() => number),
): void {
  const { memory, threadId } = context
  let worked = false
  for (;;) {
    const seen = wakeWord(memory, threadId)
    for (let message = context.receive(); message !== undefined; message = context.receive()) receive(message)
    const outcome = step()
    if (outcome === 'ended') return
    if (outcome !== 'idle') {
      worked = true
      continue
    }
    const waitMs = typeof idleMs === 'number' ? idleMs : idleMs()
    const mayRest = worked && waitMs >= restMs
    waitForWake(memory, threadId, seen, mayRest ? restMs : waitMs)
    if (!mayRest || wakeWord(memory, threadId) !== seen) continue
    collectYoung()
    worked = false
  }
}
