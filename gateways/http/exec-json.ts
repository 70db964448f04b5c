// Builds the JSON that surrounds the rows of an /exec response; the engine encodes the rows. The members of the
// object, in this order, by kind of response:
//
//   query, columns, timestamp, dataset, count, timings      rows. `capped` and `rowsMax` follow the count when the
//                                                           server's row limit applied; `error` and `position` replace
//                                                           the count when the query failed midway
//   query, count, timings                                   count=true
//   query, explain, timings                                 explain=true
//   query, ddl                                              other statements. `inserted`, `updated`, `deleted` or
//                                                           `merged` is the affected row count; `notices` reports, for
//                                                           example, values that ALTER COLUMN .. TYPE replaced by NULL
//   query, error, position, hint                            errors before the first row
//
// With nm=true, rows come without columns and timestamp.

import type { DoneResult, PlanResult, ResultColumn, RowsResult } from '../../engine/engine.js'
import { typeText } from '../../engine/types/column-types.js'
import type { ExecRequest } from './exec-request.js'

export interface Times {
  readonly compilerMs: number
  readonly executeMs: number
}

/** Everything before the first row. */
export function rowsHead(request: ExecRequest, result: RowsResult): string {
  const query = JSON.stringify(request.sql)
  if (request.countOnly) return `{"query":${query}`
  if (!request.metadata) return `{"query":${query},"dataset":[`
  return `{"query":${query},"columns":${columnsJson(result.columns)},"timestamp":${result.timestampIndex},"dataset":[`
}

/** Descriptions of columns. Executions of a cached plan have the same list. */
const described = new WeakMap<readonly ResultColumn[], string>()

function columnsJson(columns: readonly ResultColumn[]): string {
  const known = described.get(columns)
  if (known !== undefined) return known
  const json = JSON.stringify(columns.map(columnJson))
  described.set(columns, json)
  return json
}

/** Everything after the last row. `rowsCap`: the server's row limit when it truncated the result, else null. */
export function rowsTail(request: ExecRequest, count: number, times: Times, rowsCap: number | null): string {
  const close = request.countOnly ? '' : ']'
  const timings = request.timings ? `,"timings":${JSON.stringify(timingsJson(times, count))}` : ''
  const capped = rowsCap === null ? '' : `,"capped":true,"rowsMax":${rowsCap}`
  return `${close},"count":${count}${capped}${timings}}`
}

/** Replaces `rowsTail` when the query fails after rows were sent. */
export function failedTail(request: ExecRequest, message: string, position: number): Buffer {
  const close = request.countOnly ? '' : ']'
  return Buffer.from(`${close},"error":${JSON.stringify(message)},"position":${position}}`)
}

export function doneBody({ sql }: ExecRequest, { tag, rows, notes = [] }: DoneResult): string {
  const counted = countedRows[tag]
  return JSON.stringify({
    ...{ query: sql, ddl: 'OK' },
    ...(counted === undefined ? {} : { [counted]: rows }),
    ...(notes.length === 0 ? {} : { notices: notes }),
  })
}

const countedRows: Readonly<Record<string, string>> = {
  ...{ INSERT: 'inserted', UPDATE: 'updated', DELETE: 'deleted', MERGE: 'merged' },
}

export function planBody({ sql, timings }: ExecRequest, { lines }: PlanResult, times: Times): string {
  const body = { query: sql, explain: { plan: lines } }
  return JSON.stringify(timings ? { ...body, timings: timingsJson(times, lines.length) } : body)
}

/** `sql` null: the body omits the statement, as for invalid parameters. */
export function errorBody(sql: string | null, error: string, position: number, hint?: string): string {
  return JSON.stringify({
    ...(sql === null ? {} : { query: sql }),
    error,
    position,
    ...(hint === undefined ? {} : { hint }),
  })
}

export function columnJson({ name, type }: ResultColumn): object {
  if (type.name === 'ARRAY') return { name, type: 'ARRAY', dim: type.a, elemType: 'DOUBLE' }
  return { name, type: typeText(type) }
}

function timingsJson({ compilerMs, executeMs }: Times, count: number): object {
  return { compiler: milliseconds(compilerMs), execute: milliseconds(executeMs), count }
}

function milliseconds(value: number): number {
  return Math.round(value * 1000) / 1000
}
