// The JSON around the rows of /exec, which the engine encodes. Members in this order:
//
//   query, columns, timestamp, dataset, count, timings      rows (`capped`, `rowsMax` behind a count that a cap ended;
//                                                           `error`, `position` instead of it when the result broke off)
//   query, count, timings                                   count=true
//   query, explain, timings                                 explain=true
//   query, ddl                                              other statements; INSERT also has `inserted`, UPDATE `updated`,
//                                                           DELETE `deleted`: how many rows; `notices`: sentences, of
//                                                           values that ALTER COLUMN .. TYPE made NULL

import { notesAbout } from '../../engine/base/notes.js'
import type { DoneResult, PlanResult, ResultColumn, RowsResult } from '../../engine/engine.js'
import { typeText } from '../../engine/types/column-types.js'
import type { ExecRequest } from './exec-request.js'

export interface Times {
  readonly compilerMs: number
  readonly executeMs: number
}

/** Everything before the first row. */
export function rowsHead(request: ExecRequest, result: RowsResult): Buffer {
  const query = JSON.stringify(request.sql)
  if (request.countOnly) return Buffer.from(`{"query":${query}`)
  if (!request.metadata) return Buffer.from(`{"query":${query},"dataset":[`)
  const columns = columnsJson(result.columns)
  return Buffer.from(`{"query":${query},"columns":${columns},"timestamp":${result.timestampIndex},"dataset":[`)
}

/** Everything behind the last row. `rowsCap`: the limit of the server that left rows out, null when none did. */
export function rowsTail(request: ExecRequest, count: number, times: Times, rowsCap: number | null): Buffer {
  const close = request.countOnly ? '' : ']'
  const timings = request.timings ? `,"timings":${JSON.stringify(timingsJson(times, count))}` : ''
  const capped = rowsCap === null ? '' : `,"capped":true,"rowsMax":${rowsCap}`
  return Buffer.from(`${close},"count":${count}${capped}${timings}}`)
}

/** Instead of what follows the last row, when the rest of the result cannot be had. */
export function brokenTail(request: ExecRequest, message: string, position: number): Buffer {
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

const countedRows: Readonly<Record<string, string>> = { INSERT: 'inserted', UPDATE: 'updated', DELETE: 'deleted' }

export function planBody({ sql, timings }: ExecRequest, { lines }: PlanResult, times: Times): string {
  const body = { query: sql, explain: { plan: lines } }
  return JSON.stringify(timings ? { ...body, timings: timingsJson(times, lines.length) } : body)
}

/** `sql` null: errors of options that leave the statement out. */
export function errorBody(sql: string | null, error: string, position: number, hint?: string): string {
  return JSON.stringify({
    ...(sql === null ? {} : { query: sql }),
    error,
    position,
    ...(hint === undefined ? {} : { hint }),
  })
}

/** Plans are kept, and with them their columns. */
const columnTexts = notesAbout<RowsResult['columns'], string>()

function columnsJson(columns: RowsResult['columns']): string {
  let text = columnTexts.get(columns)
  if (text === undefined) {
    text = JSON.stringify(columns.map(columnJson))
    columnTexts.set(columns, text)
  }
  return text
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
