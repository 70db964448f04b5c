// Parses the parameters of requests that send line protocol:
//
//   precision        unit of timestamps without a suffix. /write, /api/v2/write: n, u, ms, s, m, h (also ns, us);
//                    nanoseconds if absent. /api/v3/write_lp: nanosecond, microsecond, millisecond, second, or one of
//                    these; `auto`, its default, guesses the unit of each timestamp from its magnitude
//   accept_partial   true: stores the good lines together, and a 400 lists the bad ones. Default of /api/v3/write_lp
//   no_sync          /api/v3/write_lp: true permits a response before the rows are durable. Without effect: rows are as
//                    durable as the commit mode promises
//   org, bucket, db, rp
//                    may be a prefix of table names (setting line.http.table.prefix)
//
// The header Idempotency-Key identifies a request that the client may repeat: its rows are stored once.

import type { IncomingMessage } from 'node:http'
import type { LinePrecision } from '../../engine/engine.js'
import { parseQueryString, type QueryParameters } from './query-string.js'
import { headerText } from './request-body.js'
import {
  badFlag,
  badKey,
  badPrefix,
  unsupportedEncoding,
  unsupportedPrecision,
  type WriteRefusal,
} from './write-errors.js'

export const writePathV3 = '/api/v3/write_lp'

export interface WriteRequest {
  readonly precision: LinePrecision
  readonly partial: boolean
  readonly gzip: boolean
  readonly key: string | null
  /** Precedes the name of each table; empty: nothing does. */
  readonly tablePrefix: string
}

const precisions: Readonly<Record<string, LinePrecision>> = {
  ...{ '': 'n', n: 'n', ns: 'n', u: 'u', us: 'u', ms: 'ms', s: 's', m: 'm', h: 'h' },
}

const precisionsV3: Readonly<Record<string, LinePrecision>> = {
  ...{ ...precisions, '': 'auto', auto: 'auto' },
  ...{ nanosecond: 'n', microsecond: 'u', millisecond: 'ms', second: 's' },
}

/** A client that repeats the key does not store the rows twice. */
const keyText = /^[\x21-\x7e]{1,255}$/
/** What a name in line protocol cannot have at all. */
const notInNames = /\p{Cc}/u
const prefixCharactersMax = 100

export function writeRequestOf(
  request: IncomingMessage,
  query: string,
  isV3: boolean,
  prefixParts: readonly string[],
): WriteRequest | WriteRefusal {
  const { parameters } = parseQueryString(query)
  const precision = (isV3 ? precisionsV3 : precisions)[parameters.get('precision') ?? '']
  if (precision === undefined) return unsupportedPrecision
  const partial = flagOf(parameters, 'accept_partial', isV3)
  if (typeof partial === 'string') return badFlag('accept_partial', partial)
  const unsynced = isV3 ? flagOf(parameters, 'no_sync', false) : false
  if (typeof unsynced === 'string') return badFlag('no_sync', unsynced)
  const encoding = request.headers['content-encoding'] ?? 'identity'
  if (encoding !== 'identity' && encoding !== 'gzip') return unsupportedEncoding(encoding)
  const key = headerText(request, 'idempotency-key') ?? null
  if (key !== null && !keyText.test(key)) return badKey
  const tablePrefix = prefixOf(parameters, prefixParts)
  if (notInNames.test(tablePrefix) || tablePrefix.length > prefixCharactersMax) return badPrefix
  return { precision, partial, gzip: encoding === 'gzip', key, tablePrefix }
}

/** Another text than true or false is returned. */
function flagOf(parameters: QueryParameters, name: string, absent: boolean): boolean | string {
  const text = parameters.get(name)?.toLowerCase() ?? String(absent)
  return text === 'true' || text === 'false' ? text === 'true' : text
}

function prefixOf(parameters: QueryParameters, parts: readonly string[]): string {
  return parts
    .map((part) => parameters.get(part) ?? '')
    .flatMap((value) => (value === '' ? [] : [`${value}_`]))
    .join('')
}
