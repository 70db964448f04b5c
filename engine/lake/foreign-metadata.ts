// Reads the metadata of an Iceberg table that another program wrote, format versions 1 to 3: its columns, its partition
// specs, and where the current snapshot lists its manifests. The fields of a struct `place` are columns
// `place_<field>`, as in other Parquet files; maps and lists of anything but numbers are JSON. Columns whose type or
// default this server does not support are left out. Throws ForeignTableError if the table uses other features that it
// cannot read.

import { structDepthMax } from '../base/limits.js'
import { type LeftOutColumn, type NestedShape, pathSeparator } from '../parquet/foreign-file.js'
import { type DataType, dataType } from '../types/column-types.js'
import type { Value } from '../types/value.js'
import {
  defaultOf,
  type ForeignField,
  type ForeignType,
  foreignTypeText,
  shapeOfForeign,
  typeOfForeign,
} from './foreign-types.js'

export interface TableField {
  readonly id: number
  readonly name: string
  readonly type: DataType
  /** As the metadata names it. */
  readonly foreign: ForeignType
  /** Of rows in files from before the column. */
  readonly initial: Value
  /** Paths of the column in files without field ids; null: the table has no name mapping. */
  readonly paths: readonly string[] | null
  /** Of a column of JSON; null: of any other. */
  readonly shape: NestedShape | null
}

export interface PartitionSource {
  /** As Avro records have it. */
  readonly name: string
  readonly sourceId: number
  readonly transform: string
}

export interface ForeignMetadata {
  readonly location: string
  readonly fields: readonly TableField[]
  readonly leftOut: readonly LeftOutColumn[]
  /** The field with this id, which may be dropped since; null: unknown, or of a type that is not supported. */
  readonly fieldOf: (id: number) => TableField | null
  /** By spec id. */
  readonly specs: ReadonlyMap<number, readonly PartitionSource[]>
  /** Null: the table has no rows. */
  readonly snapshot: { readonly id: string; readonly manifestList: string; readonly rows: number } | null
}

/** A table that cannot be read: the message says why. */
export class ForeignTableError extends Error {}

interface Json {
  readonly 'format-version'?: number
  readonly location?: string
  readonly schema?: JsonSchema
  readonly schemas?: readonly JsonSchema[]
  readonly 'current-schema-id'?: number
  readonly 'partition-spec'?: readonly JsonPartition[]
  readonly 'partition-specs'?: readonly { readonly 'spec-id': number; readonly fields: readonly JsonPartition[] }[]
  readonly properties?: Readonly<Record<string, string>>
  readonly 'current-snapshot-id'?: string | null
  readonly snapshots?: readonly JsonSnapshot[]
}

interface JsonSchema {
  readonly 'schema-id'?: number
  readonly fields: readonly ForeignField[]
}

interface JsonPartition {
  readonly name: string
  readonly 'source-id'?: number
  readonly transform: string
}

interface JsonSnapshot {
  readonly 'snapshot-id': string
  readonly 'manifest-list'?: string
  readonly summary?: Readonly<Record<string, string>>
}

interface JsonMapping {
  readonly 'field-id'?: number
  readonly names: readonly string[]
  readonly fields?: readonly JsonMapping[]
}

const mappedNamesMax = 1000

export function parseForeignMetadata(text: string): ForeignMetadata {
  const json = parsed(text)
  const version = json['format-version']
  if (version === undefined || json.location === undefined)
    throw new ForeignTableError('the file is not the metadata of an Iceberg table')
  if (version < 1 || version > 3) throw new ForeignTableError(`format version ${version} is not supported`)
  const schema = json.schemas?.find((one) => one['schema-id'] === json['current-schema-id']) ?? json.schema
  if (schema === undefined) throw new ForeignTableError('the metadata lacks its current schema')
  const mapping = json.properties?.['schema.name-mapping.default']
  const { fields, leftOut } = columnsIn(schema, mapping)
  return {
    location: json.location.replace(/\/+$/, ''),
    fields,
    leftOut,
    fieldOf: remembered(
      (id) => fields.find((field) => field.id === id) ?? formerField(json.schemas ?? [], mapping, id),
    ),
    specs: specsOf(json),
    snapshot: snapshotOf(json),
  }
}

