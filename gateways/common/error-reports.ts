// Classifies an error by its class, for all gateways: who or what is to blame (the request, its size, a missing right,
// a temporary shortage, the server itself), and the message and position to report. Each gateway translates this into
// a status code of its protocol.

import {
  AccessError,
  CancelledError,
  FileError,
  NetworkError,
  ResourceError,
  RowError,
  SqlError,
  TimeoutError,
} from '../../engine/base/errors.js'
import { BodyTooLarge } from '../../pipeline/ingest.js'

/**
 * request: client error. oversize: request too large. forbidden: missing right. busy: retry later. internal:
 * server error.
 */
export type ErrorCategory = 'request' | 'oversize' | 'forbidden' | 'busy' | 'internal'

export interface ErrorReport {
  readonly category: ErrorCategory
  readonly message: string
  /** Character offset in the statement, or line of the request; 0: unknown. */
  readonly place: number
  /** A suggestion, for example a similar name. */
  readonly hint?: string
}

export function errorReportOf(thrown: unknown): ErrorReport {
  if (thrown instanceof SqlError) {
    const hint = thrown.hint === '' ? {} : { hint: thrown.hint }
    return { category: 'request', message: thrown.message, place: thrown.position, ...hint }
  }
  if (thrown instanceof BodyTooLarge) return { category: 'oversize', message: thrown.message, place: 0 }
  if (thrown instanceof AccessError) return { category: 'forbidden', message: thrown.message, place: thrown.position }
  if (thrown instanceof RowError) return { category: 'request', message: thrown.message, place: thrown.line }
  if (thrown instanceof TimeoutError || thrown instanceof CancelledError || thrown instanceof NetworkError) {
    return { category: 'request', message: thrown.message, place: 0 }
  }
  if (thrown instanceof ResourceError) return { category: 'busy', message: thrown.message, place: 0 }
  if (thrown instanceof FileError && thrown.code === 'ENOSPC')
    return { category: 'busy', message: thrown.message, place: 0 }
  return { category: 'internal', message: thrown instanceof Error ? thrown.message : String(thrown), place: 0 }
}
