// Appends values from the PostgreSQL protocol to one column of uncommitted rows. Parameters of common types, in text or
// binary format, are decoded directly into the column; all others are first converted to a JavaScript value. Both ways
// have the same result, which test/engine/pg verifies.

import { assert } from '../base/assert.js'
import { SqlError } from '../base/errors.js'
import type { FixedTake } from '../kernels/rows.js'
import { postgresDialect } from '../sql/dialect.js'
import { hasForm, inconvertibleTypes, listValue, requireLabel } from '../sql/statements/target.js'
import { roundedValue } from '../sql/typing/rounded.js'
import type { PackedColumn } from '../storage/jobs/messages.js'
import { FixedBuilder } from '../storage/memtable/fixed-builder.js'
import { isText, SymbolBuilder, TextBuilder } from '../storage/memtable/text-builder.js'
import type { Enumeration } from '../storage/schema/schema.js'
import { type ColumnType, type DataType, dataType, isDay, isSpan } from '../types/column-types.js'
import { convertValue, inconvertibleText, isAssignable } from '../types/convert.js'
import { nearestFloat } from '../types/number.js'
import { booleanOf, decodeParameter } from '../types/pg-decode-value.js'
import { oids, typeOfOid } from '../types/pg-oids.js'
import { scanDecimal, scanInteger, scanTimestamp } from '../types/pg-scan-text.js'
import type { ArrayValue, Value } from '../types/value.js'
import type { ColumnRun, FoundBinds, RowWindow } from './row-window.js'

export interface AppenderColumn {
  readonly columnId: number
  readonly name: string
  readonly type: DataType
  /** The declared type where the storage type is more general: a list, an interval or a date. */
  readonly wanted?: DataType
  /** The only strings that the column accepts. */
  readonly enumeration?: Enumeration
  /** The designated timestamp cannot be NULL. */
  readonly required: boolean
}

/** Type of a parameter. */
interface WireForm {
  readonly oid: number
  readonly type: DataType
}

/** How the text format of a parameter type may be parsed. */
type TextFamily = 'text' | 'number' | 'time' | 'boolean' | 'other'

const families: Partial<Record<ColumnType, TextFamily>> = {
  ...({ STRING: 'text', VARCHAR: 'text', SYMBOL: 'text' } as const),
  ...({ BYTE: 'number', SHORT: 'number', INT: 'number', LONG: 'number', FLOAT: 'number', DOUBLE: 'number' } as const),
  ...({ TIMESTAMP: 'time', TIMESTAMP_NS: 'time', DATE: 'time', BOOLEAN: 'boolean' } as const),
}

const integerBounds: Partial<Record<ColumnType, number>> = { BYTE: 2 ** 7, SHORT: 2 ** 15, INT: 2 ** 31, LONG: 2 ** 53 }

export class ColumnAppender {
  readonly column: AppenderColumn
  readonly #family: TextFamily
  /** Values are truncated to the day. */
  readonly #isDay: boolean
  /** Exclusive bound of the column's integers, whose minimum is NULL; 0: not an integer column. */
  readonly #bound: number
  readonly #fixed: FixedBuilder | null
  readonly #strings: TextBuilder | SymbolBuilder | null

  constructor(column: AppenderColumn) {
    const { type } = column
    this.column = column
    const family = families[type.name] ?? 'other'
    this.#family = isOther(column) ? 'other' : family
    this.#isDay = column.wanted !== undefined && isDay(column.wanted)
    this.#bound = integerBounds[type.name] ?? 0
    const variable = family === 'text' || type.name === 'BINARY' || type.name === 'ARRAY'
    this.#fixed = variable ? null : new FixedBuilder(type)
    this.#strings = !variable ? null : type.name === 'SYMBOL' ? new SymbolBuilder() : new TextBuilder()
  }

