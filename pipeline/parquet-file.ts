// A Parquet file as columns and blocks of CSV lines, read by a thread of its own (parquet-worker.ts).

import { MessageChannel, Worker } from 'node:worker_threads'
import { compiledModule } from '../engine/base/module-url.js'
import type { StopSignal } from '../engine/engine.js'
import type { ParquetColumn } from './parquet-text.js'
import type { FromParquetWorker, ParquetWorkerData } from './parquet-worker.js'

export interface ParquetReading {
  columns(columns: readonly ParquetColumn[]): Promise<void>
  /** The next lines are read when the promise has resolved. */
  lines(bytes: Buffer): Promise<void>
}

/** Throws ParquetError for a file that cannot be read. */
export class ParquetError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'ParquetError'
  }
}

export async function readParquetFile(path: string, reading: ParquetReading, signal: StopSignal | null): Promise<void> {
  const { port1, port2 } = new MessageChannel()
  const data: ParquetWorkerData = { port: port2, path }
  const worker = new Worker(compiledModule(import.meta.url, './parquet-worker.js'), {
    workerData: data,
    transferList: [port2],
  })
  const stop = (): void => void worker.terminate()
  signal?.addEventListener('abort', stop, { once: true })
  try {
    await new Promise<void>((resolve, reject) => {
      worker.on('error', (error) => reject(new ParquetError(error instanceof Error ? error.message : String(error))))
      // Unlike the exit of the worker, this comes behind the port's last message.
      port1.on('close', () => reject(signal?.reason ?? new ParquetError('the reader of the file ended')))
      port1.on('message', (message: FromParquetWorker) => {
        if (message.kind === 'end') resolve()
        else if (message.kind === 'failed') reject(new ParquetError(message.message))
        else deal(message, reading).then(() => port1.postMessage(null), reject)
      })
    })
  } finally {
    signal?.removeEventListener('abort', stop)
    port1.close()
    await worker.terminate()
  }
}

function deal(
  message: Extract<FromParquetWorker, { kind: 'columns' | 'lines' }>,
  reading: ParquetReading,
): Promise<void> {
  if (message.kind === 'columns') return reading.columns(message.columns)
  const { buffer, byteOffset, byteLength } = message.bytes
  return reading.lines(Buffer.from(buffer as ArrayBuffer, byteOffset, byteLength))
}
