// Stage: passes QWP messages to the engine and reports for each whether its rows were stored; the last stage of
// ingestion over WebSocket. Messages with the flag "deferred" are held until a message without the flag arrives.
// Together they form a group, which the engine stores as one request.
//
//   in     Buffer objects, one message each
//   out    -
//   state  the messages of an incomplete group; messages that the engine has not confirmed yet
//   owner  a message belongs to this stage until the engine has copied it; those of a group are copies
//   errors HoldExpired when a message has waited too long for the server to accept writes, or the server began to
//          refuse them after it got the message: the client keeps the unacknowledged messages and sends them again
//
// Outcomes are reported in the order of the messages, which are counted from 0. The acceptance of a group is reported
// with its last message; for a rejected group, every message is rejected.
//
// Backpressure: `write` calls back when the engine has room for the message, and waits while the server refuses writes.
// `final` waits for the confirmations; an incomplete group is discarded.

import { Writable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { errorFromRecord, NetworkError, ResourceError } from '../engine/base/errors.js'
import { deferral, type Engine, type Receipt } from '../engine/engine.js'
import type { ByteBudget } from './byte-budget.js'

export interface QwpSinkOptions {
  readonly engine: Pick<Engine, 'lines' | 'metrics' | 'forgetConnection'>
  readonly connectionId: number
  /** What a value that does not fit its column means for its message. */
  readonly badValue: 'reject' | 'skip'
  /** How long a message waits while writes are refused. */
  readonly holdMs: () => number
  /** Memory for groups, which all connections share. */
  readonly groups: ByteBudget
  readonly nowMs: () => number
  readonly accepted: (sequence: number, receipt: Receipt) => void
  readonly rejected: (sequence: number, error: Error) => void
}

/** Writes are refused, and the client waits long enough. */
export class HoldExpired extends Error {
  constructor(reason: string) {
    super(`writes are refused: ${reason}`)
    this.name = 'HoldExpired'
  }
}

/** How often a held message looks whether writes are accepted again. */
const askAgainMs = 100

interface Request {
  readonly first: number
  readonly last: number
  outcome: Receipt | Error | null
}

/** Messages that wait for their last one. */
interface Group {
  readonly first: number
  readonly messages: Buffer[]
  bytes: number
  /** Why the group is rejected, whatever else comes of it. */
  refusal: Error | null
}

class QwpSink {
  readonly #options: QwpSinkOptions
  readonly #due: Request[] = []
  #group: Group | null = null
  #sequence = 0
  /** Requests that the engine has, or is about to get. */
  #requests = 0
  #finish: (() => void) | null = null
  readonly fail: (error: Error) => void
  #closed = false

  constructor(options: QwpSinkOptions, fail: (error: Error) => void) {
    this.#options = options
    this.fail = fail
  }

  async write(message: Buffer): Promise<void> {
    const sequence = this.#sequence++
    const waits = deferral(message)
    if (waits === 'rows' || (waits === 'symbols' && this.#group !== null)) {
      this.#hold(sequence, message)
      return
    }
    const group = this.#group
    this.#group = null
    if (group === null) {
      await this.#send(sequence, sequence, [message])
      return
    }
    this.#options.groups.release(group.bytes)
    if (group.refusal === null) await this.#send(group.first, sequence, [...group.messages, message])
    else this.#settle({ first: group.first, last: sequence, outcome: group.refusal })
  }

  #hold(sequence: number, message: Buffer): void {
    const { groups } = this.#options
    this.#group ??= { first: sequence, messages: [], bytes: 0, refusal: null }
    const group = this.#group
    if (group.refusal !== null) return
    try {
      groups.grow(message.length)
      group.bytes += message.length
      // A message may be a part of a larger buffer, which would be kept with it.
      group.messages.push(Buffer.from(message))
    } catch (error) {
      if (!(error instanceof ResourceError)) throw error
      const why = 'messages that wait for their commit take too much memory [setting=qwp.groups.bytes.max]'
      group.refusal = new NetworkError(why)
      group.messages.length = 0
      groups.release(group.bytes)
      group.bytes = 0
    }
  }

  async #send(first: number, last: number, blocks: readonly Buffer[]): Promise<void> {
    const { engine, connectionId, badValue, nowMs, holdMs } = this.#options
    const request: Request = { first, last, outcome: null }
    const begunMs = nowMs()
    for (;;) {
      const ticket = engine.lines({
        ...{ format: 'qwp', blocks, precision: 'n', atomic: true, connectionId },
        ...{ skipBadLines: badValue === 'skip', partial: badValue === 'skip' },
      })
      this.#requests++
      ticket.receipt.catch(() => {}).then(() => this.#ended())
      try {
        await ticket.taken
        this.#due.push(request)
        ticket.receipt.then(
          (receipt) => this.#received(request, receipt),
          (error: Error) => this.fail(error),
        )
        return
      } catch (error) {
        if (!(error instanceof ResourceError)) throw error
        if (this.#closed || nowMs() - begunMs >= holdMs()) throw new HoldExpired(error.message)
        await sleep(askAgainMs)
        // Nothing frees what the engine would keep for a connection that has ended meanwhile.
        if (this.#closed) throw new HoldExpired(error.message)
      }
    }
  }

  #received(request: Request, receipt: Receipt): void {
    const error = receipt.error === null ? null : errorFromRecord(receipt.error)
    // The request came while the server began to refuse writes: the client sends it again.
    const refused = error instanceof ResourceError ? this.#options.engine.metrics().writesRefused : null
    if (refused !== null) {
      this.fail(new HoldExpired(refused))
      return
    }
    request.outcome = error ?? receipt
    this.#report()
  }

  #settle(request: Request): void {
    this.#due.push(request)
    this.#report()
  }

  /** Reports outcomes up to the first request whose receipt is due. */
  #report(): void {
    for (let request = this.#due[0]; request !== undefined && request.outcome !== null; request = this.#due[0]) {
      this.#due.shift()
      const { first, last, outcome } = request
      if (!(outcome instanceof Error)) this.#options.accepted(last, outcome)
      else for (let sequence = first; sequence <= last; sequence++) this.#options.rejected(sequence, outcome)
    }
    if (this.#due.length === 0) this.#finish?.()
  }

  final(callback: () => void): void {
    if (this.#due.length === 0) callback()
    else this.#finish = callback
  }

  close(): void {
    this.#closed = true
    if (this.#group !== null) this.#options.groups.release(this.#group.bytes)
    this.#group = null
    if (this.#requests === 0) this.#forget()
  }

  /** The engine has no part of a request any more. */
  #ended(): void {
    this.#requests--
    if (this.#closed && this.#requests === 0) this.#forget()
  }

  /** Frees the dictionary. Called behind all requests: a later one would begin another that nothing frees. */
  #forget(): void {
    this.#options.engine.forgetConnection(this.#options.connectionId)
  }
}

export function qwpSink(options: QwpSinkOptions): Writable {
  const stage = new QwpSink(options, (error) => sink.destroy(error))
  const sink: Writable = new Writable({
    objectMode: true,
    highWaterMark: 1,
    write(message: Buffer, _encoding, callback) {
      stage.write(message).then(() => callback(), callback)
    },
    final: (callback) => stage.final(callback),
    destroy(error, callback) {
      stage.close()
      callback(error)
    },
  })
  return sink
}
