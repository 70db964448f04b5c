// Recognises filters that look for certain values of a declared key (PRIMARY KEY, UNIQUE), such as `id in (5, 7)` or
// `id = 5`, or, for a key of two columns, `(a = 1 and b = 2) or (a = 3 and b = 4)`, the form that ON CONFLICT produces.
// If the filter does not look for a declared key, a column of type INT, LONG, DATE, TIMESTAMP, TIMESTAMP_NS, UUID or
// IPv4 counts as a key, and is indexed in pages where the wanted values are rare. The scan skips a page if the minimum
// and maximum of the key columns, or the page's index of keys, show that it contains none of the wanted keys. Earlier
// searches have made these indexes (storage/part/page-keys.ts). Of other pages with an index, only the rows that it
// lists are read.
//
// Some columns of a declared key are ignored here: the designated timestamp, because scans have time ranges for it;
// symbols (dictionary-encoded strings), which have indexes of their own; floating-point numbers, because equal numbers
// may have different bytes; and rare types (see isHashed()).

import type { Expression } from '../../sql/plan/plan.js'
import { conjuncts } from '../../sql/typing/walk-expression.js'
import { hashRow, type KeyColumn, keyColumnsAt, nullBytes } from '../../storage/memtable/key-columns.js'
import type { WantedKeys } from '../../storage/part/part-access.js'
import { type ColumnType, type DataType, widthOf } from '../../types/column-types.js'
import type { Value } from '../../types/value.js'
import type { ExecContext } from '../batch/context.js'
import { StringHeap } from '../batch/string-heap.js'
import { writeValue } from '../batch/values.js'
import type { ScanMorsel } from './morsels.js'
import type { ScanShape } from './scan-shape.js'

export interface SearchedKeys {
  /** Whether the morsel may have one of the keys. */
  readonly mayHave: (morsel: ScanMorsel) => boolean
  /** See KeysOfPage.select. */
  readonly select: (morsel: ScanMorsel, from: number, rows: number, out: number) => number
  /** Keeps the morsel's index for later searches, see KeysOfPage.keep. Its columns have been read. */
  readonly keep: (morsel: ScanMorsel) => boolean
}

/** With more keys, most pages have one of them. */
const keysMax = 256

const integers: ReadonlySet<ColumnType> = new Set<ColumnType>(['BYTE', 'SHORT', 'INT'])
const longs: ReadonlySet<ColumnType> = new Set<ColumnType>(['LONG'])
const texts: ReadonlySet<ColumnType> = new Set<ColumnType>(['STRING', 'VARCHAR'])
const exact: ReadonlySet<ColumnType> = new Set<ColumnType>(['UUID', 'IPv4', 'DATE', 'TIMESTAMP', 'TIMESTAMP_NS'])

/** Describes the columns of a key, given the address of each. */
type KeyColumnsOf = (addressOf: (columnId: number) => number) => readonly KeyColumn[]

/** Constants that the columns of the scan must equal, by the column's index. */
type Equals = ReadonlyMap<number, Value>

/** Searches that read all rows of a page before a column without a declared key is indexed. */
const searchesBefore = 3

/** null: the filter does not look for keys. */
export function wantedKeys(context: ExecContext, shape: ScanShape): SearchedKeys | null {
  const { filter, columnIds, snapshot } = shape
  const { schema, parts } = snapshot.version
  if (filter === null || parts.length === 0) return null
  const alternatives = alternativesOf(filter)
  const [first] = alternatives
  if (first === undefined || first.size === 0 || alternatives.length > keysMax) return null
  const areIn = (places: readonly number[]): boolean =>
    alternatives.every((equals) => places.every((place) => equals.has(place)))
  for (const key of schema.keys ?? []) {
    const ids = key.columnIds.filter((id) => id !== schema.timestampId && isHashed(schema.columns[id]?.type))
    const places = ids.map((id) => columnIds.indexOf(id))
    if (places.length === 0 || places.includes(-1)) continue
    if (areIn(places)) return searchedKeys(context, shape, { columnIds: ids, places }, alternatives)
  }
  const single = [...first.keys()].flatMap((place) => {
    const id = columnIds[place]
    if (id === undefined || id === schema.timestampId || !isIndexed(schema.columns[id]?.type) || !areIn([place]))
      return []
    const columns = { columnIds: [id], places: [place], searches: searchesBefore }
    return searchedKeys(context, shape, columns, alternatives)
  })
  return single.length === 0 ? null : together(single)
}

/** Each morsel has the index of the first key whose values are rare there. */
function together(keys: readonly SearchedKeys[]): SearchedKeys {
  return {
    mayHave: (morsel) => keys.every((key) => key.mayHave(morsel)),
    select: (morsel, from, rows, out) => {
      for (const key of keys) {
        const count = key.select(morsel, from, rows, out)
        if (count >= 0) return count
      }
      return -1
    },
    keep: (morsel) => keys.some((key) => key.keep(morsel)),
  }
}

/** Whether columns of the type are indexed without a declared key: texts take longer, and small integers repeat. */
function isIndexed(type: DataType | undefined): boolean {
  return type !== undefined && (type.name === 'INT' || longs.has(type.name) || exact.has(type.name))
}

