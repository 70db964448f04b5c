// Imports the rows of a Parquet file, which a client has uploaded or COPY FROM names: read_parquet() returns them as
// CSV, which an ImportSession stores. Column types are those of the file unless the request or the table has others.
// Before an import, a client may ask for a preview: the columns, the number of rows, and the first rows.

import { SqlError } from '../engine/base/errors.js'
import {
  type Engine,
  mayHoldSmallest,
  type ResultColumn,
  type Session,
  type StopSignal,
  type TableShape,
} from '../engine/engine.js'
import { type ColumnType, type DataType, typeText } from '../engine/types/column-types.js'
import { columnName } from './csv-detect.js'
import type { ImportSession } from './import.js'
import type { ImportOptions } from './import-options.js'
import { placesByName } from './import-plan.js'
import type { SchemaColumn } from './import-schema.js'

export interface ParquetFile {
  /** As read_parquet() takes it. */
  readonly name: string
  readonly path: string
  /** Its name in errors. */
  readonly title: string
  /** Where the statement names it; 0: nowhere. */
  readonly position: number
}

export interface ParquetImport {
  readonly engine: Pick<Engine, 'execute' | 'validate'>
  /** May write; reading the file follows from that. */
  readonly session: Session
  readonly signal: StopSignal | null
}

/** Options that request all rows of a query. */
export const wholeResult = {
  encoding: { kind: 'csv', delimiter: 44, header: true },
  parameters: [],
  skip: 0,
  rowsMax: Number.POSITIVE_INFINITY,
  countAll: false,
  columns: null,
  explain: false,
} as const

/** Representation of NULL where an empty field is not possible. */
const nullText = '\\N'

/** Returns the columns of a file. Throws SqlError. */
export function parquetColumns({ engine, session }: ParquetImport, file: ParquetFile): readonly ResultColumn[] {
  try {
    return engine.validate(`select * from ${parquetSource(file)}`, reading(session)).columns ?? []
  } catch (error) {
    throw ofFile(error, file)
  }
}

/** The file in FROM. */
function parquetSource({ name }: ParquetFile, options = ''): string {
  return `read_parquet('${name.replaceAll("'", "''")}'${options})`
}

/** What a session that imports these columns must know. */
export function parquetOptions(
  columns: readonly ResultColumn[],
): Pick<ImportOptions, 'delimiter' | 'firstLine' | 'forceHeader' | 'nullText' | 'place'> {
  return {
    ...{ delimiter: ',', forceHeader: true, nullText: columns.length === 1 ? nullText : undefined },
    // The line with the names is none of the file.
    ...{ firstLine: 0, place: 'row' },
  }
}

/**
 * Writes the rows to the session. Binary values are written as hexadecimal digits, which the import decodes. Integers are
 * read exactly if some may be the number that represents NULL, so that the import reports it.
 */
export async function importParquet(
  request: ParquetImport,
  file: ParquetFile,
  columns: readonly ResultColumn[],
  into: { readonly session: ImportSession; readonly schema: readonly SchemaColumn[] },
): Promise<void> {
  const { engine, session, signal } = request
  try {
    const planned = columns.map((column) => withSchema(column, into.schema))
    const unknown = into.schema.filter(({ name }) => !columns.some((column) => isNamed(column, name)))
    await into.session.schema([...planned, ...unknown])
    const texts = textColumns(into.session.existing, planned)
    const list = columns.map(({ name, type }, index) => copiedColumn(name, type, texts[index] === true))
    const options = mayHoldSmallest(file) ? ", 'exact'" : ''
    const rows = await engine.execute(`select ${list.join()} from ${parquetSource(file, options)}`, {
      ...wholeResult,
      session: reading(session),
      signal,
      timeoutMs: 0,
    })
    if (rows.kind !== 'rows') throw new SqlError('a Parquet file must return rows', file.position)
    const marked = columns.length === 1 ? new NullLines() : null
    for await (const block of rows.blocks) {
      const bytes = Buffer.from(block)
      await into.session.write(marked?.mark(bytes) ?? bytes)
    }
    await rows.summary
  } catch (error) {
    throw ofFile(error, file)
  }
}

