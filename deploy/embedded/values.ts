// Converts between JavaScript values and column values of an embedded database: parameters and new rows to the
// engine's form, results to JavaScript.

import {
  convertValue,
  displayText,
  type Engine,
  type PackedColumn,
  type PackedRows,
  packedReader,
  packedValues,
  type TableShape,
} from '../../engine/engine.js'
import { type ColumnType, type DataType, dataType, typeText } from '../../engine/types/column-types.js'
import { type ArrayValue, isArrayValue, type Value } from '../../engine/types/value.js'
import type { Batch, BatchColumn, InputValue, NestedNumbers, ResultValue } from './api.js'
import { DatabaseError } from './errors.js'

export type Parameter = Parameters<Engine['execute']>[1]['parameters'][number]
type Numbers = NonNullable<BatchColumn['data']>

// In ----------------------------------------------------------------------------------------------------------------

/** A value with the type that it has by itself. Throws DatabaseError; `what` names the value in its message. */
export function typedValue(input: InputValue, what: string): Parameter {
  if (input === null || input === undefined) return { value: null, type: dataType('STRING') }
  switch (typeof input) {
    case 'boolean':
      return { value: input, type: dataType('BOOLEAN') }
    case 'string':
      return { value: input, type: dataType('STRING') }
    case 'bigint':
      if (BigInt.asIntN(64, input) !== input)
        throw new DatabaseError('SQL', `${what} does not fit 64 bits [value=${input}]`)
      return { value: input, type: dataType('LONG') }
    case 'number':
      return Number.isSafeInteger(input)
        ? { value: BigInt(input), type: dataType('LONG') }
        : { value: Number.isNaN(input) ? null : input, type: dataType('DOUBLE') }
    default:
      return typedObject(input, what)
  }
}

function typedObject(input: Date | Uint8Array | NestedNumbers, what: string): Parameter {
  if (input instanceof Date) {
    const milliseconds = input.getTime()
    if (Number.isNaN(milliseconds)) throw new DatabaseError('SQL', `${what} is an invalid date`)
    return { value: BigInt(milliseconds) * 1000n, type: dataType('TIMESTAMP') }
  }
  if (input instanceof Uint8Array) return { value: input, type: dataType('BINARY') }
  if (!Array.isArray(input)) throw new DatabaseError('SQL', `${what} has no type that a column can have`)
  const value = arrayValue(input, what)
  return { value, type: dataType('ARRAY', value.shape.length) }
}

function arrayValue(nested: NestedNumbers, what: string): ArrayValue {
  const shape: number[] = []
  for (let level: unknown = nested; Array.isArray(level); level = level[0]) shape.push(level.length)
  const data: number[] = []
  const gather = (part: unknown, depth: number): void => {
    if (Array.isArray(part) && part.length === shape[depth]) for (const next of part) gather(next, depth + 1)
    else if (depth === shape.length && (part === null || typeof part === 'number')) data.push(part ?? Number.NaN)
    else throw new DatabaseError('SQL', `${what} is not a rectangular array of numbers`)
  }
  gather(nested, 0)
  return { shape, data: Float64Array.from(data) }
}

/** Rows that are packed at once. */
const chunkRows = 8192

/** Rows for a table as the writer takes them, some thousand at a time. Throws DatabaseError. */
export function* packedColumns(
  table: TableShape,
  columns: Readonly<Record<string, ArrayLike<InputValue>>>,
): Generator<{ readonly packed: PackedRows; readonly bytes: number }> {
  const given = Object.entries(columns).map(([name, values]) => ({ column: columnOf(table, name), values }))
  const rows = given[0]?.values.length ?? 0
  for (const { column, values } of given) {
    if (values.length !== rows)
      throw new DatabaseError(
        'SQL',
        `columns differ in length [column=${column.name}, length=${values.length}, others=${rows}]`,
      )
  }
  checkLeftOut(table, new Set(given.map(({ column }) => column.id)))
  for (let from = 0; from < rows; from += chunkRows) {
    const to = Math.min(rows, from + chunkRows)
    yield packedValues({
      tableId: table.id,
      rows: to - from,
      columns: given.map(({ column, values }) => ({
        columnId: column.id,
        type: column.type,
        values: storedValues(column, values, from, to, column.name === table.timestamp),
      })),
    })
  }
}

type TableColumn = TableShape['columns'][number]

function columnOf(table: TableShape, name: string): TableColumn {
  const found = table.columns.find((column) => column.name.toLowerCase() === name.toLowerCase())
  if (found === undefined) throw new DatabaseError('SQL', `column does not exist [table=${table.name}, column=${name}]`)
  return found
}

function checkLeftOut(table: TableShape, given: ReadonlySet<number>): void {
  for (const { id, name, filled, counter } of table.columns) {
    if (given.has(id)) continue
    if (name === table.timestamp) throw new DatabaseError('SQL', `the designated timestamp is missing [column=${name}]`)
    if (filled || counter !== null)
      throw new DatabaseError('SQL', `a column with a default needs values here; INSERT fills it [column=${name}]`)
  }
}

