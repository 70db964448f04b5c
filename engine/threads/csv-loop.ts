// Decodes CSV files on a query thread. It takes the messages about all open files, such as a block to decode, in the
// order of their arrival, one in each step of the thread's loop, and posts the results to the main thread.

import { errorRecord } from '../base/errors.js'
import { CsvDecoder } from '../csv/decode.js'
import type { CsvTools } from '../csv/fields.js'
import { CsvStager } from '../csv/stage.js'
import type { FromQueryHost, ToQueryHost } from './messages.js'

const kinds = ['csvOpen', 'csvBlock', 'csvFill', 'csvPacked', 'csvFlushed', 'csvFree', 'csvClose'] as const

export type CsvMessage = Extract<ToQueryHost, { kind: (typeof kinds)[number] }>

export function isCsvMessage(message: ToQueryHost): message is CsvMessage {
  return (kinds as readonly string[]).includes(message.kind)
}

export class CsvLoop {
  readonly #tools: CsvTools
  readonly #post: (message: FromQueryHost) => void
  readonly #decoders = new Map<number, CsvDecoder>()
  readonly #stagers = new Map<number, CsvStager>()
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
      this.#fail(csvId)
      this.#post({ kind: 'csvFailed', csvId, error: errorRecord(error) })
    }
    return 'worked'
  }

  close(): void {
    for (const csvId of [...this.#decoders.keys(), ...this.#stagers.keys()]) this.#end(csvId)
  }

  #take(message: CsvMessage): void {
    const { csvId } = message
    switch (message.kind) {
      case 'csvOpen':
        this.#open(message)
        return
      case 'csvBlock': {
        const batches = this.#decoders.get(csvId)?.decode(message.block, message.last)
        if (batches !== undefined) this.#post({ kind: 'csvBatches', csvId, batches })
        return
      }
      case 'csvFill': {
        const { address, bytes, utf8, last } = message
        this.#stagers.get(csvId)?.take(address, bytes, utf8, last)
        return
      }
      case 'csvPacked':
        this.#stagers.get(csvId)?.takePacked(message.address, message.rows)
        return
      case 'csvFlushed':
        this.#stagers.get(csvId)?.flushed()
        return
      case 'csvFree':
        for (const address of message.allocations) this.#tools.allocator.free(address)
        return
      case 'csvClose':
        this.#end(csvId)
        this.#post({ kind: 'csvClosed', csvId })
    }
  }

  #open({ csvId, shape, stage }: Extract<CsvMessage, { kind: 'csvOpen' }>): void {
    if (stage === null) {
      this.#decoders.set(csvId, new CsvDecoder(this.#tools, shape))
      return
    }
    const stager = new CsvStager(this.#tools, shape, stage, {
      borrowedBlocks: (address) => this.#post({ kind: 'csvLent', csvId, address }),
      taken: (rows, rejects) => this.#post({ kind: 'csvTaken', csvId, rows, rejects }),
      closed: (memtable) => this.#post({ kind: 'csvMemtable', csvId, memtable }),
    })
    this.#stagers.set(csvId, stager)
    stager.begin()
  }

  /** Ends decoding. Blocks that the main thread fills stay allocated until it closes the file. */
  #fail(csvId: number): void {
    this.#stagers.get(csvId)?.fail()
    this.#decoders.get(csvId)?.close()
    this.#decoders.delete(csvId)
  }

  #end(csvId: number): void {
    this.#decoders.get(csvId)?.close()
    this.#decoders.delete(csvId)
    this.#stagers.get(csvId)?.close()
    this.#stagers.delete(csvId)
  }
}
