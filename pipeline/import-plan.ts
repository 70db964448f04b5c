// Where the fields of a CSV file go: detected columns, what the schema part says about them, and the table if it is
// there.

import type { CsvColumn, CsvShape, TableShape } from '../engine/engine.js'
import { type DataType, typeText } from '../engine/types/column-types.js'
import type { Detected } from './csv-detect.js'
import { ImportError, type SchemaColumn } from './import-schema.js'

export interface PlannedColumn extends CsvColumn {
  /** The type is a guess: it gives way to a wider one. */
  readonly guessed: boolean
  /** Of the table; -1 while there is none. */
  readonly columnId: number
}

export interface ImportPlan {
  readonly header: boolean
  readonly delimiter: number
  readonly columns: readonly PlannedColumn[]
  /** Name of the designated timestamp. */
  readonly timestamp: string | null
  readonly partitionBy: string
  readonly warnings: readonly string[]
}

export interface PlanRequest {
  readonly name: string
  readonly detected: Detected
  readonly delimiter: string
  readonly records: readonly (readonly string[])[]
  readonly schema: readonly SchemaColumn[]
  /** The table that takes the rows; undefined when it is to be made. */
  readonly table: TableShape | undefined
  readonly timestamp: string | null
  readonly partitionBy: string | null
  /** Types that guesses had to give way to, by field. */
  readonly widened: ReadonlyMap<number, DataType>
}

/** A name may be a value of these. */
const namesAreValues: ReadonlySet<string> = new Set(['VARCHAR', 'STRING', 'SYMBOL', 'CHAR', 'GEOHASH', 'BINARY'])

/**
 * Whether the first line can only be a header, whatever the values below it look like: it has the names of the schema
 * part, or names of the table alone, and one of those columns cannot hold its name.
 */
export function isKnownHeader(
  record: readonly string[],
  schema: readonly SchemaColumn[],
  table: TableShape | undefined,
): boolean {
  const names = record.map((name) => name.trim().toLowerCase())
  const isIn = ({ name }: { readonly name: string }): boolean => names.includes(name.toLowerCase())
  const columns = (table?.columns ?? []).filter(isIn)
  const known = new Set(columns.map(({ name }) => name.toLowerCase()))
  const isOf = (found: readonly { readonly type: DataType }[]): boolean =>
    found.some(({ type }) => !namesAreValues.has(type.name))
  return (schema.every(isIn) && isOf(schema)) || (names.every((name) => known.has(name)) && isOf(columns))
}

export function planImport(request: PlanRequest): ImportPlan {
  const { detected, delimiter } = request
  const own = detected.columns.map((column, index) => withSchema(request, column, index))
  const base = { header: detected.header, delimiter: delimiter.charCodeAt(0) }
  return request.table === undefined
    ? { ...base, ...planNew(request, own) }
    : { ...base, ...planExisting(request, request.table, own) }
}

export function shapeOfPlan({ columns, delimiter, header, timestamp }: ImportPlan): CsvShape {
  return {
    delimiter,
    header,
    columns: columns.map(({ name, type, pattern }) => ({ name, type, pattern })),
    timestamp: columns.findIndex(({ name }) => name === timestamp),
  }
}

function withSchema({ schema, detected, widened }: PlanRequest, column: CsvColumn, index: number): PlannedColumn {
  const byName = schema.find(({ name }) => name.toLowerCase() === column.name.toLowerCase())
  const byPlace = detected.header || schema.length !== detected.columns.length ? undefined : schema[index]
  const said = byName ?? byPlace
  if (said !== undefined) {
    const name = byName === undefined ? said.name : column.name
    return { name, type: said.type, pattern: said.pattern, guessed: false, columnId: -1 }
  }
  const wider = widened.get(index)
  if (wider !== undefined) return { name: column.name, type: wider, pattern: null, guessed: true, columnId: -1 }
  return { ...column, guessed: true, columnId: -1 }
}

type PlanRest = Omit<ImportPlan, 'header' | 'delimiter'>

