// A worker thread as the main thread sees it: it posts messages and wakes the thread, hears messages and its end.
// Also what every worker starts with: the data it is given and its loop.
//
// A message of things below each other takes stack at both ends. One that the sender's has no room for is an error of
// the sender's (`post` throws); one that the receiver's has no room for is lost, and the main thread hears that one was
// (`onLost`), whichever way it went: it cannot be told which.

import { MessagePort, parentPort, receiveMessageOnPort } from 'node:worker_threads'
import { assert } from '../base/assert.js'
import { SqlError } from '../base/errors.js'
import type { Log, LogLevel } from '../base/log.js'
import { SharedMemory } from '../memory/shared-memory.js'
import { awaitData, startWorker } from './launch.js'
import { waitForWake, wake, wakeWord } from './wake.js'

interface LogMessage {
  readonly kind: 'log'
  readonly level: LogLevel
  readonly logger: string
  readonly message: string
}

/** What a worker says when a message to it could not be read. */
interface LostMessage {
  readonly kind: 'lost'
  readonly reason: string
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
  /** Throws a SqlError when the message is nested too deeply. */
  post(message: To): void
  /** Ends the thread at once. */
  terminate(): Promise<void>
}

export interface ThreadEvents<From> {
  readonly onMessage: (message: From) => void
  /** The thread ended by itself: by an error, or with code 0 after it was told to. */
  readonly onEnd: (error: Error | null) => void
  /** A message of the thread, or one to it, was nested too deeply to be read. */
  readonly onLost: (error: Error) => void
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
  worker.on('message', (message: From | LogMessage | LostMessage) => {
    if (isOwn(message, 'log')) events.log(message.level, message.logger, message.message)
    else if (isOwn(message, 'lost')) events.onLost(new Error(message.reason))
    else events.onMessage(message)
  })
  worker.on('messageerror', (error) => events.onLost(error))
  worker.on('error', (error) => {
    failure = error instanceof Error ? error : new Error(String(error))
  })
  worker.on('exit', () => events.onEnd(failure))
  return {
    threadId,
    post: (message) => {
      postWhole(worker, message)
      wake(memory, threadId)
    },
    terminate: async () => {
      await worker.terminate()
    },
  }
}

function isOwn<Kind extends 'log' | 'lost'>(
  message: unknown,
  kind: Kind,
): message is Extract<LogMessage | LostMessage, { kind: Kind }> {
  return typeof message === 'object' && message !== null && 'kind' in message && message.kind === kind
}

export const tooDeepText = 'the query or its result is nested too deeply to be handed to another thread'

function postWhole(port: { postMessage(message: unknown): void }, message: unknown): void {
  try {
    port.postMessage(message)
  } catch (error) {
    throw error instanceof RangeError ? new SqlError(tooDeepText, 0) : error
  }
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

/** A message that cannot be read is gone from the port: the next one is taken. */
function receiveOrTell<T>(port: MessagePort): T | undefined {
  for (;;) {
    try {
      return receiveFrom<T>(port)
    } catch (error) {
      port.postMessage({ kind: 'lost', reason: String(error) } satisfies LostMessage)
    }
  }
}

export function workerContext<Options, To, From>(): WorkerContext<Options, To, From> {
  assert(parentPort instanceof MessagePort, 'a worker has a parent port')
  const port = parentPort
  const { memory, threadId, options, peer } = awaitData(port) as ThreadData<Options>
  return {
    memory: new SharedMemory(memory),
    threadId,
    options,
    post: (message) => postWhole(port, message),
    log: (level, logger, message) => port.postMessage({ kind: 'log', level, logger, message } satisfies LogMessage),
    receive: () => receiveOrTell<To>(port),
    peer,
  }
}

/** The loop of a worker: messages first, then work; waits when there is neither. Ends when `step` says 'ended'. */
export function runWorker<To>(
  context: Pick<WorkerContext<unknown, To, never>, 'memory' | 'threadId' | 'receive'>,
  receive: (message: To) => void,
  step: () => 'worked' | 'idle' | 'ended',
  idleMs: number | (() => number),
): void {
  const { memory, threadId } = context
  for (;;) {
    const seen = wakeWord(memory, threadId)
    for (let message = context.receive(); message !== undefined; message = context.receive()) receive(message)
    const outcome = step()
    if (outcome === 'ended') return
    if (outcome === 'idle') waitForWake(memory, threadId, seen, typeof idleMs === 'number' ? idleMs : idleMs())
  }
}
