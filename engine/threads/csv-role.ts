// CSV files on a query thread: blocks in the order of their arrival, one a step.

import { errorRecord } from '../base/errors.js'
import { CsvDecoder } from '../csv/decode.js'
import type { CsvTools } from '../csv/fields.js'
import type { FromQueryHost, ToQueryHost } from './messages.js'

export type CsvMessage = Extract<ToQueryHost, { kind: 'csvOpen' | 'csvBlock' | 'csvClose' }>

export function isCsvMessage(message: ToQueryHost): message is CsvMessage {
  return message.kind === 'csvOpen' || message.kind === 'csvBlock' || message.kind === 'csvClose'
}

export class CsvRole {
  readonly #tools: CsvTools
  readonly #post: (message: FromQueryHost) => void
  readonly #decoders = new Map<number, CsvDecoder>()
  readonly #waiting: CsvMessage[] = []

  constructor(tools: CsvTools, post: (message: FromQueryHost) => void) {
    this.#tools = tools
    this.#post = post
  }

  receive(message: CsvMessage): void {
    this.#waiting.push(message)
  }

  step(): 'worked' | 'idle' {
    const message = this.#waiting.shift()
    if (message === undefined) return 'idle'
    const { csvId } = message
    try {
      this.#take(message)
    } catch (error) {
      this.#end(csvId)
      this.#post({ kind: 'csvFailed', csvId, error: errorRecord(error) })
    }
    return 'worked'
  }

  close(): void {
    for (const csvId of [...this.#decoders.keys()]) this.#end(csvId)
  }

  #take(message: CsvMessage): void {
    const { csvId } = message
    if (message.kind === 'csvOpen') this.#decoders.set(csvId, new CsvDecoder(this.#tools, message.shape))
    else if (message.kind === 'csvClose') this.#end(csvId)
    else {
      const batches = this.#decoders.get(csvId)?.decode(message.block, message.last)
      if (batches !== undefined) this.#post({ kind: 'csvBatches', csvId, batches })
    }
  }

  #end(csvId: number): void {
    this.#decoders.get(csvId)?.close()
    this.#decoders.delete(csvId)
  }
}
