// The main thread's side of decoding CSV files: sends blocks of a file to a query thread and returns the decoded rows.
// Each file is assigned to one thread and has at most one block in progress. This object also starts bulk imports,
// which write Parquet files directly (load-client.ts), and passes the messages of their threads on to them.

import type { CsvDecoding, CsvLoad, LoadOptions, TableShape } from '../api/ingest.js'
import { assert } from '../base/assert.js'
import { type Deferred, deferred } from '../base/deferred.js'
import { type ErrorRecord, errorFromRecord } from '../base/errors.js'
import type { CsvBatch, CsvShape } from '../csv/shape.js'
import { counterOf } from '../sql/relations/counters.js'
import {
  comparesRows,
  isTable,
  liveColumns,
  resultTypeOf,
  type TableVersion,
  viewKind,
} from '../storage/schema/schema.js'
import { Load, type LoadMessage, type LoadServices } from './load-client.js'
import type { FromQueryHost, ToQueryHost } from './messages.js'
import type { Thread } from './thread.js'

export type CsvReply = LoadMessage | Extract<FromQueryHost, { kind: 'csvBatches' | 'csvFailed' }>

interface Waiting {
  readonly thread: Thread<ToQueryHost>
  reply: Deferred<readonly CsvBatch[]> | null
  /** The error after which nothing more can be decoded. */
  failure: Error | null
}

export class CsvClient {
  readonly #files = new Map<number, Waiting>()
  readonly #loads = new Map<number, { readonly load: Load; readonly thread: Thread<ToQueryHost> }>()
  #nextId = 1

  open(thread: Thread<ToQueryHost>, shape: CsvShape): CsvDecoding {
    const csvId = this.#nextId++
    const file: Waiting = { thread, reply: null, failure: null }
    this.#files.set(csvId, file)
    thread.post({ kind: 'csvOpen', csvId, shape, stage: null })
    return {
      decode: (block, last) => {
        assert(file.reply === null, 'M1: one block is decoded at a time')
        if (file.failure !== null) return Promise.reject(file.failure)
        const reply = deferred<readonly CsvBatch[]>()
        file.reply = reply
        thread.post({ kind: 'csvBlock', csvId, block, last })
        return reply.promise
      },
      close: () => {
        this.#files.delete(csvId)
        if (file.failure === null) thread.post({ kind: 'csvClose', csvId })
      },
    }
  }

  /** `services.ended` is called when no work of the load is in progress any more. */
  load(services: Omit<LoadServices, 'csvId'>, options: LoadOptions): CsvLoad {
    const csvId = this.#nextId++
    const ended = (): void => {
      this.#loads.delete(csvId)
      services.ended()
    }
    const load = new Load({ ...services, csvId, ended }, options)
    this.#loads.set(csvId, { load, thread: services.thread })
    return load
  }

  receive(message: CsvReply): void {
    const load = this.#loads.get(message.csvId)?.load
    if (load !== undefined) {
      if (message.kind === 'csvFailed') load.fail(message.error)
      else if (message.kind !== 'csvBatches') load.receive(message)
      return
    }
    const file = this.#files.get(message.csvId)
    if (file === undefined) return
    if (message.kind === 'csvFailed') fail(file, message.error)
    else if (message.kind === 'csvBatches') {
      const { reply } = file
      file.reply = null
      reply?.resolve(message.batches)
    }
  }

  threadEnded(thread: Thread<ToQueryHost>, error: ErrorRecord): void {
    for (const file of this.#files.values()) if (file.thread === thread) fail(file, error)
    for (const { load, thread: own } of this.#loads.values()) if (own === thread) load.threadEnded(error)
  }
}

function fail(file: Waiting, error: ErrorRecord): void {
  const { reply } = file
  file.failure = errorFromRecord(error)
  file.reply = null
  reply?.reject(file.failure)
}

/** The columns that rows are decoded to; undefined if there is no such table. */
export function shapeOf(version: TableVersion | undefined): TableShape | undefined {
  if (version === undefined || !isTable(version.schema)) return undefined
  const { schema } = version
  const columns = liveColumns(schema).map((column) => ({
    id: column.id,
    name: column.name,
    type: column.type,
    wanted: resultTypeOf(column),
    enumeration: column.declared?.enumeration,
    filled: column.default !== undefined,
    counter: counterOf(column),
  }))
  const timestamp = columns.find(({ id }) => id === schema.timestampId)?.name ?? null
  return {
    id: schema.id,
    name: schema.name,
    view: schema.materialized === undefined ? null : viewKind(schema.materialized),
    columns,
    timestamp,
    partitionBy: schema.partitionBy,
    dedup: schema.dedupKeys.length > 0,
    comparesRows: comparesRows(schema),
    keys: (schema.keys ?? []).map((key) => key.name),
  }
}
