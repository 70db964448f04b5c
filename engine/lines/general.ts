// Stores one line of line protocol that the template kernel (WebAssembly) does not handle, in two steps: planLine()
// checks the whole parsed line, and storeRow() writes its values to a row. In between, the caller (decode.ts) creates
// missing tables and columns. So a rejected line leaves nothing behind, not even a new column.

import { assert, nonNull } from '../base/assert.js'
import { int64Max } from '../base/int64.js'
import type { SharedMemory } from '../memory/shared-memory.js'
import { isColumnName, isTableName } from '../storage/schema/names.js'
import { viewKind } from '../storage/schema/schema.js'
import type { NewColumn, NewTableDefaults, WriterCatalog } from '../storage/writer/writer-catalog.js'
import type { WriterTable } from '../storage/writer/writer-table.js'
import { newSlot, setNumber, storeSlot, type ValueSlot } from '../storage/writer/writer-values.js'
import { type DataType, dataType } from '../types/column-types.js'
import { convertTime, convertValue, newColumnType } from './convert.js'
import type { LineEntity, ParsedLine } from './line.js'
import { messages } from './parse-line.js'
import type { LineTarget } from './target.js'

export interface LineSettings {
  readonly createTables: boolean
  readonly createColumns: boolean
  /** Replaces characters that a name cannot have; empty: such lines are rejected. */
  readonly nameReplacement: string
  readonly defaults: NewTableDefaults
}

/** How a request's timestamps are to be read. */
export interface LineTimes {
  /** 0: each timestamp is in the unit that its size suggests. */
  readonly unitNanos: bigint
  /** All timestamps have the suffix n whatever their precision, so a new table uses microseconds. */
  readonly allNanos: boolean
  readonly nowMicros: number
}

/** A checked line. Objects are reused for the next line. */
export interface LinePlan {
  /** Undefined: the table must be created. */
  table: WriterTable | undefined
  newColumns: NewColumn[]
  /** Type of the designated timestamp. */
  timestampType: DataType
  /** Entities to write, with their column names; parallel to `slots`. */
  written: LineEntity[]
  slots: ValueSlot[]
  count: number
  ts: bigint
}

export function newLinePlan(): LinePlan {
  return {
    table: undefined,
    newColumns: [],
    timestampType: dataType('TIMESTAMP'),
    written: [],
    slots: [],
    count: 0,
    ts: 0n,
  }
}

/** Checks the line against the catalog; returns an error message, or an empty string. */
export function planLine(
  line: ParsedLine,
  catalog: WriterCatalog,
  settings: LineSettings,
  times: LineTimes,
  plan: LinePlan,
): string {
  const table = catalog.find(line.table)
  plan.table = table
  plan.newColumns = []
  plan.count = 0
  if (table === undefined && line.table.includes('/')) return messages.tableName
  const refusal = table === undefined ? refuseNewTable(line.table, settings) : refuseTable(table)
  if (refusal !== '') return `table: ${line.table}; ${refusal}`
  plan.timestampType = timestampTypeOf(line, table, times)
  const timestampName = table === undefined ? settings.defaults.timestampName : nameOfTimestamp(table)
  let timestampField: LineEntity | undefined
  const seen = new Set<string>()
  for (let index = 0; index < line.count; index++) {
    const entity = nonNull(line.entities[index])
    const lower = entity.name.toLowerCase()
    if (seen.has(lower)) continue
    seen.add(lower)
    const isTimestamp = lower === timestampName.toLowerCase()
    const error = isTimestamp
      ? convertValue(entity, plan.timestampType, line.table, slotAt(plan))
      : planEntity(entity, lower, line.table, settings, plan)
    if (error !== '') return error
    if (isTimestamp) timestampField = entity
  }
  assert(plan.count <= line.count, 'R1: no more values are written than the line has')
  return planTimestamp(line, timestampField, times, plan)
}

/** A new table gets the precision that the timestamp of its first line declares. */
function timestampTypeOf(line: ParsedLine, table: WriterTable | undefined, { allNanos }: LineTimes): DataType {
  if (table !== undefined) return table.columnById(table.schema.timestampId).type
  return dataType(line.hasTimestamp && line.timestampUnit === 'nanos' && !allNanos ? 'TIMESTAMP_NS' : 'TIMESTAMP')
}

function refuseNewTable(name: string, settings: LineSettings): string {
  if (!isTableName(name)) return 'invalid table name'
  return settings.createTables ? '' : 'table does not exist, creating new tables is disabled'
}

/** Why the table takes no lines; empty if it does. */
export function refuseTable({ schema }: WriterTable): string {
  if (schema.materialized !== undefined) return `cannot modify ${viewKind(schema.materialized)}`
  const takesLines = !schema.bypassWal && schema.timestampId >= 0 && schema.partitionBy !== 'NONE'
  return takesLines ? '' : 'cannot insert in non-WAL table'
}