/** Whether indexes of keys have columns of the type. */
export function isHashed(type: DataType | undefined): boolean {
  if (type === undefined) return false
  return [integers, longs, texts, exact].some((types) => types.has(type.name))
}

/** One of these holds for every row that passes. Conditions of other forms are left out. */
function alternativesOf(condition: Expression): Equals[] {
  let found: Equals[] = [new Map()]
  for (const part of conjuncts(condition)) {
    const own = eitherOf(part)
    // All combinations; one side mostly has a single alternative.
    if (own !== null && own.length * found.length <= keysMax)
      found = found.flatMap((left) => own.map((right) => new Map([...left, ...right])))
  }
  return found
}

/** The values of one column of which the condition requires one; null: it has another form. */
export function wantedValues(condition: Expression): { readonly column: number; readonly values: Value[] } | null {
  const alternatives = eitherOf(condition)
  const [column] = alternatives?.[0]?.keys() ?? []
  if (alternatives === null || column === undefined || !alternatives.every((equals) => equals.has(column))) return null
  return { column, values: alternatives.map((equals) => equals.get(column) ?? null) }
}

/** null: it requires no constants. */
function eitherOf(condition: Expression): Equals[] | null {
  if (condition.kind !== 'call') return null
  const { name, args } = condition
  if (name === 'or') {
    const sides = args.map((side) => alternativesOf(side))
    return sides.flat()
  }
  const [first, ...others] = args
  if (first === undefined || (name !== '=' && name !== 'in')) return null
  const [column, constants] = first.kind === 'column' ? [first, others] : [others[0], [first]]
  if (column?.kind !== 'column' || (name === 'in' && first.kind !== 'column')) return null
  const values = constants.map((constant) => valueFor(column.type, constant))
  return values.includes(undefined) ? null : values.map((value) => new Map([[column.index, value ?? null]]))
}

/** The constant as a value of the column's type; undefined: it is none. */
function valueFor({ name }: DataType, constant: Expression): Value | undefined {
  if (constant.kind !== 'constant') return undefined
  const { value, type } = constant
  if (texts.has(name)) return typeof value === 'string' && texts.has(type.name) ? value : undefined
  if (exact.has(name)) return value !== null && type.name === name ? value : undefined
  if (!integers.has(type.name) && !longs.has(type.name)) return undefined
  if (typeof value !== 'number' && typeof value !== 'bigint') return undefined
  if (longs.has(name)) return BigInt(value)
  const bits = name === 'BYTE' ? 8 : name === 'SHORT' ? 16 : 32
  return integers.has(name) && BigInt.asIntN(bits, BigInt(value)) === BigInt(value) ? Number(value) : undefined
}

interface KeyPlaces {
  readonly columnIds: readonly number[]
  /** Their places in the scan. */
  readonly places: readonly number[]
  /** See WantedKeys. */
  readonly searches?: number
}

function searchedKeys(
  context: ExecContext,
  { snapshot, types }: ScanShape,
  { places, ...key }: KeyPlaces,
  alternatives: readonly Equals[],
): SearchedKeys {
  const ids = key.columnIds
  const { memory, arena } = context
  const { schema } = snapshot.version
  const nulls = arena.take(nullBytes)
  const columnsOf: KeyColumnsOf = (addressOf) => keyColumnsAt(memory, schema, ids, nulls, addressOf)
  const wanted: WantedKeys = { ...key, hashes: hashesOf(context, types, places, alternatives, columnsOf, ids) }
  const bounds = places.map((place) => alternatives.map((equals) => equals.get(place) ?? null))
  const isWithin = (morsel: ScanMorsel): boolean =>
    ids.every((id, index) => {
      const range = morsel.bounds(id)
      return range === undefined || (bounds[index] ?? []).some((value) => isBetween(value, range))
    })
  return {
    mayHave: (morsel) => isWithin(morsel) && (morsel.keys()?.mayHave(wanted) ?? true),
    select: (morsel, from, rows, out) => morsel.keys()?.select(wanted, from, rows, out) ?? -1,
    keep: (morsel) => morsel.keys()?.keep(wanted, () => columnsOf((id) => morsel.column(id))) ?? false,
  }
}

function isBetween(
  value: Value,
  { min, max }: { readonly min: number | bigint; readonly max: number | bigint },
): boolean {
  return (typeof value !== 'number' && typeof value !== 'bigint') || (min <= value && value <= max)
}

function hashesOf(
  context: ExecContext,
  types: readonly DataType[],
  places: readonly number[],
  alternatives: readonly Equals[],
  columnsOf: KeyColumnsOf,
  ids: readonly number[],
): Int32Array {
  const { memory, arena, symbols } = context
  const target = { memory, heap: new StringHeap(arena), symbols }
  const addresses = places.map((place) => {
    const type = types[place]
    if (type === undefined) throw new RangeError('a column of the scan')
    const address = arena.take(widthOf(type) * alternatives.length)
    for (const [row, equals] of alternatives.entries())
      writeValue(target, type, address, row, equals.get(place) ?? null)
    return address
  })
  const columns = columnsOf((id) => addresses[ids.indexOf(id)] ?? 0)
  return Int32Array.from(new Set(alternatives.map((_, row) => hashRow(memory, columns, row))))
}
