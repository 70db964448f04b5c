// Plans a CSV import: maps the fields of the file to columns, from the detected columns, the request's schema and the
// table, if it exists.

import type { CsvColumn, CsvShape, EpochUnit, TableShape } from '../engine/engine.js'
import { type DataType, isDay, typeText } from '../engine/types/column-types.js'
import { columnName, type Detected } from './csv-detect.js'
import { ImportError, type SchemaColumn } from './import-schema.js'
import { asTimes, isTimestamp, loneTimestamp, type OptionWords } from './import-times.js'

interface PlannedColumn extends CsvColumn {
  /** The type was detected and may be widened. */
  readonly guessed: boolean
  /** Id in the table; -1 while the table does not exist. */
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
  /** The request says that the first line contains names. */
  readonly forceHeader: boolean
  readonly delimiter: string
  readonly records: readonly (readonly string[])[]
  /** Line numbers of the records in the file. */
  readonly lines: readonly number[]
  readonly schema: readonly SchemaColumn[]
  /** The target table; undefined when it must be created. */
  readonly table: TableShape | undefined
  /** Column of the designated timestamp; null: detect; empty: none. */
  readonly timestamp: string | null
  /** Unit of numbers in that column; null: detect from their magnitude. */
  readonly unit: EpochUnit | null
  readonly words: OptionWords
  readonly partitionBy: string | null
  /** Types that replaced detected ones that were too narrow, by field. */
  readonly widened: ReadonlyMap<number, DataType>
}

/** Types for which a column name is a valid value. */
const namesAreValues: ReadonlySet<string> = new Set(['VARCHAR', 'STRING', 'SYMBOL', 'CHAR', 'GEOHASH', 'BINARY'])

/**
 * Whether the first line must be a header, whatever values follow: it contains the timestamp's name, the names of the
 * schema, or only names of the table, and one of those columns cannot hold its own name as a value.
 */
export function isKnownHeader(
  record: readonly string[],
  schema: readonly SchemaColumn[],
  table: TableShape | undefined,
  timestamp: string | null,
): boolean {
  const names = record.map((name) => name.trim().toLowerCase())
  if (timestamp !== null && timestamp !== '' && names.includes(timestamp.toLowerCase())) return true
  const isIn = ({ name }: { readonly name: string }): boolean => names.includes(name.toLowerCase())
  const columns = (table?.columns ?? []).filter(isIn)
  const known = new Set(columns.map(({ name }) => name.toLowerCase()))
  const isOf = (found: readonly { readonly type: DataType | null }[]): boolean =>
    found.some(({ type }) => type !== null && !namesAreValues.has(type.name))
  return (schema.every(isIn) && isOf(schema)) || (names.every((name) => known.has(name)) && isOf(columns))
}

export function planImport(request: PlanRequest): ImportPlan {
  const { detected, delimiter } = request
  const own = detected.columns.map((column, index) => withSchema(request, column, index))
  checkNames(own)
  const base = { header: detected.header, delimiter: delimiter.charCodeAt(0) }
  return request.table === undefined
    ? { ...base, ...planNew(request, own) }
    : { ...base, ...planExisting(request, request.table, own) }
}

export function shapeOfPlan(
  { columns, delimiter, header, timestamp }: ImportPlan,
  { skipExtra, nullText }: { readonly skipExtra: boolean; readonly nullText?: string | undefined },
): CsvShape {
  return {
    ...(nullText === undefined ? {} : { nullText }),
    delimiter,
    header,
    skipExtra,
    columns: columns.map(({ name, type, pattern, guessed }) => ({ name, type, pattern, guessed })),
    timestamp: columns.findIndex(({ name }) => name === timestamp),
  }
}

function checkNames(columns: readonly PlannedColumn[]): void {
  const seen = new Set<string>()
  for (const { name } of columns) {
    if (seen.has(name.toLowerCase())) throw new ImportError(`two columns have the same name [column=${name}]`)
    seen.add(name.toLowerCase())
  }
}

