// Thread that decodes one SQLite dump: it divides the text into statements and parses each, so that no statement,
// however long, blocks the server. The thread waits while the main thread creates a table, because the rows that follow
// need the ids of the table's columns.

import { type MessagePort, receiveMessageOnPort, workerData } from 'node:worker_threads'
import { DumpDecoder, DumpError } from './dump-decoder.js'
import type { DumpOptions, FromDumpWorker, ProposedTable, ResolvedTable, ToDumpWorker } from './messages.js'

export interface DumpWorkerData {
  readonly port: MessagePort
  /** Changes whenever a message is sent to this worker. */
  readonly news: Int32Array
  readonly options: DumpOptions
}

const { port, news, options } = workerData as DumpWorkerData
const decoder = new DumpDecoder({ ...options, resolve })

for (;;) {
  const message = next()
  if (message.kind !== 'block') continue
  try {
    post({ kind: 'events', events: decoder.decode(message.bytes, message.last) })
    if (message.last) break
  } catch (error) {
    const known = error instanceof DumpError
    const text = error instanceof Error ? (known ? error.message : (error.stack ?? error.message)) : String(error)
    post({ kind: 'failed', message: text, internal: !known })
    break
  }
}
port.close()

function resolve(proposal: ProposedTable): ResolvedTable {
  post({ kind: 'resolve', proposal })
  for (;;) {
    const message = next()
    if (message.kind === 'resolved') return message.table
  }
}

function post(message: FromDumpWorker): void {
  port.postMessage(message)
}

function next(): ToDumpWorker {
  for (;;) {
    const seen = Atomics.load(news, 0)
    const received = receiveMessageOnPort(port) as { readonly message: ToDumpWorker } | undefined
    if (received !== undefined) return received.message
    Atomics.wait(news, 0, seen)
  }
}