/** Ids of snapshots have 63 bits, as may defaults, so they are read as texts. */
function parsed(text: string): Json {
  try {
    const json: Json = JSON.parse(
      text
        .replace(/("(?:current-snapshot-id|snapshot-id|parent-snapshot-id)"\s*:\s*)(-?\d+)/g, '$1"$2"')
        .replace(/("initial-default"\s*:\s*)(-?\d{16,19})(?=\s*[,}])/g, '$1"$2"'),
    )
    if (typeof json === 'object' && json !== null) return json
  } catch {
    // Said below.
  }
  throw new ForeignTableError('the file is not the metadata of an Iceberg table')
}

function columnsIn(
  schema: JsonSchema,
  mapping: string | undefined,
): { readonly fields: readonly TableField[]; readonly leftOut: readonly LeftOutColumn[] } {
  const paths = pathsOf(mapping)
  const leftOut: LeftOutColumn[] = []
  const columns = schema.fields.map((field) => columnsOf(field, top, { paths, leftOut }))
  requireDistinctNames(schema, columns)
  const fields = columns.flat()
  const [first] = leftOut
  if (fields.length === 0 && first !== undefined) throw new ForeignTableError(`${first.reason} [column=${first.name}]`)
  return { fields, leftOut }
}

function remembered<Value>(find: (id: number) => Value): (id: number) => Value {
  const known = new Map<number, { readonly value: Value }>()
  return (id) => {
    const found = known.get(id) ?? { value: find(id) }
    known.set(id, found)
    return found.value
  }
}

/** From the newest schema that has it. */
function formerField(schemas: readonly JsonSchema[], mapping: string | undefined, id: number): TableField | null {
  const paths = pathsOf(mapping)
  for (const { fields } of [...schemas].reverse()) {
    for (const field of fields) {
      const found = columnsOf(field, top, { paths, leftOut: [] }).find((one) => one.id === id)
      if (found !== undefined) return found
    }
  }
  return null
}

/** Two columns may have names that differ in case alone, unless one of them is in a struct. `columns`: by field. */
function requireDistinctNames({ fields }: JsonSchema, columns: readonly (readonly TableField[])[]): void {
  const all = new Set<string>()
  const inStructs = new Set<string>()
  for (const [index, own] of columns.entries()) {
    const isStruct = structFields(fields[index]?.type).length > 0
    for (const { name } of own) {
      const key = name.toLowerCase()
      if ((isStruct ? all : inStructs).has(key))
        throw new ForeignTableError(`two columns have the name ${name}, one of them in a struct`)
      all.add(key)
      if (isStruct) inStructs.add(key)
    }
  }
}

/** The structs that a field is in. */
interface Above {
  /** What its name begins with. */
  readonly name: string
  readonly depth: number
  /** Whether one of them may be NULL. */
  readonly isOptional: boolean
}

const top: Above = { name: '', depth: 0, isOptional: false }

interface Collected {
  /** Of the name mapping, by field id. */
  readonly paths: ReadonlyMap<number, readonly string[]> | null
  readonly leftOut: LeftOutColumn[]
}