function nameOfTimestamp(table: WriterTable): string {
  return table.columnById(table.schema.timestampId).name
}

function slotAt(plan: LinePlan): ValueSlot {
  const known = plan.slots[plan.count]
  if (known !== undefined) return known
  const slot = newSlot()
  plan.slots.push(slot)
  return slot
}

function planEntity(entity: LineEntity, lower: string, table: string, settings: LineSettings, plan: LinePlan): string {
  const known = plan.table?.column(lower)
  const type = known?.type ?? newColumnType(entity)
  if (known === undefined) {
    const error = refuseNewColumn(entity, type, table, settings)
    if (error !== '') return error
  }
  const slot = slotAt(plan)
  const error = convertValue(entity, type as DataType, table, slot)
  if (error !== '') return error
  if (known === undefined) plan.newColumns.push({ name: entity.name, type: type as DataType })
  // NULL is not written, because the column's memory is preset to it.
  if (slot.form !== 'null') plan.written[plan.count++] = entity
  return ''
}

function refuseNewColumn(
  entity: LineEntity,
  type: DataType | undefined,
  table: string,
  settings: LineSettings,
): string {
  if (!isColumnName(entity.name)) return `table: ${table}; invalid column name: ${entity.name}`
  if (entity.kind === 'decimal') return `table: ${table}; decimal columns must be created manually: ${entity.name}`
  if (type === undefined) return `table: ${table}; invalid column type: ${entity.name}`
  if (settings.createColumns) return ''
  return `table: ${table}, column: ${entity.name}; column does not exist, creating new columns is disabled`
}

/**
 * Chooses the row's timestamp: the designated column's field if it is a timestamp, else the line's, else that
 * field's value, else the server's time.
 */
function planTimestamp(line: ParsedLine, field: LineEntity | undefined, times: LineTimes, plan: LinePlan): string {
  const type = plan.timestampType
  let shown = BigInt(times.nowMicros)
  if (field?.kind === 'micros' || field?.kind === 'nanos') {
    shown = field.integer
    plan.ts = convertTime(shown, field.kind, type)
  } else if (line.hasTimestamp) {
    shown = line.timestamp
    plan.ts = inUnit(shown, unitOf(line, times), type)
  } else if (field?.kind === 'integer') {
    shown = field.integer
    plan.ts = shown
  } else plan.ts = inUnit(shown, 1000n, type)
  if (plan.ts > int64Max) return messages.timestamp(String(shown))
  if (shown >= 0n && plan.ts >= 0n) return ''
  return `table: ${line.table}, timestamp: ${shown}; designated timestamp before 1970-01-01 is not allowed`
}

/** Nanoseconds of the unit of the line's timestamp. */
function unitOf({ timestampUnit, timestamp }: ParsedLine, { unitNanos }: LineTimes): bigint {
  if (timestampUnit !== 'request') return timestampUnit === 'micros' ? 1000n : 1n
  return unitNanos === 0n ? guessedUnit(timestamp) : unitNanos
}

/** The unit that makes the timestamp a time before the year 2128; the kernel has the same rule. */
function guessedUnit(value: bigint): bigint {
  if (value < 5_000_000_000n) return 1_000_000_000n
  if (value < 5_000_000_000_000n) return 1_000_000n
  return value < 5_000_000_000_000_000n ? 1000n : 1n
}

function inUnit(value: bigint, unitNanos: bigint, type: DataType): bigint {
  const nanos = value * unitNanos
  return type.name === 'TIMESTAMP_NS' ? nanos : nanos / 1000n
}

/** Writes the planned row, whose table and columns exist. Throws ResourceError without adding a row. */
export function storeRow(memory: SharedMemory, plan: LinePlan, target: LineTarget): void {
  const { table } = target
  const chunk = target.currentChunk()
  assert(chunk.rows < chunk.capacity, 'A1: a row has room in its chunk')
  for (let index = 0; index < plan.count; index++) {
    const entity = nonNull(plan.written[index])
    const schema = table.column(entity.name.toLowerCase())
    if (schema === undefined) continue
    const slot = nonNull(plan.slots[index])
    const column = target.columnFor(chunk, schema.id)
    if (schema.type.name === 'SYMBOL') intern(target, schema.id, slot)
    storeSlot(memory, target.heap, column, chunk.rows, slot)
    column.filled = chunk.rows + 1
  }
  target.endRow(chunk, plan.ts)
}

function intern(target: LineTarget, columnId: number, slot: ValueSlot): void {
  const id = target.table.dictionary(columnId).intern(target.heap.put(slot.bytes), slot.bytes.length)
  assert(id !== undefined, 'R2: strings are checked to be UTF-8 before they become symbols')
  setNumber(slot, id)
}