/** Applies the schema to a column: by column name or header field; without a header also by position. */
function withSchema({ schema, detected, widened }: PlanRequest, column: CsvColumn, index: number): PlannedColumn {
  const byName = schema.find(({ name }) => isNamed(column, name))
  const byPlace = detected.header || schema.length !== detected.columns.length ? undefined : schema[index]
  const given = byName ?? byPlace
  const as = given?.as ?? null
  const name = as !== null ? columnName(as) : byName === undefined && given !== undefined ? given.name : column.name
  if (given !== undefined && given.type !== null)
    return { name, type: given.type, pattern: given.pattern, guessed: false, columnId: -1 }
  const wider = widened.get(index)
  if (wider !== undefined) return { name, type: wider, pattern: null, guessed: true, columnId: -1 }
  return { ...column, name, guessed: true, columnId: -1 }
}

function isNamed({ name }: { readonly name: string }, wanted: string): boolean {
  return [wanted, columnName(wanted)].some((each) => each.toLowerCase() === name.toLowerCase())
}

type PlanRest = Omit<ImportPlan, 'header' | 'delimiter'>

function planNew(request: PlanRequest, columns: readonly PlannedColumn[]): PlanRest {
  const { timestamp: wanted, records, lines } = request
  if (wanted === '') checkUnit(request, null)
  const place = wanted === null ? loneTimestamp(columns, records) : wanted === '' ? -1 : placeOf(wanted, columns)
  const found = columns[place]
  if (wanted === null) checkUnit(request, found ?? null)
  const warnings = [...unknownNames(request, columns), ...unclearDays(request, columns)]
  if (found === undefined) return { columns, timestamp: null, partitionBy: 'NONE', warnings }
  const fields = records.map((record, index) => ({ line: lines[index] ?? 0, text: record[place] ?? '' }))
  const times = wanted === null ? found : { ...found, ...asTimes(found, fields, request) }
  return {
    columns: columns.map((column) => (column === found ? times : column)),
    timestamp: found.name,
    partitionBy: request.partitionBy ?? 'DAY',
    warnings,
  }
}

/** Names in the schema that match no column of the file, or the new name of one. */
function unknownNames({ schema, detected }: PlanRequest, columns: readonly PlannedColumn[]): string[] {
  const known = [...detected.columns, ...columns]
  const unknown = schema.filter(({ name }) => !known.some((column) => isNamed(column, name)))
  return unknown.map(({ name }) => `the schema part names a column that the file does not have: ${name}`)
}

function unclearDays({ detected, words }: PlanRequest, columns: readonly PlannedColumn[]): string[] {
  return detected.unclearDays.flatMap((index) => {
    const column = columns[index]
    if (column?.guessed !== true || column.type.name !== 'VARCHAR') return []
    return [`column ${column.name} is text: its days can be dd/MM/yyyy or MM/dd/yyyy, and ${words.pattern} says which`]
  })
}

/** A unit requires a named timestamp column or a table with a designated timestamp. */
function checkUnit({ unit, words }: PlanRequest, column: PlannedColumn | null): void {
  if (unit !== null)
    throw new ImportError(
      `a unit is of the column that ${words.timestamp} names [unit=${unit}${column === null ? '' : `, column=${column.name}`}]`,
    )
}

function placeOf(wanted: string, columns: readonly PlannedColumn[]): number {
  const place = columns.findIndex((column) => isNamed(column, wanted))
  if (place < 0) throw new ImportError(`invalid timestamp column '${wanted}'`)
  return place
}

