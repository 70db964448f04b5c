// Builds the error body of line protocol over HTTP: {code, message, line, errorId}. The log contains the same id. If
// some lines of a request were stored and others were not, the body is that of InfluxDB 3.

import { randomBytes } from 'node:crypto'
import { errorFromRecord, RowError } from '../../engine/base/errors.js'
import type { Receipt } from '../../engine/engine.js'
import { type ErrorCategory, errorReportOf } from '../common/error-reports.js'
import { statusOf } from './replies.js'

export interface WriteRefusal {
  readonly status: number
  readonly code: 'invalid' | 'not supported' | 'not accepting writes' | 'internal error'
  readonly message: string
  readonly line: number
}

const prefix = 'failed to parse line protocol:errors encountered on line(s):'

const codes: Record<ErrorCategory, WriteRefusal['code']> = {
  request: 'invalid',
  oversize: 'invalid',
  forbidden: 'not accepting writes',
  busy: 'not accepting writes',
  internal: 'internal error',
}

const serverId = randomBytes(6).toString('hex')
let errorsCount = 0

export function nextErrorId(): string {
  errorsCount++
  return `${serverId}-${errorsCount}`
}

export const unsupportedPrecision: WriteRefusal = {
  status: 400,
  code: 'not supported',
  message: `${prefix}unsupported precision`,
  line: 0,
}

export const badKey: WriteRefusal = {
  status: 400,
  code: 'invalid',
  message: 'invalid Idempotency-Key, expected 1 to 255 characters without blanks',
  line: 0,
}

export const badPrefix: WriteRefusal = {
  status: 400,
  code: 'invalid',
  message: 'the names that precede those of tables are invalid or too long [setting=line.http.table.prefix]',
  line: 0,
}

export function badFlag(name: string, value: string): WriteRefusal {
  return {
    status: 400,
    code: 'invalid',
    message: `invalid ${name}, expected true or false [value=${value}]`,
    line: 0,
  }
}

export function unsupportedEncoding(name: string): WriteRefusal {
  return { status: 415, code: 'not supported', message: `unsupported content encoding: ${name}`, line: 0 }
}

/** The partial-write response of InfluxDB 3; includes `rejected` when more lines were rejected than are listed. */
export function partialBody({ rejects, rejected }: Pick<Receipt, 'rejects' | 'rejected'>): object {
  const data = rejects.map(({ line, message, text }) => ({
    original_line: text ?? '',
    line_number: line,
    error_message: message,
  }))
  const error = 'partial write of line protocol occurred'
  return rejected > rejects.length ? { error, data, rejected } : { error, data }
}

/** Returns null when the request is stored. With `partial`, bad lines do not fail the request. */
export function refusalOfReceipt({ error, rejects }: Receipt, partial: boolean): WriteRefusal | null {
  if (error === null && partial) return null
  const reject = rejects[0]
  if (error === null && reject === undefined) return null
  if (error === null || (error.name === 'RowError' && error.place === 0 && reject !== undefined)) {
    return reject === undefined ? null : refusalOf(new RowError(reject.message, reject.line))
  }
  return refusalOf(errorFromRecord(error))
}

export function refusalOf(error: unknown): WriteRefusal {
  const { category, message, place } = errorReportOf(error)
  const line = error instanceof RowError ? place : 0
  const text = line > 0 ? `${prefix}\nerror in line ${line}: ${message}` : message
  return { status: statusOf(category), code: codes[category], message: text, line }
}