  get rows(): number {
    return (this.#fixed ?? (this.#strings as TextBuilder)).rows
  }

  get bytes(): number {
    return (this.#fixed ?? (this.#strings as TextBuilder)).bytes
  }

  /** Clears the column and keeps its capacity. */
  reset(): void {
    this.#fixed?.truncate(0)
    this.#strings?.reset()
  }

  truncate(rows: number): void {
    this.#fixed?.truncate(rows)
    this.#strings?.truncate(rows)
  }

  packed(): PackedColumn {
    return (this.#fixed ?? (this.#strings as TextBuilder)).packed()
  }

  /** Like `packed`, but valid only until the next row. */
  borrowed(): PackedColumn {
    return (this.#fixed ?? (this.#strings as TextBuilder)).borrowed()
  }

  /** Appends a default or NULL. Throws SqlError when the column requires a value. */
  missing(): void {
    if (this.column.required) throw new SqlError('designated timestamp column cannot be NULL', 0)
    this.#fixed?.missing()
    this.#strings?.appendNull()
  }

  /** Appends a value of the column's type. */
  value(value: Value): void {
    const strings = this.#strings
    if (value === null) this.missing()
    else if (strings !== null) {
      const bytes = bytesOf(value)
      strings.append(bytes, 0, bytes.length)
    } else if (typeof value === 'bigint') this.#integer(value)
    else if (typeof value === 'string') this.#fixed?.number(value === '' ? 0 : value.charCodeAt(0))
    else this.#fixed?.number(Number(value))
  }

  /** Appends a value of any type, converted as INSERT does. Throws SqlError. */
  converted(value: Value, from: DataType): void {
    if (value === null) {
      this.missing()
      return
    }
    const { type, name, wanted, enumeration } = this.column
    const list = wanted === undefined ? null : listValue(value, from, wanted, 0)
    if (list !== null) {
      this.value(list)
      return
    }
    if (!isAssignable(from, type) || hasForm(wanted)) throw inconvertibleTypes(from, type, '', name, 0)
    const rounded = roundedValue(value, from, type, { dialect: postgresDialect, isNumeral: false })
    const converted = convertValue(rounded, from, wanted ?? type)
    if (converted === undefined)
      throw new SqlError(`${inconvertibleText(value, from, wanted ?? type)} [column=${name}]`, 0)
    if (enumeration !== undefined) requireLabel(String(converted), enumeration, 0)
    this.value(converted)
  }

  /** Appends the parameter in bytes [start, end), which is not NULL. */
  parameter(bytes: Buffer, start: number, end: number, binary: boolean, parameter: WireForm, index: number): void {
    if (binary ? this.#binary(bytes, start, end, parameter.oid) : this.#text(bytes, start, end, parameter)) return
    const { value, type } = decodeParameter(bytes.subarray(start, end), binary, parameter, index)
    this.converted(value, type)
  }

  /** Appends one column of many similar parameters; returns the number of rows before the first invalid one. */
  parameters(
    window: RowWindow,
    found: FoundBinds,
    run: Omit<ColumnRun, 'from'>,
    form: WireForm,
    binary: boolean,
  ): number {
    const { column, width, rows } = run
    const before = this.rows
    let row = 0
    try {
      for (let general = 1; row < rows; row += general) {
        const taken = rows - row < fewTaken ? 0 : this.#take(window, { ...run, from: row }, form, binary)
        row += taken
        assert(row <= rows, 'K3: a kernel takes no more values than it was given')
        // The fast path is tried less often when it rarely succeeds.
        general = Math.min(rows - row, taken > fewTaken ? 1 : general * 2)
        for (let place = row * width + column, left = general; left > 0; left--, place += width) {
          const end = found.ends[place]!
          if (end < 0) this.missing()
          else this.parameter(window.bytes, found.starts[place]!, end, binary, form, column)
        }
      }
      assert(this.rows - before === rows, 'R1: every message gives the column a value')
    } catch (error) {
      if (!(error instanceof SqlError)) throw error
    }
    return this.rows - before
  }

  // LITERALS: false when the general path must decide
  // ----------------------------------------------------------------

  /** Excludes single-character literals: they are CHARs, which convert to numbers and timestamps differently. */
  literal(bytes: Buffer, start: number, end: number): boolean {
    return (end - start > 1 || this.#family === 'text') && this.#text(bytes, start, end, textOnly)
  }

  /** Appends an integer that a double holds exactly. */
  plainNumber(value: number): boolean {
    if (this.#family === 'number') return this.#number(value)
    return value >= 0 && this.column.type.name === 'TIMESTAMP' && this.#micros(value)
  }

  /** Appends a number of up to 15 digits with a decimal point. */
  plainDouble(value: number): boolean {
    return this.#family === 'number' && this.#bound === 0 && Number.isFinite(value) && this.#double(value)
  }

  plainBoolean(value: boolean): boolean {
    if (this.#family !== 'boolean') return false
    this.#fixed?.number(value ? 1 : 0)
    return true
  }

  // MANY ROWS: forms that the kernel supports; of others it appends none
  // ----------------------------------------------

  #take(window: RowWindow, run: ColumnRun, { oid, type }: WireForm, binary: boolean): number {
    const strings = this.#strings
    if (strings !== null) {
      const isText = binary ? oid === oids.text || oid === oids.varchar : families[type.name] === 'text'
      return isText && this.#family === 'text' ? strings.appendRun(window, run) : 0
    }
    const take = binary ? binaryTakes[`${oid} ${this.column.type.name}`] : this.#textTake(type)
    return take === undefined ? 0 : (this.#fixed?.appendRun(window, run, take, this.column.required) ?? 0)
  }

  #textTake({ name }: DataType): FixedTake | undefined {
    const family = families[name] ?? 'other'
    if (this.#family === 'other') return undefined
    return family === this.#family || family === 'text' ? textTakes[this.column.type.name] : undefined
  }

  // TEXT --------------------------------------------------------------------------------------------------------------

  #text(bytes: Buffer, start: number, end: number, { type }: { readonly type: DataType }): boolean {
    const family = families[type.name] ?? 'other'
    if (family !== this.#family && family !== 'text') return false
    switch (this.#family) {
      case 'text':
        this.#bytes(bytes, start, end)
        return true
      case 'number':
        return this.#bound > 0
          ? this.#whole(scanInteger(bytes, start, end))
          : this.#double(scanDecimal(bytes, start, end))
      case 'time':
        return this.#micros(scanTimestamp(bytes, start, end))
      case 'boolean': {
        const value = booleanOf(bytes.toString('latin1', start, end))
        if (value === undefined) return false
        this.#fixed?.number(value ? 1 : 0)
        return true
      }
      default:
        return false
    }
  }

  #bytes(bytes: Uint8Array, start: number, end: number): void {
    if (!isText(bytes, start, end)) throw new SqlError('invalid byte sequence for encoding "UTF8"', 0)
    this.#strings?.append(bytes, start, end)
  }

  /** NaN: not a number. */
  #whole(value: number): boolean {
    const bound = this.#bound
    if (!(value < bound && value >= -bound)) return false
    // The smallest INT and LONG represent NULL; BYTE and SHORT have no NULL.
    if (value === -bound && bound > 2 ** 15) return false
    this.#fixed?.number(value)
    return true
  }

  #double(value: number): boolean {
    if (Number.isNaN(value) || (this.column.type.name === 'FLOAT' && nearestFloat(value) === undefined)) return false
    this.#fixed?.number(value)
    return true
  }

  #micros(micros: number): boolean {
    if (!(Math.abs(micros) < 2 ** 53)) return false
    const { required, type } = this.column
    if (required && micros < 0) throw new SqlError('designated timestamp before 1970-01-01 is not allowed', 0)
    if (type.name === 'TIMESTAMP') this.#fixed?.number(micros)
    else if (type.name === 'DATE')
      this.#fixed?.number(this.#isDay ? Math.floor(micros / dayMicros) * dayMillis : Math.floor(micros / 1000))
    else this.#fixed?.integer(BigInt(micros) * 1000n)
    return true
  }

  #integer(value: bigint): void {
    if (this.column.required && value < 0n)
      throw new SqlError('designated timestamp before 1970-01-01 is not allowed', 0)
    this.#fixed?.integer(value)
  }

  // BINARY ------------------------------------------------------------------------------------------------------------

  #binary(bytes: Buffer, start: number, end: number, oid: number): boolean {
    const length = end - start
    switch (oid) {
      case oids.int2:
        return length === 2 && this.#number(bytes.readInt16BE(start))
      case oids.int4:
        return length === 4 && this.#number(bytes.readInt32BE(start))
      case oids.int8:
        return length === 8 && this.#int8(bytes, start)
      case oids.float8:
        return length === 8 && this.#float(bytes.readDoubleBE(start))
      case oids.float4:
        return length === 4 && this.#float(bytes.readFloatBE(start))
      case oids.timestamp:
      case oids.timestamptz:
        return length === 8 && this.#family === 'time' && this.#micros(microsAt(bytes, start))
      case oids.bool:
        if (length !== 1 || this.#family !== 'boolean') return false
        this.#fixed?.number(bytes[start] === 0 ? 0 : 1)
        return true
      default:
        if (this.#family !== 'text' || (typeOfOid(oid)?.name ?? 'STRING') !== 'STRING' || binaryStrings.has(oid)) {
          return false
        }
        this.#bytes(bytes, start, end)
        return true
    }
  }

  #number(value: number): boolean {
    if (this.#family !== 'number') return false
    return this.#bound > 0 ? this.#whole(value) : this.#double(value)
  }

  #float(value: number): boolean {
    return this.#family === 'number' && this.#bound === 0 && this.#double(value)
  }

  #int8(bytes: Buffer, start: number): boolean {
    const high = bytes.readInt32BE(start)
    if (this.column.type.name !== 'LONG') {
      const value = high * 2 ** 32 + bytes.readUInt32BE(start + 4)
      return Math.abs(value) < 2 ** 53 && this.#number(value)
    }
    this.#fixed?.halves(bytes.readInt32BE(start + 4), high)
    return true
  }
}

/** Columns with a special form or an enumeration. */
function isOther({ wanted, enumeration }: AppenderColumn): boolean {
  return enumeration !== undefined || (wanted !== undefined && (hasForm(wanted) || isSpan(wanted)))
}

/** For fewer rows, a kernel call costs more than it saves. */
const fewTaken = 16

/** By parameter type and column type. */
const binaryTakes: Partial<Record<string, FixedTake>> = {
  [`${oids.float8} DOUBLE`]: 'takeDoubles',
  [`${oids.int8} LONG`]: 'takeLongs',
  [`${oids.int4} INT`]: 'takeInts',
  [`${oids.int4} LONG`]: 'takeWideInts',
  [`${oids.timestamp} TIMESTAMP`]: 'takeMicros',
  [`${oids.timestamptz} TIMESTAMP`]: 'takeMicros',
}

/** By column type. */
const textTakes: Partial<Record<ColumnType, FixedTake>> = {
  TIMESTAMP: 'takeTimes',
  LONG: 'takeWholes',
  DOUBLE: 'takeDecimals',
}

const textOnly = { type: dataType('STRING') }

/** Types whose binary format is not just their text. */
const binaryStrings: ReadonlySet<number> = new Set([
  ...[oids.time, oids.timetz, oids.inet, oids.cidr, oids.jsonb, oids.byteaArray, oids.jsonArray, oids.jsonbArray],
  ...[oids.timeArray, oids.timetzArray, oids.inetArray, oids.cidrArray],
  ...[oids.int2Array, oids.int4Array, oids.int8Array, oids.textArray],
  ...[oids.varcharArray, oids.boolArray, oids.timestampArray, oids.uuidArray, oids.timestamptzArray, oids.dateArray],
  ...[oids.numericArray, oids.oidArray, oids.bpcharArray, oids.nameArray, oids.interval, oids.intervalArray],
])

const dayMicros = 86_400_000_000
const dayMillis = 86_400_000
const epochMicros = 946_684_800_000_000

/** NaN where a double would not be exact. */
function microsAt(bytes: Buffer, start: number): number {
  const value = bytes.readInt32BE(start) * 2 ** 32 + bytes.readUInt32BE(start + 4)
  return Math.abs(value) < 2 ** 52 ? value + epochMicros : Number.NaN
}

function bytesOf(value: Exclude<Value, null>): Uint8Array {
  if (value instanceof Uint8Array) return value
  if (typeof value === 'object') return arrayBytes(value as ArrayValue)
  return Buffer.from(String(value), 'utf8')
}

/** Array layout of types/column-types.ts. */
function arrayBytes({ shape, data }: ArrayValue): Uint8Array {
  assert(
    shape.reduce((product, length) => product * length, 1) === data.length,
    'R3: an array has the values of its shape',
  )
  const header = (4 + shape.length * 4 + 7) & ~7
  const bytes = new Uint8Array(header + data.byteLength)
  bytes.set(new Uint8Array(Uint32Array.from([shape.length, ...shape]).buffer))
  bytes.set(new Uint8Array(data.buffer, data.byteOffset, data.byteLength), header)
  return bytes
}