/** A session that may read the file: importing needs the right to write only. */
function reading(session: Session): Session {
  return { ...session, rights: { ...session.rights, read: true } }
}

/** Names the file, and its place in the statement, in an error of the internal statement. */
function ofFile(error: unknown, { name, title, position }: ParquetFile): unknown {
  if (!(error instanceof SqlError)) return error
  const message = error.message.replaceAll(name, () => title)
  return new SqlError(message, position)
}

/** Whether two names, of which one may be converted already, are those of one column. */
function isNamed({ name }: { readonly name: string }, other: string): boolean {
  const [own, wanted] = [name, other].map((each) => (columnName(each) || each).toLowerCase())
  return own === wanted
}

function withSchema({ name, type }: ResultColumn, schema: readonly SchemaColumn[]): SchemaColumn {
  const given = schema.find((column) => isNamed(column, name))
  return { name, type: given?.type ?? type, pattern: given?.pattern ?? null, as: given?.as ?? null }
}

const textTypes: ReadonlySet<ColumnType> = new Set(['VARCHAR', 'STRING', 'SYMBOL'])

/** Which columns become text, in the table if it exists. */
function textColumns(existing: TableShape | undefined, planned: readonly SchemaColumn[]): readonly boolean[] {
  const names = planned.map(({ name, as }) => columnName(as ?? name))
  const places = existing === undefined ? [] : placesByName(names, existing)
  return planned.map(({ type }, index) => {
    const stored = existing?.columns[places[index] ?? -1]
    return textTypes.has(stored?.type.name ?? type?.name ?? 'BINARY')
  })
}

function copiedColumn(name: string, { name: type }: DataType, isText: boolean): string {
  const quoted = `"${name.replaceAll('"', '""')}"`
  if (type !== 'BINARY') return quoted
  if (isText) return `convert_from(${quoted}, 'UTF8') ${quoted}`
  return `case when ${quoted} is not null then '\\x' || encode(${quoted}, 'hex') end ${quoted}`
}

/** Writes NULL as a word in a single-column file, since imports skip empty lines. */
class NullLines {
  #atStart = true
  #quoted = false

  mark(bytes: Buffer): Buffer {
    const parts: Buffer[] = []
    let from = 0
    for (let at = 0; at < bytes.length; at++) {
      const byte = bytes[at]
      if (byte === 0x22) this.#quoted = !this.#quoted
      if (this.#atStart && (byte === 0x0d || byte === 0x0a)) {
        parts.push(bytes.subarray(from, at), Buffer.from(nullText))
        from = at
      }
      this.#atStart = byte === 0x0a && !this.#quoted
    }
    return Buffer.concat([...parts, bytes.subarray(from)])
  }
}

const encoding = { kind: 'json', quoteLargeNumbers: true, geohashAsText: true } as const

/** A JSON object: columns, rowCount and, as arrays of values, the first rows in `dataset`. */
export async function previewParquet(request: ParquetImport, file: ParquetFile, rowsMax: number): Promise<string> {
  const { engine, session, signal } = request
  const from = parquetSource(file)
  const columns = parquetColumns(request, file)
  const rowsOf = async (sql: string): Promise<string> => {
    const options = { ...wholeResult, session: reading(session), signal, timeoutMs: 0, encoding, rowsMax }
    const result = await engine.execute(sql, options)
    if (result.kind !== 'rows') return ''
    const blocks: Buffer[] = []
    for await (const block of result.blocks) blocks.push(Buffer.from(block))
    await result.summary
    return Buffer.concat(blocks).toString()
  }
  try {
    const count = await rowsOf(`select count() from ${from}`)
    const dataset = await rowsOf(`select * from ${from}`)
    const described = columns.map(({ name, type }) => ({ name, type: typeText(type) }))
    const rowCount = Number(/\d+/.exec(count)?.[0] ?? 0)
    return `{"status":"OK","columns":${JSON.stringify(described)},"rowCount":${rowCount},"dataset":[${dataset}]}`
  } catch (error) {
    throw ofFile(error, file)
  }
}