function planNew(request: PlanRequest, columns: readonly PlannedColumn[]): PlanRest {
  const timestamp =
    request.timestamp === null ? findTimestamp(request, columns) : namedTimestamp(request.timestamp, columns)
  const sure = columns.map((column) => (column.name === timestamp ? { ...column, guessed: column.guessed } : column))
  const partitionBy = timestamp === null ? 'NONE' : (request.partitionBy ?? 'DAY')
  return { columns: sure, timestamp, partitionBy, warnings: [] }
}

function isTimestamp({ type }: CsvColumn): boolean {
  return type.name === 'TIMESTAMP' || type.name === 'TIMESTAMP_NS'
}

function namedTimestamp(wanted: string, columns: readonly PlannedColumn[]): string {
  const found = columns.find(({ name }) => name.toLowerCase() === wanted.toLowerCase())
  if (found === undefined) throw new ImportError(`invalid timestamp column '${wanted}'`)
  if (!isTimestamp(found)) throw new ImportError(`not a timestamp '${wanted}'`)
  return found.name
}

/** The first column of times that is never blank in the sample. */
function findTimestamp({ records }: PlanRequest, columns: readonly PlannedColumn[]): string | null {
  const index = columns.findIndex((column, at) => isTimestamp(column) && records.every((record) => record[at] !== ''))
  return columns[index]?.name ?? null
}

function planExisting(request: PlanRequest, table: TableShape, own: readonly PlannedColumn[]): PlanRest {
  if (own.length > table.columns.length) {
    const counts = `textColumnCount=${own.length}, tableColumnCount=${table.columns.length}`
    throw new ImportError(`column count mismatch [${counts}, table=${table.name}]`)
  }
  const places = fieldsInTable(request, table, own)
  const columns = own.map((column, index) => {
    const { id, name, type } = table.columns[places[index] as number] as TableShape['columns'][number]
    return { name, type, pattern: patternFor(column, type), guessed: false, columnId: id }
  })
  const warnings: string[] = []
  if (request.partitionBy !== null && request.partitionBy !== table.partitionBy) {
    warnings.push('Existing table PartitionBy is used')
  }
  if (request.timestamp !== null) {
    const named = namedTimestamp(request.timestamp, columns)
    if (named !== table.timestamp) warnings.push('Existing table timestamp column is used')
  }
  if (table.timestamp !== null && !columns.some(({ name }) => name === table.timestamp)) {
    throw new ImportError(`the file lacks the designated timestamp [column=${table.timestamp}, table=${table.name}]`)
  }
  return { columns, timestamp: table.timestamp, partitionBy: table.partitionBy, warnings }
}

/** Fields are found by the names of the header when it has names of the table, else by their places. */
function fieldsInTable({ detected }: PlanRequest, table: TableShape, own: readonly PlannedColumn[]): number[] {
  const byName = own.map((column) =>
    table.columns.findIndex(({ name }) => name.toLowerCase() === column.name.toLowerCase()),
  )
  if (!detected.header || byName.every((place) => place < 0)) return own.map((_, index) => index)
  const missing = own[byName.indexOf(-1)]
  if (missing !== undefined)
    throw new ImportError(`column does not exist [column=${missing.name}, table=${table.name}]`)
  return byName
}

/** A pattern counts for times only. */
function patternFor({ pattern, type: found }: PlannedColumn, { name }: DataType): string | null {
  const times = ['DATE', 'TIMESTAMP', 'TIMESTAMP_NS']
  return times.includes(name) && (times.includes(found.name) || pattern === null) ? pattern : null
}

/** The statement that makes the table. */
export function createStatement(name: string, { columns, timestamp, partitionBy }: ImportPlan): string {
  const list = columns.map((column) => `"${column.name}" ${typeText(column.type)}`).join(', ')
  const tail = timestamp === null ? '' : ` TIMESTAMP("${timestamp}") PARTITION BY ${partitionBy}`
  return `CREATE TABLE "${name}" (${list})${tail}`
}
