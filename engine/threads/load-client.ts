// The main thread's side of a bulk import of a CSV or Parquet file, which bypasses the log: CSV is decoded on a query
// thread, and the rows are written directly to Parquet files (parts). It fills blocks of shared memory that the decoder
// provides (or sends rows of a Parquet file), has other query threads write the rows as parts, one memtable at a time,
// and finally has the writer add the parts to the table.
//
//   write   bytes ──> shared block ──> decoder (a query thread) ──> memtable ──> job (another thread) ──> parts
//   commit  the writer adds all parts to the table in one manifest record; before that the table contains none of them.
//           A transaction with several loads hands over the parts of all, and the writer adds them in one record
//
// Backpressure: the decoder provides no more blocks while memtables wait to be written.

import type { CsvLoad, LoadOptions } from '../api/ingest.js'
import { assert } from '../base/assert.js'
import { type Deferred, deferred } from '../base/deferred.js'
import { type ErrorRecord, errorFromRecord } from '../base/errors.js'
import type { CsvReject, StagedMemtable } from '../csv/shape.js'
import { stageHeadroomBytes } from '../csv/stage.js'
import { Utf8Check } from '../csv/utf8.js'
import type { SharedMemory } from '../memory/shared-memory.js'
import type { CatalogView, PinnedSnapshots } from '../session/catalog-view.js'
import type { JobResult, LoadedParts, PackedRows, Receipt, StageWork, ToWriter } from '../storage/jobs/messages.js'
import type { PartDescriptor } from '../storage/schema/schema.js'
import type { FromQueryHost, ToQueryHost } from './messages.js'
import type { Thread } from './thread.js'

export interface LoadServices {
  readonly memory: SharedMemory
  readonly thread: Thread<ToQueryHost>
  readonly csvId: number
  /** Writes a memtable on a query thread, if possible not the decoder's. */
  readonly runStage: (work: StageWork, decoder: Thread<ToQueryHost>) => Promise<JobResult>
  /** Sends a request to the writer; rejects with the error of its receipt. */
  readonly request: (message: (requestId: number) => ToWriter) => Promise<Receipt>
  readonly postWriter: (message: ToWriter) => void
  /** Called when the load is over, so that its resources can be freed. */
  readonly ended: () => void
}

interface LoadContext extends Pick<LoadServices, 'request' | 'postWriter'> {
  readonly view: Pick<CatalogView, 'hold'>
  readonly symbolsOf: (held: PinnedSnapshots) => Promise<void> | null
  readonly queries: {
    load(services: Pick<LoadServices, 'request' | 'postWriter' | 'ended'>, options: LoadOptions): CsvLoad
  }
}

/** Opens a load. Its tables stay pinned until it has ended, because its jobs read their symbols. */
export function openLoad(context: LoadContext, options: LoadOptions): CsvLoad {
  const { view, queries, postWriter } = context
  const held = view.hold([options.tableId])
  const ready = context.symbolsOf(held)
  // The error is reported to the first request.
  ready?.catch(() => {})
  const request: LoadServices['request'] = async (message) => {
    await ready
    return context.request(message)
  }
  return queries.load({ request, postWriter, ended: () => held.release() }, options)
}

export type LoadMessage = Extract<FromQueryHost, { kind: 'csvLent' | 'csvTaken' | 'csvMemtable' | 'csvClosed' }>

export class Load implements CsvLoad {
  readonly #services: LoadServices
  readonly #options: LoadOptions
  readonly #utf8 = new Utf8Check()
  readonly #borrowedBlocks: number[] = []
  #filling: { readonly address: number; bytes: number } | null = null
  #news: Deferred<void> | null = null
  #failure: Error | null = null
  /** Memtables are prepared one after the other, so that their parts are numbered in file order. */
  #preparing: Promise<void> = Promise.resolve()
  readonly #writing: Promise<void>[] = []
  readonly #parts: (readonly PartDescriptor[])[] = []
  /** By column id: maps the file's symbol numbers to ids of the table. */
  readonly #symbolIds = new Map<number, Int32Array>()
  readonly #decoded = deferred<void>()
  /** Resolves after the decoder's last message. */
  readonly #over = deferred<void>()
  /** All rows are in parts: what happens to the decoder no longer matters. */
  #isWhole = false
  #isHandedOver = false
  #closed = false

  constructor(services: LoadServices, options: LoadOptions) {
    this.#services = services
    this.#options = options
    this.#decoded.promise.catch(() => {})
    const { shape, columnIds, blockBytes } = options
    const { thread, csvId } = services
    thread.post({ kind: 'csvOpen', csvId, shape, stage: { columnIds, blockBytes } })
  }

  async write(chunk: Uint8Array): Promise<void> {
    const { blockBytes } = this.#options
    this.#utf8.add(chunk, false)
    for (let from = 0; from < chunk.length; ) {
      const filling = this.#filling ?? (await this.#nextBlock())
      const part = chunk.subarray(from, from + blockBytes - filling.bytes)
      this.#services.memory.put(part, filling.address + stageHeadroomBytes + filling.bytes)
      filling.bytes += part.length
      from += part.length
      if (filling.bytes === blockBytes) this.#post(filling, false)
    }
  }