function storedValues(
  column: TableColumn,
  values: ArrayLike<InputValue>,
  from: number,
  to: number,
  isTimestamp: boolean,
): Value[] {
  const stored = new Array<Value>(to - from)
  for (let row = from; row < to; row++) {
    const value = storedValue(column, values[row], row)
    if (isTimestamp && (value === null || (typeof value === 'bigint' && value < 0n))) {
      const problem = value === null ? 'cannot be NULL' : 'before 1970-01-01 is not allowed'
      throw new DatabaseError('ROW', `designated timestamp ${problem} [column=${column.name}, row=${row + 1}]`, row + 1)
    }
    stored[row - from] = value
  }
  return stored
}

function storedValue({ name, type, enumeration }: TableColumn, input: InputValue, row: number): Value {
  // Numbers in a column of numbers are by far the most.
  if (type.name === 'DOUBLE' && typeof input === 'number') return Number.isFinite(input) ? input : null
  const typed = typedValue(input, `column ${name}, row ${row + 1}`)
  const isDate = input instanceof Date && (type.name === 'LONG' || type.name === 'INT')
  const stored = isDate ? undefined : convertValue(typed.value, typed.type, type)
  const isKnown = enumeration === undefined || stored === null || enumeration.labels.includes(String(stored))
  if (stored !== undefined && isKnown) return stored
  const shown = String(input).slice(0, 100)
  throw new DatabaseError(
    'ROW',
    `value does not fit its column [column=${name}, type=${typeText(type)}, row=${row + 1}, value=${shown}]`,
    row + 1,
  )
}

// Out ---------------------------------------------------------------------------------------------------------------

type NumbersOf = (buffer: ArrayBuffer) => Numbers

const typedArrays: Partial<Record<ColumnType, NumbersOf>> = {
  BOOLEAN: (buffer) => new Uint8Array(buffer),
  BYTE: (buffer) => new Int8Array(buffer),
  SHORT: (buffer) => new Int16Array(buffer),
  INT: (buffer) => new Int32Array(buffer),
  LONG: (buffer) => new BigInt64Array(buffer),
  DATE: (buffer) => new BigInt64Array(buffer),
  TIMESTAMP: (buffer) => new BigInt64Array(buffer),
  TIMESTAMP_NS: (buffer) => new BigInt64Array(buffer),
  FLOAT: (buffer) => new Float32Array(buffer),
  DOUBLE: (buffer) => new Float64Array(buffer),
}

export function batchOf(names: readonly string[], { rows, columns }: PackedRows): Batch {
  return {
    rows,
    columns: columns.map(({ type, values }, index) => new PackedBatchColumn(names[index] ?? '', type, values, rows)),
  }
}

class PackedBatchColumn implements BatchColumn {
  readonly name: string
  readonly type: string
  readonly #type: DataType
  readonly #packed: PackedColumn
  readonly #rows: number
  #data: Numbers | null | undefined
  #read: ((row: number) => Value) | undefined

  constructor(name: string, type: DataType, packed: PackedColumn, rows: number) {
    this.name = name
    this.type = typeText(type)
    this.#type = type
    this.#packed = packed
    this.#rows = rows
  }

  get data(): Numbers | null {
    this.#data ??= this.#numbers()
    return this.#data
  }

  #numbers(): Numbers | null {
    const made = typedArrays[this.#type.name]
    if (made === undefined || this.#packed.kind !== 'fixed') return null
    return made(new Uint8Array(this.#packed.bytes).buffer)
  }

  get(row: number): ResultValue {
    if (!(row >= 0 && row < this.#rows)) throw new RangeError(`no such row [row=${row}, rows=${this.#rows}]`)
    this.#read ??= packedReader(this.#type, this.#packed)
    return resultValue(this.#read(row), this.#type)
  }
}

/** Types that JavaScript has no value for are text, as in other results. */
function resultValue(value: Value, type: DataType): ResultValue {
  if (value === null || typeof value === 'boolean' || typeof value === 'string') return value
  switch (type.name) {
    case 'DECIMAL':
    case 'UUID':
    case 'IPv4':
    case 'LONG256':
    case 'GEOHASH':
      return displayText(value, type)
    default:
      if (typeof value !== 'object' || value instanceof Uint8Array) return value
      return isArrayValue(value) ? nested(value.data, value.shape, 0, 0) : displayText(value, type)
  }
}

/** The elements of `shape` from its dimension `level` on, which begin at `start`. */
function nested(data: Float64Array, shape: readonly number[], level: number, start: number): NestedNumbers {
  const length = shape[level] ?? 0
  const stride = shape.slice(level + 1).reduce((product, next) => product * next, 1)
  return Array.from({ length }, (_, index) => {
    const at = start + index * stride
    if (level + 1 < shape.length) return nested(data, shape, level + 1, at)
    const value = data[at]!
    return Number.isNaN(value) ? null : value
  })
}
