// Worker: reads one Parquet file. Decoding has a thread of its own, so that a file, however large, keeps nobody waiting;
// it goes on when the rows before have been taken.

import { type MessagePort, workerData } from 'node:worker_threads'
import { parquetCodecs } from './parquet-codecs.js'
import { openParquet } from './parquet-library.js'
import { csvHeader, csvLines, type ParquetColumn, parquetColumns } from './parquet-text.js'

export interface ParquetWorkerData {
  readonly port: MessagePort
  readonly path: string
}

export type FromParquetWorker =
  | { readonly kind: 'columns'; readonly columns: readonly ParquetColumn[] }
  | { readonly kind: 'lines'; readonly bytes: Uint8Array }
  | { readonly kind: 'end' }
  | { readonly kind: 'failed'; readonly message: string }

/** Values that are held as JavaScript knows them. */
const valuesMax = 500_000
const rowsMax = 65_536

const { port, path } = workerData as ParquetWorkerData
let proceed: () => void = () => {}
port.on('message', () => proceed())

try {
  await readFile()
  port.postMessage({ kind: 'end' } satisfies FromParquetWorker)
} catch (error) {
  const message = error instanceof Error ? error.message : String(error)
  port.postMessage({ kind: 'failed', message } satisfies FromParquetWorker)
}
port.close()

async function readFile(): Promise<void> {
  const { schema, groupRows, rows } = await openParquet(path, await parquetCodecs())
  const columns = parquetColumns(schema)
  await send({ kind: 'columns', columns })
  await sendText(csvHeader(columns))
  const step = Math.max(1, Math.min(rowsMax, Math.floor(valuesMax / Math.max(1, columns.length))))
  let groupStart = 0
  for (const count of groupRows) {
    const groupEnd = groupStart + count
    for (let from = groupStart; from < groupEnd; from += step)
      await sendText(csvLines(await rows(from, Math.min(groupEnd, from + step))))
    groupStart = groupEnd
  }
}

function sendText(text: string): Promise<void> {
  return send({ kind: 'lines', bytes: new TextEncoder().encode(text) })
}

/** Resolves when the message has been dealt with. */
function send(message: FromParquetWorker): Promise<void> {
  return new Promise((resolve) => {
    proceed = resolve
    port.postMessage(message, message.kind === 'lines' ? [message.bytes.buffer as ArrayBuffer] : [])
  })
}
