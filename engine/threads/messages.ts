// The messages between the main thread and query threads: queries, jobs of the writer, decoding of CSV files, requests
// for rows that are only in the object store, and shutdown.

import type { ErrorRecord } from '../base/errors.js'
import type { CsvBatch, CsvReject, CsvShape, StagedMemtable } from '../csv/shape.js'
import type { FromQueryThread, ToQueryThread } from '../exec/run/messages.js'
import type { Job, JobResult, PackedRows, StageWork } from '../storage/jobs/messages.js'
import type { FromBlockReader } from '../storage/part/remote-blocks.js'

interface CsvStage {
  readonly columnIds: readonly number[]
  readonly blockBytes: number
}

export type ToQueryHost =
  | ToQueryThread
  | { readonly kind: 'job'; readonly jobId: number; readonly job: Job | StageWork }
  /** Blocks of remote parts are cached on this disk, or could not be fetched. */
  | { readonly kind: 'fetched'; readonly requestId: number; readonly error: string | null }
  /** With `stage`, shared blocks are filled and rows become memtables; without it, batches are sent back. */
  | { readonly kind: 'csvOpen'; readonly csvId: number; readonly shape: CsvShape; readonly stage: CsvStage | null }
  | {
      readonly kind: 'csvFill'
      readonly csvId: number
      readonly address: number
      readonly bytes: number
      readonly utf8: boolean
      readonly last: boolean
    }
  /** Rows that are already packed. They use up a block as flow control, but not its memory. */
  | { readonly kind: 'csvPacked'; readonly csvId: number; readonly address: number; readonly rows: PackedRows }
  | { readonly kind: 'csvFlushed'; readonly csvId: number }
  | { readonly kind: 'csvFree'; readonly csvId: number; readonly allocations: readonly number[] }
  | { readonly kind: 'csvBlock'; readonly csvId: number; readonly block: Uint8Array; readonly last: boolean }
  | { readonly kind: 'csvClose'; readonly csvId: number }
  | { readonly kind: 'close' }

export type FromQueryHost =
  | FromQueryThread
  | FromBlockReader
  | { readonly kind: 'csvBatches'; readonly csvId: number; readonly batches: readonly CsvBatch[] }
  | { readonly kind: 'csvLent'; readonly csvId: number; readonly address: number }
  | { readonly kind: 'csvTaken'; readonly csvId: number; readonly rows: number; readonly rejects: readonly CsvReject[] }
  | { readonly kind: 'csvMemtable'; readonly csvId: number; readonly memtable: StagedMemtable }
  /** The last message about the file. */
  | { readonly kind: 'csvClosed'; readonly csvId: number }
  | { readonly kind: 'csvFailed'; readonly csvId: number; readonly error: ErrorRecord }
  | { readonly kind: 'jobDone'; readonly jobId: number; readonly result: JobResult }
  | { readonly kind: 'jobFailed'; readonly jobId: number; readonly error: ErrorRecord }
