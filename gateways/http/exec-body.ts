// POST /exec: the parameters in the body, as a form or as JSON `{query, params, limit, ...}`; what the URL says as well
// counts less.

import type { ExecuteOptions } from '../../engine/engine.js'
import { dataType } from '../../engine/types/column-types.js'
import { ExecRequestError } from './exec-request.js'

type BindParameters = ExecuteOptions['parameters']

export interface ExecBody {
  /** Encoded like a query string. */
  readonly query: string
  readonly parameters: BindParameters
}

export function parseExecBody(contentType: string, body: string, query: string): ExecBody {
  if (/^application\/x-www-form-urlencoded\b/i.test(contentType)) return { query: `${query}&${body}`, parameters: [] }
  if (/^application\/json\b/i.test(contentType)) return parseJson(body, query)
  throw new ExecRequestError('expected a body of application/json or application/x-www-form-urlencoded', null)
}

function parseJson(body: string, query: string): ExecBody {
  let parsed: unknown
  try {
    parsed = JSON.parse(body)
  } catch {
    throw new ExecRequestError('the body is not JSON', null)
  }
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) {
    throw new ExecRequestError('the body is no JSON object', null)
  }
  const { params = [], ...members } = parsed as Readonly<Record<string, unknown>>
  if (!Array.isArray(params)) throw new ExecRequestError('params is no array', null)
  const encoded = new URLSearchParams()
  for (const [name, value] of Object.entries(members)) {
    if (value !== null && typeof value !== 'object') encoded.set(name, String(value))
  }
  return { query: `${query}&${encoded}`, parameters: params.map(bindParameter) }
}

function bindParameter(value: unknown): BindParameters[number] {
  switch (typeof value) {
    case 'boolean':
      return { value, type: dataType('BOOLEAN') }
    case 'string':
      return { value, type: dataType('VARCHAR') }
    case 'number':
      return Number.isSafeInteger(value)
        ? { value: BigInt(value), type: dataType('LONG') }
        : { value, type: dataType('DOUBLE') }
    default:
      if (value === null) return { value: null, type: dataType('VARCHAR') }
      throw new ExecRequestError('params holds something else than numbers, texts, booleans and null', null)
  }
}
