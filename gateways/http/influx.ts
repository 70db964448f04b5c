// Endpoints that clients of InfluxDB call before they write: GET /health, GET /ready, and GET and POST /query for the
// statements by which they create a database and list its contents.
//
//   CREATE DATABASE, DROP DATABASE    does nothing: there is one database
//   SHOW DATABASES                    qdb, and the database that the request names
//   SHOW RETENTION POLICIES           one without an end
//   SHOW MEASUREMENTS [LIMIT n]       the tables
//   SHOW TAG KEYS [FROM table, ..]    their columns of type SYMBOL
//   SHOW FIELD KEYS [FROM table, ..]  their other columns except the designated timestamp, with types of InfluxDB
//
// Other statements get a 400: SQL is at /exec.

import { requireRight } from '../../engine/base/rights.js'
import type { Engine, TableShape } from '../../engine/engine.js'
import type { ColumnType } from '../../engine/types/column-types.js'
import type { Exchange, HttpContext } from './context.js'
import { discardRemainder } from './guard.js'
import { parseQueryString } from './query-string.js'
import { replyJson } from './replies.js'
import { bringsBody, readBody } from './request-body.js'
import { influxVersion, unhealthyReason } from './system.js'

export function handleInfluxHealth(context: HttpContext, { response }: Exchange): void {
  const trouble = unhealthyReason(context)
  const status = trouble === null ? 'pass' : 'fail'
  const message = trouble ?? 'ready for queries and writes'
  const body = { name: 'influxdb', message, checks: [], status, version: influxVersion, commit: '' }
  replyJson(response, trouble === null ? 200 : 503, body)
}

export function handleReady({ clock, startedMicros }: HttpContext, { response }: Exchange): void {
  const seconds = Math.floor((clock.nowMicros() - startedMicros) / 1e6)
  const up = `${Math.floor(seconds / 3600)}h${Math.floor(seconds / 60) % 60}m${seconds % 60}s`
  replyJson(response, 200, { status: 'ready', started: new Date(startedMicros / 1000).toISOString(), up })
}

interface Series {
  readonly name?: string
  readonly columns: readonly string[]
  readonly values: readonly (readonly unknown[])[]
}

interface Request {
  readonly context: HttpContext
  readonly database: string
}

const databaseName = 'qdb'
const name = `(?:"((?:[^"\\\\]|\\\\.)*)"|([^\\s",]+))`
const ofDatabase = `(?:\\s+on\\s+${name})?`

/** The statements, by their text. */
const statements: readonly [RegExp, (request: Request, match: RegExpExecArray) => Series[]][] = [
  [new RegExp(`^(create|drop)\\s+database\\s+${name}(\\s+with\\s.*)?$`, 'is'), () => []],
  [/^show\s+databases$/i, ({ database }) => [listed('databases', 'name', [...new Set([databaseName, database])])]],
  [new RegExp(`^show\\s+retention\\s+policies${ofDatabase}$`, 'i'), () => [retentionPolicies]],
  [
    new RegExp(`^show\\s+measurements${ofDatabase}(?:\\s+limit\\s+(\\d{1,9}))?$`, 'i'),
    ({ context }, match) => {
      const tables = context.engine
        .tableNames()
        .sort()
        .slice(0, Number(match[3] ?? Number.POSITIVE_INFINITY))
      return tables.length === 0 ? [] : [listed('measurements', 'name', tables)]
    },
  ],
  [
    new RegExp(`^show\\s+tag\\s+keys${ofDatabase}(?:\\s+from\\s+(.+))?$`, 'is'),
    ({ context }, match) => perTable(context.engine, match[3], ['tagKey'], tagKeys),
  ],
  [
    new RegExp(`^show\\s+field\\s+keys${ofDatabase}(?:\\s+from\\s+(.+))?$`, 'is'),
    ({ context }, match) => perTable(context.engine, match[3], ['fieldKey', 'fieldType'], fieldKeys),
  ],
]

const retentionPolicies: Series = {
  columns: ['name', 'duration', 'shardGroupDuration', 'replicaN', 'default'],
  values: [['autogen', '0s', '168h0m0s', 1, true]],
}

function listed(title: string, column: string, names: readonly string[]): Series {
  return { name: title, columns: [column], values: names.filter((text) => text !== '').map((text) => [text]) }
}

export async function handleInfluxQuery(context: HttpContext, exchange: Exchange): Promise<void> {
  const { request, response, session } = exchange
  requireRight(session, 'read')
  const isForm = /^application\/x-www-form-urlencoded\b/i.test(request.headers['content-type'] ?? '')
  const body = request.method === 'POST' && isForm && bringsBody(request) ? await readBody(request) : ''
  const { parameters } = parseQueryString(`${exchange.query}&${body}`)
  const text = parameters.get('q') ?? ''
  const parts = text.split(';').flatMap((part) => (part.trim() === '' ? [] : [part.trim()]))
  const results = parts.map((part, index) => {
    const series = seriesOf({ context, database: parameters.get('db') ?? '' }, part)
    return series === null ? part : { statement_id: index, ...(series.length === 0 ? {} : { series }) }
  })
  const unknown = parts.length === 0 ? '' : results.find((result) => typeof result === 'string')
  if (unknown === undefined) return replyJson(response, 200, { results })
  const error = unknown === '' ? 'missing required parameter "q"' : `error parsing query: unknown statement: ${unknown}`
  replyJson(response, 400, { error })
  discardRemainder(response, 'known')
}

/** Null: the statement is none of those above. */
function seriesOf(request: Request, text: string): Series[] | null {
  for (const [pattern, run] of statements) {
    const match = pattern.exec(text)
    if (match !== null) return run(request, match)
  }
  return null
}

function perTable(
  engine: Engine,
  from: string | undefined,
  columns: readonly string[],
  valuesOf: (table: TableShape) => string[][],
): Series[] {
  const names = from === undefined ? engine.tableNames().sort() : namesOf(from)
  return names.flatMap((tableName) => {
    const table = engine.table(tableName)
    const values = table === undefined ? [] : valuesOf(table)
    return values.length === 0 ? [] : [{ name: table?.name ?? tableName, columns, values }]
  })
}

/** `"db"."rp"."table", other`: the last part of each name. */
function namesOf(from: string): string[] {
  const pattern = /(?:"(?:[^"\\]|\\.)*"|[^\s",.]+)(?:\.(?=.)|(?=\s*(?:,|$)))/g
  const names: string[] = []
  for (const part of from.match(pattern) ?? []) {
    if (part.endsWith('.')) continue
    names.push(part.startsWith('"') ? part.slice(1, -1).replace(/\\(.)/g, '$1') : part)
  }
  return names
}

function tagKeys({ columns }: TableShape): string[][] {
  return columns.flatMap((column) => (column.type.name === 'SYMBOL' ? [[column.name]] : []))
}

function fieldKeys({ columns, timestamp }: TableShape): string[][] {
  return columns.flatMap((column) => {
    if (column.type.name === 'SYMBOL' || column.name === timestamp) return []
    return [[column.name, fieldTypes[column.type.name] ?? 'string']]
  })
}

/** Types of InfluxDB; other columns are strings. */
const fieldTypes: Partial<Record<ColumnType, string>> = {
  ...{ BOOLEAN: 'boolean', BYTE: 'integer', SHORT: 'integer', INT: 'integer', LONG: 'integer' },
  ...{ FLOAT: 'float', DOUBLE: 'float', DATE: 'integer', TIMESTAMP: 'integer', TIMESTAMP_NS: 'integer' },
}