  async rows(rows: PackedRows): Promise<void> {
    const { address, bytes } = this.#filling ?? (await this.#nextBlock())
    assert(bytes === 0, 'M1: packed rows are not mixed with bytes')
    this.#filling = null
    const { thread, csvId } = this.#services
    thread.post({ kind: 'csvPacked', csvId, address, rows })
  }

  async end(): Promise<void> {
    this.#utf8.add(new Uint8Array(0), true)
    this.#post(this.#filling ?? (await this.#nextBlock()), true)
    await this.#decoded.promise
    await this.#preparing
    await Promise.all(this.#writing)
    if (this.#failure !== null) throw this.#failure
    this.#isWhole = true
  }

  async commit(): Promise<Receipt> {
    return this.#services.request((requestId) => ({ kind: 'registerParts', requestId, loads: [this.handOver()] }))
  }

  handOver(): LoadedParts {
    assert(this.#isWhole, 'R4: a load is committed when all of its rows are in parts')
    assert(!this.#isHandedOver, 'S2: parts are registered once')
    const { tableId, columnIds } = this.#options
    this.#isHandedOver = true
    return { tableId, columnIds, parts: this.#parts.flat() }
  }

  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    const { thread, csvId, postWriter, ended } = this.#services
    this.fail(new Error('the load was closed'))
    thread.post({ kind: 'csvClose', csvId })
    await this.#over.promise
    await this.#preparing
    await Promise.allSettled(this.#writing)
    const parts = this.#parts.flat()
    if (!this.#isHandedOver && parts.length > 0) postWriter({ kind: 'discard', parts })
    ended()
  }

  /** The decoder's thread has ended. */
  threadEnded(error: ErrorRecord): void {
    this.fail(error)
    this.#over.resolve()
  }

  /** Stops decoding and writing with an error. */
  fail(error: Error | ErrorRecord): void {
    this.#failure ??= error instanceof Error ? error : errorFromRecord(error)
    this.#decoded.reject(this.#failure)
    this.#news?.resolve()
  }

  receive(message: LoadMessage): void {
    switch (message.kind) {
      case 'csvLent':
        this.#borrowedBlocks.push(message.address)
        this.#news?.resolve()
        return
      case 'csvClosed':
        this.#over.resolve()
        return
      case 'csvTaken':
        this.#take(message.rows, message.rejects)
        return
      case 'csvMemtable':
        this.#preparing = this.#preparing.then(() => this.#prepare(message.memtable))
        if (message.memtable.last) this.#decoded.resolve()
    }
  }

  #take(rows: number, rejects: readonly CsvReject[]): void {
    if (this.#failure !== null) return
    try {
      this.#options.onDecoded(rows, rejects)
    } catch (error) {
      this.fail(error as Error)
    }
  }

  async #nextBlock(): Promise<{ readonly address: number; bytes: number }> {
    for (;;) {
      if (this.#failure !== null) throw this.#failure
      const address = this.#borrowedBlocks.shift()
      if (address !== undefined) {
        this.#filling = { address, bytes: 0 }
        return this.#filling
      }
      this.#news = deferred<void>()
      await this.#news.promise
      this.#news = null
    }
  }

  #post({ address, bytes }: { readonly address: number; readonly bytes: number }, last: boolean): void {
    const { thread, csvId } = this.#services
    this.#filling = null
    thread.post({ kind: 'csvFill', csvId, address, bytes, utf8: this.#utf8.valid, last })
  }

  async #prepare({ address, rows, allocations, symbols }: StagedMemtable): Promise<void> {
    if (address === 0) return
    const { tableId } = this.#options
    const { thread, csvId, request } = this.#services
    try {
      if (this.#failure !== null) throw this.#failure
      const { staged } = await request((requestId) => ({ kind: 'stage', requestId, tableId, symbols }))
      assert(staged !== undefined, 'M1: the writer answers with what the job needs')
      for (const [columnId, ids] of staged.symbolIds) this.#addSymbols(columnId, ids)
      const { version, firstPartId } = staged
      const symbolIds = [...this.#symbolIds]
      const work = { kind: 'stage', version, memtable: address, rows, firstPartId, symbolIds, allocations } as const
      this.#writing.push(this.#write(work, this.#writing.length))
    } catch (error) {
      thread.post({ kind: 'csvFree', csvId, allocations })
      this.fail(error as Error)
    }
  }

  async #write(work: StageWork, index: number): Promise<void> {
    const { thread, csvId, runStage } = this.#services
    try {
      this.#parts[index] = (await runStage(work, thread)).parts
      thread.post({ kind: 'csvFlushed', csvId })
    } catch (error) {
      this.fail(error as Error)
    }
  }

  #addSymbols(columnId: number, ids: Int32Array): void {
    const known = this.#symbolIds.get(columnId) ?? new Int32Array(0)
    const all = new Int32Array(known.length + ids.length)
    all.set(known)
    all.set(ids, known.length)
    this.#symbolIds.set(columnId, all)
  }
}
