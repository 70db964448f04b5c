// Matches the columns of a table with the fields of its Iceberg table in an external catalog. The catalog assigns the
// ids of fields, and other servers may add, rename and drop fields.
//
//   column matched before     keeps its field, even if another server has renamed it; a rename here renames the field
//   column not matched yet    gets the field with its name, or a new field if there is none
//   column dropped here       its field is dropped, unless a column of another server, a partition spec or a sort
//                             order uses it
//   field dropped elsewhere   is added again with the same id, because files of this server contain that id
//   type wider here           the field gets it, if Iceberg permits that (int to long, float to double, more digits)
//   type wider elsewhere      files of this server keep the narrower type, and readers widen the values
//   other types               are an error, as is a required field

import { StoreError } from '../object-store/object-store.js'
import type { TableSchema } from '../storage/schema/schema.js'
import { type CatalogField, type CatalogMetadata, currentSchemaOf } from './catalog-metadata.js'
import { type IcebergType, type LakeColumn, lakeColumns } from './lake-columns.js'

/** Field and name of each column when they were last matched, by the field id that the column has without a catalog. */
export type FieldMap = Readonly<Record<string, readonly [id: number, name: string]>>

export interface MatchedColumns {
  readonly columns: readonly LakeColumn[]
  readonly map: FieldMap
  /** Null: the fields of the catalog need no change. */
  readonly fields: readonly CatalogField[] | null
  readonly lastColumnId: number
}

type FieldType = CatalogField['type']

/** `shared`: ids of fields that columns of other servers have. Throws StoreError if they cannot be matched. */
export function matchColumns(
  schema: TableSchema,
  metadata: CatalogMetadata,
  known: FieldMap,
  shared: ReadonlySet<number>,
): MatchedColumns {
  const before = currentSchemaOf(metadata).fields
  const own = lakeColumns(schema)
  const fields = withoutDropped(before, metadata, droppedIds(known, own, shared))
  let lastColumnId = metadata['last-column-id']
  const nextId = (): number => ++lastColumnId
  const map: Record<string, readonly [number, string]> = {}
  const taken = new Set<number>()
  const columns = own.map((column) => {
    const key = `${column.field.id}`
    const at = placeOf(fields, column, known[key], taken)
    const field = at < 0 ? addedField(column, known[key], nextId) : matched(fields, at, column, known[key])
    if (at < 0) fields.push(field)
    else fields[at] = field
    taken.add(field.id)
    map[key] = [field.id, column.field.name]
    return numbered(column, field)
  })
  const isSame = JSON.stringify(fields) === JSON.stringify(before)
  return { columns, map, fields: isSame ? null : fields, lastColumnId }
}

/** Fields of columns that the table does not have any more, and that no other server has. */
function droppedIds(known: FieldMap, own: readonly LakeColumn[], shared: ReadonlySet<number>): Set<number> {
  const live = new Set(own.map(({ field }) => `${field.id}`))
  const dropped = Object.entries(known).filter(([key, [id]]) => !live.has(key) && !shared.has(id))
  return new Set(dropped.map(([, [id]]) => id))
}

/** Fields of partitions and of the sort order stay. */
function withoutDropped(
  fields: readonly CatalogField[],
  metadata: CatalogMetadata,
  dropped: Set<number>,
): CatalogField[] {
  const parts = [...metadata['partition-specs'], ...(metadata['sort-orders'] ?? [])]
  const needed = new Set(parts.flatMap((one) => one.fields.map((field) => field['source-id'])))
  return fields.filter(({ id }) => !dropped.has(id) || needed.has(id))
}

/** The index of the column's field; -1: there is none. */
function placeOf(
  fields: readonly CatalogField[],
  { field: { name } }: LakeColumn,
  known: readonly [number, string] | undefined,
  taken: ReadonlySet<number>,
): number {
  const byId = fields.findIndex(({ id }) => id === known?.[0])
  if (byId >= 0) return byId
  const exact = fields.findIndex((field) => field.name === name && !taken.has(field.id))
  if (exact >= 0) return exact
  return fields.findIndex((field) => field.name.toLowerCase() === name.toLowerCase() && !taken.has(field.id))
}

/** The field as the column needs it. */
function matched(
  fields: readonly CatalogField[],
  at: number,
  { field: { name, type } }: LakeColumn,
  known: readonly [number, string] | undefined,
): CatalogField {
  const field = fields[at]
  if (field === undefined) throw new Error('a field is matched that is not there')
  if (field.required) throw new StoreError('rejected', `the column is required in the catalog [column=${field.name}]`)
  const isRenamed = known !== undefined && known[1] !== name && field.name !== name
  if (isRenamed && fields.some((one) => one.name.toLowerCase() === name.toLowerCase() && one.id !== field.id)) {
    throw new StoreError('rejected', `another column of the table in the catalog has the name [column=${name}]`)
  }
  const named = isRenamed ? { ...field, name } : field
  if (isSameType(field.type, type) || isWider(field.type, type)) return named
  if (isWider(type, field.type)) return { ...named, type }
  const [here, there] = [typeText(type), typeText(field.type)]
  const hint = hints[`${here} ${there}`] ?? ''
  throw new StoreError(
    'rejected',
    `the column is ${here} here and ${there} in the catalog${hint} [column=${field.name}]`,
  )
}

/** Iceberg permits no change between these. */
const hints: Readonly<Record<string, string>> = {
  'timestamptz_ns timestamptz': ': drop the table there, and it is created again',
  'timestamptz timestamptz_ns': ': set LAKE ON FORMAT VERSION 3',
}

/** A column whose field another server has dropped gets it back, because files have its id. */
function addedField(
  { field }: LakeColumn,
  known: readonly [number, string] | undefined,
  nextId: () => number,
): CatalogField {
  const id = known?.[0] ?? nextId()
  return { ...field, id, type: withElementIds(field.type, nextId) }
}

function withElementIds(type: IcebergType, nextId: () => number): IcebergType {
  if (typeof type === 'string') return type
  return { ...type, 'element-id': nextId(), element: withElementIds(type.element, nextId) }
}

/** The column with the ids of the field. */
function numbered(column: LakeColumn, { id, type }: CatalogField): LakeColumn {
  const isWidened = !isSameType(type, column.field.type)
  return { ...column, field: { ...column.field, id }, fieldIds: [id, ...elementIds(type)], isWidened }
}

function elementIds(type: FieldType): number[] {
  return typeof type !== 'string' && type.type === 'list' ? [type['element-id'], ...elementIds(type.element)] : []
}

function isSameType(one: FieldType, other: FieldType): boolean {
  return typeText(one) === typeText(other)
}

function isWider(wide: FieldType, narrow: FieldType): boolean {
  const [to, from] = [typeText(wide), typeText(narrow)]
  if ((from === 'int' && to === 'long') || (from === 'float' && to === 'double')) return true
  const [digits, of] = [digitsOf(to), digitsOf(from)]
  return digits !== null && of !== null && digits.scale === of.scale && digits.precision > of.precision
}

function digitsOf(type: string): { precision: number; scale: number } | null {
  const [, precision, scale] = /^decimal\((\d+),(\d+)\)$/.exec(type) ?? []
  return precision === undefined ? null : { precision: Number(precision), scale: Number(scale) }
}

function typeText(type: FieldType): string {
  if (typeof type === 'string') return type.replaceAll(' ', '')
  return type.type === 'list' ? `list<${typeText(type.element)}>` : type.type
}
