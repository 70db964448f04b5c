// Messages between the main thread and a query thread's host: queries, jobs of the writer, and the end.

import type { ErrorRecord } from '../base/errors.js'
import type { CsvBatch, CsvShape } from '../csv/shape.js'
import type { FromQueryThread, ToQueryThread } from '../sql/exec/messages.js'
import type { Job, JobResult } from '../storage/messages.js'

export type ToQueryHost =
  | ToQueryThread
  | { readonly kind: 'job'; readonly jobId: number; readonly job: Job }
  | { readonly kind: 'csvOpen'; readonly csvId: number; readonly shape: CsvShape }
  | { readonly kind: 'csvBlock'; readonly csvId: number; readonly block: Uint8Array; readonly last: boolean }
  | { readonly kind: 'csvClose'; readonly csvId: number }
  | { readonly kind: 'close' }

export type FromQueryHost =
  | FromQueryThread
  | { readonly kind: 'csvBatches'; readonly csvId: number; readonly batches: readonly CsvBatch[] }
  | { readonly kind: 'csvFailed'; readonly csvId: number; readonly error: ErrorRecord }
  | { readonly kind: 'jobDone'; readonly jobId: number; readonly result: JobResult }
  | { readonly kind: 'jobFailed'; readonly jobId: number; readonly error: ErrorRecord }
