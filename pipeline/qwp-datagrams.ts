// Stores QWP messages (columnar protocol) that arrived as UDP datagrams. Their senders get no response, so many
// messages are committed together, with one sync of the log. If a commit is rejected because of its messages, each half
// of them is committed again, and so on, until the bad message is alone. A bad message therefore loses no rows of
// others.
//
// Messages wait in memory while a commit is in progress, and while the server refuses writes. A message that exceeds
// the limits of this memory is dropped.

import { setTimeout as sleep } from 'node:timers/promises'
import { errorFromRecord, NetworkError, ResourceError, RowError } from '../engine/base/errors.js'
import type { Engine, Receipt } from '../engine/engine.js'

export interface QwpDatagramOptions {
  readonly engine: Pick<Engine, 'lines' | 'metrics' | 'forgetConnection'>
  readonly connectionId: number
  /** How long a message waits for others before it is committed. */
  readonly commitMs: number
  /** Messages that are committed together at most. */
  readonly uncommittedMax: number
  /** Messages that may wait, and their bytes. */
  readonly waitingMax: number
  readonly waitingBytesMax: number
  readonly stored: (receipt: Receipt, messages: number) => void
  readonly rejected: (error: Error, messages: number) => void
}

/** Messages of this size are committed before their time. */
const commitBytesMax = 4 * 1024 * 1024
/** How often refused messages are tried again. */
const tryAgainMs = 100

export class QwpDatagrams {
  readonly #options: QwpDatagramOptions
  #collected: Uint8Array[] = []
  #collectedBytes = 0
  #waiting = 0
  #waitingBytes = 0
  #timer: NodeJS.Timeout | undefined
  /** Resolves when earlier commits have ended. */
  #done: Promise<void> = Promise.resolve()
  #closed = false

  constructor(options: QwpDatagramOptions) {
    this.#options = options
  }

  /** Takes the message; false: there is no room, and it is dropped. */
  take(message: Uint8Array): boolean {
    const { waitingMax, waitingBytesMax, uncommittedMax, commitMs } = this.#options
    if (this.#waiting >= waitingMax || this.#waitingBytes + message.length > waitingBytesMax) return false
    this.#waiting++
    this.#waitingBytes += message.length
    this.#collected.push(message)
    this.#collectedBytes += message.length
    // Others can be collected while half of the room is committed.
    const commitCount = Math.max(1, Math.min(uncommittedMax, Math.floor(waitingMax / 2)))
    const commitBytes = Math.min(commitBytesMax, waitingBytesMax / 2)
    if (this.#collected.length >= commitCount || this.#collectedBytes >= commitBytes) this.#commit()
    else this.#timer ??= setTimeout(() => this.#commit(), commitMs)
    return true
  }

  /** Commits what has been taken. While writes are refused, it is dropped. */
  async close(): Promise<void> {
    this.#closed = true
    this.#commit()
    await this.#done
    this.#options.engine.forgetConnection(this.#options.connectionId)
  }

  #commit(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const messages = this.#collected
    const bytes = this.#collectedBytes
    if (messages.length === 0) return
    this.#collected = []
    this.#collectedBytes = 0
    this.#done = this.#done
      .then(() => this.#store(messages))
      .finally(() => {
        this.#waiting -= messages.length
        this.#waitingBytes -= bytes
      })
  }

  /** Never rejects. */
  async #store(messages: readonly Uint8Array[]): Promise<void> {
    const outcome = await this.#outcome(messages)
    if (!(outcome instanceof Error)) {
      this.#options.stored(outcome, messages.length)
      return
    }
    if (messages.length === 1 || !isOfMessages(outcome)) {
      this.#options.rejected(outcome, messages.length)
      return
    }
    const middle = messages.length >>> 1
    await this.#store(messages.slice(0, middle))
    await this.#store(messages.slice(middle))
  }

  /** Waits while writes are refused. */
  async #outcome(messages: readonly Uint8Array[]): Promise<Receipt | Error> {
    const { engine, connectionId } = this.#options
    for (;;) {
      try {
        const ticket = engine.lines({
          ...{ format: 'qwp', blocks: messages, precision: 'n', atomic: true, connectionId },
          ...{ skipBadLines: true, partial: true },
        })
        ticket.receipt.catch(() => {})
        await ticket.taken
        const receipt = await ticket.receipt
        const error = receipt.error === null ? null : errorFromRecord(receipt.error)
        if (error === null) return receipt
        if (!this.#isOfTheMoment(error)) return error
      } catch (error) {
        if (!(error instanceof ResourceError) || this.#closed)
          return error instanceof Error ? error : new Error(String(error))
      }
      if (this.#closed) return new ResourceError('the server shuts down')
      await sleep(tryAgainMs)
    }
  }

  #isOfTheMoment(error: Error): boolean {
    return error instanceof ResourceError && this.#options.engine.metrics().writesRefused !== null
  }
}

/** Whether fewer messages may be stored. */
function isOfMessages(error: Error): boolean {
  return error instanceof NetworkError || error instanceof RowError || error instanceof ResourceError
}
