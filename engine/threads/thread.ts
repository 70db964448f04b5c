// Worker threads with a worker loop: the main thread's handle, by which it posts messages to a worker, receives
// messages and learns of its end; and the worker's side, which takes its data at the start and runs its loop.
//
// Deeply nested messages need stack at both ends. If the sender has too little, `post` throws. If the receiver has too
// little, the message is lost, and the main thread is notified (`onLost`), without knowing which message it was.

import { type MessagePort, parentPort, receiveMessageOnPort } from 'node:worker_threads'
import { nonNull } from '../base/assert.js'
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

/** Sent by a worker that could not read a message. */
interface LostMessage {
  readonly kind: 'lost'
  readonly reason: string
}

interface ThreadData<Options> {
  readonly memory: WebAssembly.Memory
  readonly threadId: number
  readonly options: Options
  /** A direct port to another worker, which bypasses the main thread. */
  readonly peer: MessagePort | null
}

export interface Thread<To> {
  readonly threadId: number
  /** Throws a SqlError when the message is nested too deeply. */
  post(message: To): void
  /** Terminates the thread at once. */
  terminate(): Promise<void>
}

export interface ThreadEvents<From> {
  readonly onMessage: (message: From) => void
  /** The thread has ended: with an error, or normally after it was told to close. */
  readonly onEnd: (error: Error | null) => void
  /** A message from or to the thread was nested too deeply to be read. */
  readonly onLost: (error: Error) => void
  readonly log: Log
}

/** Starts a worker from a module in this folder. */
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

/** A worker's own view of its environment. */
export interface WorkerContext<Options, To, From> {
  readonly memory: SharedMemory
  readonly threadId: number
  readonly options: Options
  readonly post: (message: From) => void
  readonly log: Log
  /** The oldest waiting message, or undefined. */
  readonly receive: () => To | undefined
  readonly peer: MessagePort | null
}

/** The oldest message that waits at a port, or undefined. */
export function receiveFrom<T>(port: MessagePort): T | undefined {
  return (receiveMessageOnPort(port) as { message: T } | undefined)?.message
}

/** Like receiveFrom, but reports unreadable messages, which are lost, and continues with the next one. */
function receiveOrReport<T>(port: MessagePort): T | undefined {
  for (;;) {
    try {
      return receiveFrom<T>(port)
    } catch (error) {
      port.postMessage({ kind: 'lost', reason: String(error) } satisfies LostMessage)
    }
  }
}

export function workerContext<Options, To, From>(): WorkerContext<Options, To, From> {
  const port = nonNull(parentPort)
  const { memory, threadId, options, peer } = awaitData(port) as ThreadData<Options>
  return {
    memory: new SharedMemory(memory),
    threadId,
    options,
    post: (message) => postWhole(port, message),
    log: (level, logger, message) => port.postMessage({ kind: 'log', level, logger, message } satisfies LogMessage),
    receive: () => receiveOrReport<To>(port),
    peer,
  }
}

/**
 * A worker's loop: takes messages, then calls `step`, and sleeps when both are idle. Ends when `step` returns 'ended'.
 */
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
