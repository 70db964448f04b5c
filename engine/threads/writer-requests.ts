// Sends the requests of the main thread to the writer, and keeps each by its id until the writer responds.

import { type Deferred, deferred } from '../base/deferred.js'
import { errorFromRecord, ResourceError } from '../base/errors.js'
import type { PinnedSnapshots } from '../session/catalog-view.js'
import type { Receipt, RowsInput, SchemaChange, TableReplacement, ToWriter } from '../storage/jobs/messages.js'
import { BlockPool, blockBytes, writeBlock } from '../storage/memtable/packed-block.js'

export class WriterRequests {
  readonly #post: (message: ToWriter) => void
  readonly #waiting = new Map<number, Deferred<Receipt>>()
  readonly #pool = new BlockPool()
  #nextId = 1

  constructor(post: (message: ToWriter) => void) {
    this.#post = post
  }

  nextId(): number {
    const requestId = this.#nextId
    this.#nextId = requestId === 0xffff_ffff ? 1 : requestId + 1
    return requestId
  }

  expect(requestId: number): Promise<Receipt> {
    const waiting = deferred<Receipt>()
    this.#waiting.set(requestId, waiting)
    return waiting.promise
  }

  /** Sends a command; throws the error of its receipt. */
  async send(message: (requestId: number) => ToWriter): Promise<Receipt> {
    const requestId = this.nextId()
    const reply = this.expect(requestId)
    this.#post(message(requestId))
    const receipt = await reply
    if (receipt.error !== null) throw errorFromRecord(receipt.error)
    return receipt
  }

  /** Resolves when evicted symbols of the held tables are loaded; null if all are in memory. */
  symbolsOf(held: PinnedSnapshots): Promise<void> | null {
    if (held.evicted.length === 0) return null
    const requested = held.evicted.map(async (symbols) => {
      await this.send((requestId) => ({ kind: 'holdSymbols', requestId, ...symbols }))
      held.add(symbols)
    })
    return Promise.all(requested).then(() => {})
  }

  change(change: SchemaChange): Promise<Receipt> {
    return this.send((requestId) => ({ kind: 'change', requestId, change }))
  }

  /** Sends rows for several tables as one transaction. The rows are copied before the call returns. */
  async sendRows(inputs: readonly RowsInput[]): Promise<Receipt> {
    return this.sendWith(inputs, (requestId, tables) => ({ kind: 'rows', requestId, tables }))
  }

  /** Sends a message with rows, which are copied before the call returns. */
  async sendWith(
    inputs: readonly RowsInput[],
    message: (requestId: number, tables: readonly RowsInput[]) => ToWriter,
  ): Promise<Receipt> {
    const tables = inputs.map((input) => this.#packedInput(input))
    try {
      return await this.send((requestId) => message(requestId, tables))
    } finally {
      for (const { block } of tables) if (block !== undefined) this.#pool.give(block)
    }
  }

  replace(tables: readonly TableReplacement[]): Promise<Receipt> {
    const inputs = tables.map(({ input }) => input)
    return this.sendWith(inputs, (requestId, sent) => ({
      ...{ kind: 'replace', requestId },
      tables: tables.map((table, index) => ({ ...table, input: sent[index] ?? table.input })),
    }))
  }

  #packedInput({ packed, ...input }: RowsInput): RowsInput {
    if (packed === undefined) return input
    const block = this.#pool.take(blockBytes(packed))
    writeBlock(block, packed)
    return { ...input, block }
  }

  answer(receipt: Receipt): void {
    const waiting = this.#waiting.get(receipt.requestId)
    this.#waiting.delete(receipt.requestId)
    waiting?.resolve(receipt)
  }

  /** The writer has ended: rejects all pending requests. */
  writerEnded(): void {
    for (const waiting of this.#waiting.values()) waiting.reject(new ResourceError('the writer has ended'))
    this.#waiting.clear()
  }
}