function planExisting(request: PlanRequest, table: TableShape, own: readonly PlannedColumn[]): PlanRest {
  if (own.length > table.columns.length) {
    const counts = `textColumnCount=${own.length}, tableColumnCount=${table.columns.length}`
    throw new ImportError(`column count mismatch [${counts}, table=${table.name}]`)
  }
  const places = fieldsInTable(request, table, own)
  const { unit } = request
  const columns = own.map((column, index) => {
    const { id, name, type: stored, wanted } = table.columns[places[index] as number] as TableShape['columns'][number]
    const type = isDay(wanted) ? wanted : stored
    const pattern = unit !== null && name === table.timestamp ? `epoch_${unit}` : patternFor(column, type)
    return { name, type, pattern, guessed: false, columnId: id }
  })
  const warnings = [...unknownNames(request, own), ...unknownHeader(request, table, own)]
  if (request.partitionBy !== null && request.partitionBy !== table.partitionBy) {
    warnings.push('Existing table PartitionBy is used')
  }
  if (request.timestamp !== null && request.timestamp !== '') {
    const named = columns[placeOf(request.timestamp, columns)] as PlannedColumn
    if (!isTimestamp(named)) throw new ImportError(`not a timestamp '${request.timestamp}'`)
    if (named.name !== table.timestamp) warnings.push('Existing table timestamp column is used')
  }
  if (table.timestamp === null) checkUnit(request, null)
  if (table.timestamp !== null && !columns.some(({ name }) => name === table.timestamp)) {
    throw new ImportError(
      `the file has no column for the designated timestamp [column=${table.timestamp}, table=${table.name}]`,
    )
  }
  return { columns, timestamp: table.timestamp, partitionBy: table.partitionBy, warnings }
}

function fieldsInTable(
  { detected, schema, forceHeader }: PlanRequest,
  table: TableShape,
  own: readonly PlannedColumn[],
): readonly number[] {
  const names = own.map(({ name }) => name)
  const isRenamed = schema.some(({ as }) => as !== null && names.includes(columnName(as)))
  const inOrder = names.map((_, index) => index)
  const byName = isRenamed || detected.header ? placesByName(names, table) : inOrder
  const places = isRenamed || forceHeader || hasAny(byName) ? byName : inOrder
  const missing = own[places.indexOf(-1)]
  if (missing !== undefined)
    throw new ImportError(
      `column does not exist [column=${missing.name}, table=${table.name}, columns=${columnList(table)}]`,
    )
  return places
}

/** A detected header without any name of the table: the fields are stored by position. */
function unknownHeader({ detected }: PlanRequest, table: TableShape, own: readonly PlannedColumn[]): readonly string[] {
  const names = own.map(({ name }) => name)
  if (!detected.header || hasAny(placesByName(names, table))) return []
  return [
    `the header has no name of a column, and the fields are stored by position [header=${names.slice(0, namesShown).join()}, columns=${columnList(table)}]`,
  ]
}

function hasAny(places: readonly number[]): boolean {
  return places.some((place) => place >= 0)
}

const namesShown = 20

function columnList({ columns }: TableShape): string {
  const names = columns.slice(0, namesShown).map(({ name }) => name)
  return [...names, ...(columns.length > namesShown ? ['..'] : [])].join()
}

/** Maps fields to columns by their names. -1: the table has no such column. */
export function placesByName(names: readonly string[], table: TableShape): readonly number[] {
  // Names of the header are converted, and so are those of the table that cannot be such a name.
  const converted = table.columns.map(({ name }, index) => [columnName(name).toLowerCase(), index] as const)
  const known = new Map([...converted, ...table.columns.map(({ name }, index) => [name.toLowerCase(), index] as const)])
  return names.map((name) => known.get(name.toLowerCase()) ?? -1)
}

/** A pattern applies to timestamps only. */
function patternFor({ pattern, type: found }: PlannedColumn, { name }: DataType): string | null {
  const times = ['DATE', 'TIMESTAMP', 'TIMESTAMP_NS']
  return times.includes(name) && (times.includes(found.name) || pattern === null) ? pattern : null
}

/** Returns the CREATE TABLE statement. */
export function createStatement(name: string, { columns, timestamp, partitionBy }: ImportPlan): string {
  const list = columns.map((column) => `"${column.name}" ${typeText(column.type)}`).join(', ')
  const tail = timestamp === null ? '' : ` TIMESTAMP("${timestamp}") PARTITION BY ${partitionBy}`
  return `CREATE TABLE "${name}" (${list})${tail}`
}
