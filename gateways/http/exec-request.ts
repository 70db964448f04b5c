// Parses and validates the parameters and headers of /exec, and those that /exp shares with it.

import { SqlError } from '../../engine/base/errors.js'
import { parseQueryString, type QueryParameters } from './query-string.js'

/** Parameters that /exec and /exp share. */
export interface CommonRequest {
  readonly sql: string
  /** Number of rows to skip; `rowsMax` is the number to send after them. */
  readonly skip: number
  readonly rowsMax: number
  /** 0: no deadline. */
  readonly timeoutMs: number
}

export interface ExecRequest extends CommonRequest {
  readonly countOnly: boolean
  /** Whether the response describes its columns. */
  readonly metadata: boolean
  readonly timings: boolean
  readonly explain: boolean
  /** Whether a statement that changes anything is rejected, whatever the user's rights. */
  readonly readOnly: boolean
  readonly quoteLargeNumbers: boolean
  readonly columns: readonly string[] | null
}

/** An invalid request, with as much of the statement as could be read; null: the response omits the statement. */
export class ExecRequestError extends SqlError {
  readonly sql: string | null

  constructor(message: string, sql: string | null) {
    super(message, 0)
    this.name = 'ExecRequestError'
    this.sql = sql
  }
}

const timeoutMsMax = 2 ** 31 - 1

export function parseExecRequest(
  queryString: string,
  timeoutHeader: string | undefined,
  defaults: { readonly timeoutMs: number },
): ExecRequest {
  const { parameters, sql, skip, rowsMax, timeoutMs } = parseCommon(queryString, timeoutHeader, defaults.timeoutMs)
  if (sql.trim() === '') throw new ExecRequestError('empty query', sql)
  return {
    sql,
    skip,
    rowsMax,
    timeoutMs,
    countOnly: flag(parameters, 'count'),
    metadata: !flag(parameters, 'nm'),
    timings: flag(parameters, 'timings'),
    explain: flag(parameters, 'explain'),
    readOnly: flag(parameters, 'readonly'),
    quoteLargeNumbers: flag(parameters, 'quoteLargeNum'),
    columns: parseColumns(parameters.get('cols') ?? '', sql),
  }
}

export function parseCommon(
  queryString: string,
  timeoutHeader: string | undefined,
  timeoutMs: number,
): CommonRequest & { readonly parameters: QueryParameters } {
  const { parameters, problems } = parseQueryString(queryString)
  const sql = parameters.get('query') ?? ''
  const sqlProblem = problems.get('query')
  if (sqlProblem === 'bad UTF-8') throw new ExecRequestError('Bad UTF8 encoding in query text', sql)
  for (const [name] of problems) throw new ExecRequestError(`invalid encoding of the parameter ${name}`, sql)
  const { skip, rowsMax } = parseLimit(parameters.get('limit') ?? '', sql)
  return { sql, skip, rowsMax, timeoutMs: parseTimeout(timeoutHeader, timeoutMs, sql), parameters }
}

/** True for `true` in any case, false for everything else. */
export function flag(parameters: QueryParameters, name: string): boolean {
  return parameters.get(name)?.toLowerCase() === 'true'
}

/** Parses `n` or `skip,n`; an empty string selects all rows. */
function parseLimit(text: string, sql: string): { skip: number; rowsMax: number } {
  if (text === '') return { skip: 0, rowsMax: Number.POSITIVE_INFINITY }
  const match = /^\s*(?:(\d{1,15})\s*,\s*)?(\d{1,19})\s*$/.exec(text)
  if (match === null) throw new ExecRequestError(`invalid limit, expected <n> or <skip>,<n> [limit=${text}]`, sql)
  return { skip: Number(match[1] ?? 0), rowsMax: Number(match[2]) }
}

function parseTimeout(header: string | undefined, defaultMs: number, sql: string): number {
  if (header === undefined || header === '') return defaultMs
  const timeoutMs = /^\d{1,15}$/.test(header) ? Number(header) : Number.NaN
  if (!(timeoutMs <= timeoutMsMax)) {
    throw new ExecRequestError(`invalid Statement-Timeout, expected milliseconds [value=${header}]`, sql)
  }
  return timeoutMs
}

/** Parses comma-separated column names; a name that contains a comma is quoted. A trailing comma is ignored. */
export function parseColumns(text: string, sql: string): string[] | null {
  if (text === '') return null
  const names: string[] = []
  let name = ''
  let quoted = false
  let escaped = false
  const finish = (): void => {
    if (name === '') throw new ExecRequestError('empty column in query parameter', sql)
    names.push(name)
    name = ''
  }
  for (const character of text) {
    if (escaped) {
      name += character
      escaped = false
    } else if (character === '\\') escaped = true
    else if (character === '"') quoted = !quoted
    else if (character === ',' && !quoted) finish()
    else name += character
  }
  if (name !== '' || names.length === 0) finish()
  return names
}