/** The columns of a field, several for a struct. Those that cannot be read go to `leftOut`. */
function columnsOf(
  { id, name: own, type: foreign, required, 'initial-default': json }: ForeignField,
  above: Above,
  into: Collected,
): TableField[] {
  const name = `${above.name}${own}`
  const without = (reason: string): [] => {
    into.leftOut.push({ name, reason })
    return []
  }
  const fields = structFields(foreign)
  if (fields.length > 0 && above.depth < structDepthMax) {
    if (!isEmptyDefault(json)) return without('the default of the column is not supported')
    const isOptional = above.isOptional || required !== true
    const inner = { name: `${name}_`, depth: above.depth + 1, isOptional }
    return fields.flatMap((field) => columnsOf(field, inner, into))
  }
  const plain = typeOfForeign(foreign)
  const shape = plain === null && typeof foreign === 'object' ? shapeOfForeign(foreign, into.paths) : null
  const type = shape === null ? plain : dataType('VARCHAR')
  if (type === null) return without(`the type ${foreignTypeText(foreign)} is not supported`)
  const initial = defaultOf(foreign, json)
  if (initial === undefined) return without('the default of the column is not supported')
  // It is not that of rows whose struct is NULL.
  if (initial !== null && above.isOptional)
    return without('the default of a field in an optional struct is not supported')
  const { paths } = into
  return [{ id, name, type, foreign, initial, paths: paths === null ? null : (paths.get(id) ?? []), shape }]
}

function structFields(type: ForeignType | undefined): readonly ForeignField[] {
  return typeof type === 'object' && type.type === 'struct' ? (type.fields ?? []) : []
}

/** Of a struct, whose fields have their own defaults: NULL, or {}. */
function isEmptyDefault(json: unknown): boolean {
  return json === undefined || json === null || (typeof json === 'object' && Object.keys(json).length === 0)
}

function pathsOf(mapping: string | undefined): Map<number, readonly string[]> | null {
  if (mapping === undefined) return null
  const paths = new Map<number, readonly string[]>()
  try {
    const entries: readonly JsonMapping[] = JSON.parse(mapping)
    addPaths(paths, entries, [''])
  } catch (error) {
    throw new ForeignTableError('the name mapping of the table is damaged', { cause: error })
  }
  return paths
}

/** A field of a struct may have any name below any name of the struct. */
function addPaths(
  paths: Map<number, readonly string[]>,
  entries: readonly JsonMapping[],
  above: readonly string[],
): void {
  for (const { 'field-id': id = -1, names: own, fields } of entries) {
    if (above.length * own.length > mappedNamesMax) throw new Error('a field has too many names')
    const all = above.flatMap((start) => own.map((name) => `${start}${name}`))
    paths.set(id, all)
    if (fields !== undefined)
      addPaths(
        paths,
        fields,
        all.map((path) => `${path}${pathSeparator}`),
      )
  }
}

function specsOf(json: Json): Map<number, readonly PartitionSource[]> {
  const specs = json['partition-specs'] ?? [{ 'spec-id': 0, fields: json['partition-spec'] ?? [] }]
  return new Map(
    specs.map(({ 'spec-id': id, fields }) => [
      id,
      fields.map(({ name, transform, 'source-id': sourceId = -1 }) => ({
        name: avroName(name),
        sourceId,
        transform,
      })),
    ]),
  )
}

/** As Iceberg's implementations turn the names of fields to those that Avro permits. */
export function avroName(name: string): string {
  return [...name]
    .map((character, index) => {
      if (/[A-Za-z_]/.test(character) || (index > 0 && /\d/.test(character))) return character
      return /\d/.test(character) ? `_${character}` : `_x${character.codePointAt(0)?.toString(16).toUpperCase()}`
    })
    .join('')
}

function snapshotOf(json: Json): ForeignMetadata['snapshot'] {
  const id = json['current-snapshot-id']
  if (id === undefined || id === null || id === '-1') return null
  const found = json.snapshots?.find((snapshot) => snapshot['snapshot-id'] === id)
  if (found === undefined) throw new ForeignTableError(`the metadata lacks its current snapshot [snapshot=${id}]`)
  const manifestList = found['manifest-list']
  if (manifestList === undefined)
    throw new ForeignTableError('snapshots of format version 1 without a manifest list are not supported')
  const rows = Number(found.summary?.['total-records'] ?? Number.NaN)
  return { id, manifestList, rows: Number.isFinite(rows) ? rows : 0 }
}
