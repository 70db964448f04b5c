// Runs golden SQL files (slt-file.ts) over the PostgreSQL protocol, alternating between the simple and the extended
// protocol. The server runs without generated WebAssembly kernels, so that the files also test the operators that such
// kernels replace. Statements that mean something else to PostgreSQL clients are skipped, or sent over HTTP.
//
// The files contain values as /exec returns them, but here they arrive as PostgreSQL's text, with PostgreSQL's types.
// So each value is converted to the form of /exec. If several types of this dialect have the same PostgreSQL type, the
// expected value tells which of them is meant.

import pg from 'pg'
import { type ColumnType, columnTypes } from '../../engine/types/column-types.js'
import { TestServer } from '../support/server.js'
import { errorLines, importFiles, type SltClient } from './clients.js'
import { plainText, type SltAnswer, splitCells } from './slt-file.js'

export async function pgClient(): Promise<SltClient> {
  const server = new TestServer([
    'memory.bytes=512m',
    'wal.commit.mode=nosync',
    'telemetry.enabled=false',
    'query.jit.mode=off',
    'pg.server.version=12.3',
    `copy.import.root=${importFiles}`,
  ])
  await server.start()
  let client = await connected(server)
  let turn = 0
  return {
    name: 'wire protocol, jit off',
    modes: ['in both'],
    restartsIn: ['in both'],
    skips: ({ sql, expected }) =>
      otherHere.test(sql) ||
      dayOfTime.test(sql) ||
      timesApart.test(sql) ||
      exactHere.test(sql) ||
      quotientHere.test(sql) ||
      meanHere.test(sql) ||
      narrowedHere.test(sql) ||
      isTextHere(sql, expected) ||
      isFinerHere(sql, expected) ||
      isLengthHere(sql, expected),
    run: (sql, header) =>
      makesDates.test(sql) || cutsFractions.test(sql)
        ? overHttp(server, sql)
        : answered(client, sql, header, turn++ % 2 === 0),
    restart: async () => {
      await client.end()
      await server.restart()
      client = await connected(server)
    },
    close: async () => {
      await client.end()
      await server.remove()
    },
  }
}

/** Transactions are kept here and accepted over HTTP; several statements are carried out here and refused there. */
const otherHere = /^\s*(begin|start transaction|commit|rollback|end|discard)\b|;\s*[a-z]/i

/** Columns that are declared `date` here have no time of day: the files mean those of HTTP. */
const makesDates = /^\s*(create table\b[^;]*\bdate\b|alter table\b.*\b(add( column)?|type) .*\bdate\b)/is

/** Fractions in columns of whole numbers are rounded here, and cut over HTTP. */
const cutsFractions = /^insert into (i_1|ty) .*\b\d\.[57]\b/i

async function overHttp(server: TestServer, sql: string): Promise<SltAnswer> {
  const { status, body } = await server.exec(sql)
  const { error = '', position = 0 } = body as { readonly error?: string; readonly position?: number }
  return status === 200 ? { kind: 'ok', lines: [] } : { kind: 'error', lines: errorLines(position, error) }
}

/** A time that is cast to a date keeps its time of day over HTTP, and its text is a number there. */
const dayOfTime = /\b(timestamp|ts)::date\b|::date::/i

/** Quotients of DECIMALs: with eighteen places here; constants of more places than their type are rounded. */
const quotientHere = /\b(d|1m) \/ [34]\b|\b[\d.]+m \/ [\d.]+m\b|\b1\.\d+m?::decimal\([45], ?1\)/

/** Means of DECIMALs have eighteen places here, and lengths count characters. */
const meanHere = /\bavg\((d\) d, avg\(e|1\.25m)\)|\blength\('a😀'\)|\blength\(x\), left\(x/u

/** The length of NULL is NULL here. */
function isLengthHere(sql: string, expected: readonly string[]): boolean {
  return /\b(char_)?length\(/i.test(sql) && expected.some((line) => /(^| )-1( |$)/.test(line))
}

/** Nanoseconds that six digits do not show; differences of such times are intervals here. */
function isFinerHere(sql: string, expected: readonly string[]): boolean {
  return expected.some((line) => /\.\d{6}(?!000)\d{3}Z/.test(line)) || /\bn - ts\b|sample by 500n/.test(sql)
}

/** Casts of what a BYTE or a SHORT does not hold: an error here, the low bits over HTTP. */
const narrowedHere = /\b(st|40000\.0|d|70000)::(byte|short)\b/i

/** What lies between two times is an interval here. */
const timesApart = /(::timestamp|\bts) - ('[^']*'::timestamp|\([^()]*\)::timestamp|ts\b)/i

/** Parts of a time that have a fraction here. */
const exactHere = /extract\('?(epoch|second|milliseconds|microseconds)\b/i

/** Columns of texts take the texts of numbers, times and booleans here, as PostgreSQL's do. */
function isTextHere(sql: string, [answer = '']: readonly string[]): boolean {
  return /^(insert|update)/i.test(sql) && /inconvertible types: \w+ -> (STRING|VARCHAR|SYMBOL)/.test(answer)
}

async function connected(server: TestServer): Promise<pg.Client> {
  const [host = '', port = ''] = server.address('postgres').split(':')
  const client = new pg.Client({ host, port: Number(port), user: 'admin', password: 'quest', database: 'qdb' })
  await client.connect()
  return client
}

/** Numbers of the catalog are INT over HTTP. */
const oidTypeOid = 26
/** A DATE over HTTP. */
const dayTypeOid = 1082
/** json, jsonb, and lists, which are texts over HTTP. */
const textTypeOids: readonly number[] = [19, 1003, 114, 3802, 1007, 1009, 1016]
/** Lists of booleans, of times, of days and of UUIDs, which are texts over HTTP. */
const listOids: readonly number[] = [1000, 1115, 1182, 1185, 2951]
/** Arrays of whole numbers, and their elements, which are doubles over HTTP. */
const wholeArrayOids: readonly number[] = [1007, 1016]
const wholeOids: readonly number[] = [20, 23]
const hasArray = /\barray\s*\[/i

const asText = { getTypeParser: () => (value: string) => value } as unknown as pg.CustomTypesConfig

async function answered(
  client: pg.Client,
  text: string,
  header: string | undefined,
  extended: boolean,
): Promise<SltAnswer> {
  try {
    const config = { text, rowMode: 'array' as const, types: asText, ...(extended ? { values: [] } : {}) }
    const result = (await client.query(config)) as pg.QueryArrayResult<(string | null)[]>
    if (result.fields.length === 0) return { kind: 'ok', lines: [] }
    const wanted = splitCells(header ?? '').map(nameAndType)
    const types = result.fields.map(({ dataTypeID }, index) =>
      typeOf(dataTypeID, wanted[index]?.type ?? '', hasArray.test(text)),
    )
    const names = result.fields.map(({ name }, index) =>
      plainText(`${nameOf(name, wanted[index]?.name ?? '')}:${types[index]}`),
    )
    const rows = result.rows.map((row) =>
      row.map((cell, index) => cellOf(cell, types[index] ?? '', result.fields[index]?.dataTypeID)).join(' | '),
    )
    return { kind: 'query', lines: [names.join(' | '), ...rows] }
  } catch (error) {
    const { message, position } = error as pg.DatabaseError
    return { kind: 'error', lines: errorLines(position === undefined ? 0 : Number(position) - 1, message) }
  }
}

function nameAndType(cell: string): { readonly name: string; readonly type: string } {
  const text = cell.startsWith('"') ? (JSON.parse(cell) as string) : cell
  const colon = text.lastIndexOf(':')
  return { name: text.slice(0, colon), type: text.slice(colon + 1) }
}

/** What only PostgreSQL's clients ask is named as PostgreSQL names it: `count` for `count()`. */
function nameOf(name: string, wanted: string): string {
  return wanted.startsWith(`${name}(`) ? wanted : name
}

/** The expected type, if it is sent as what has come; else the name of the wire's type. */
function typeOf(oid: number, wanted: string, ofArray: boolean): string {
  const base = (wanted.endsWith('[]') ? 'ARRAY' : wanted.replace(/\(.*/, '')) as ColumnType
  const isOid = base === 'INT' && oid === oidTypeOid
  const isText = base === 'STRING' && [...textTypeOids, ...listOids].includes(oid)
  const isDay = base === 'DATE' && oid === dayTypeOid
  const isWhole =
    base === 'ARRAY' ? wholeArrayOids.includes(oid) : ofArray && base === 'DOUBLE' && wholeOids.includes(oid)
  return isOid || isText || isDay || isWhole || columnTypes[base]?.pgOid === oid ? wanted : `oid ${oid}`
}

function cellOf(text: string | null, type: string, oid = 0): string {
  if (text === null) return type === 'CHAR' || type === 'LONG256' ? '""' : 'NULL'
  if (type.endsWith('[]')) return arrayOf(wholeArrayOids.includes(oid) ? text.replace(/\d+/g, '$&.0') : text)
  switch (type) {
    case 'BOOLEAN':
      return text === 't' ? 'true' : 'false'
    case 'TIMESTAMP':
    case 'TIMESTAMP_NS':
    case 'DATE':
      return timeOf(text, { TIMESTAMP: 6, TIMESTAMP_NS: 9, DATE: 3 }[type])
    case 'DOUBLE':
    case 'FLOAT':
      return /^-?(NaN|Infinity)$/.test(text) ? 'NULL' : text
    case 'STRING':
      return plainText(listOids.includes(oid) ? listOf(text) : text)
    case 'BINARY':
      return 'NULL'
    default:
      return plainText(text)
  }
}

function arrayOf(text: string): string {
  return text.replaceAll('{', '[').replaceAll('}', ']').replaceAll('NULL', 'null').replaceAll('NaN', 'null')
}

/** `{t,"2024-01-01 00:00:00.5"}` in the forms of this dialect. */
function listOf(text: string): string {
  return text
    .replace(/"([-\d]+ [.:\d]+)(?:\+00)?"/g, (_, time: string) => timeOf(time, 6))
    .replace(/(?<=[{,])[tf](?=[,}])/g, (letter) => (letter === 't' ? 'true' : 'false'))
}

/** `2024-01-01 10:00:00.5` is `2024-01-01T10:00:00.500000Z`. */
function timeOf(text: string, digits: number): string {
  const whole = /^\d+-\d\d-\d\d$/.test(text) ? `${text} 00:00:00` : text
  const [seconds = '', fraction = ''] = whole.replace(' ', 'T').replace(/\+00$/, '').split('.')
  return `${seconds}.${fraction.padEnd(digits, '0').slice(0, digits)}Z`
}
