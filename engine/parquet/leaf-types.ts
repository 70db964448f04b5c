// Maps the types of leaves in the schema of a Parquet file that another program wrote to column types: see columns.ts.

import { SqlError } from '../base/errors.js'
import { decimalDigitsMax } from '../base/limits.js'
import { type DataType, dataType } from '../types/column-types.js'
import { type ForeignColumn, type Form, physical } from './foreign-column.js'
import type { ForeignFile } from './foreign-file.js'
import { converted, type Element, isSet } from './schema-tree.js'

/** A column of a type that is not supported; others of the file can be read. */
export class UnsupportedError extends SqlError {
  readonly reason: string

  constructor(file: ForeignFile, reason: string, column: string) {
    const { message, position } = file.error(reason, { column })
    super(message, position)
    this.reason = reason
  }
}

type Leaf = Pick<ForeignColumn, 'type' | 'form' | 'physical' | 'bytes'>

/** Throws SqlError for types that are not supported. */
export function leafOf(file: ForeignFile, element: Element, column: string): Leaf {
  const kind = Number(element.type)
  const make = (type: DataType, form: Form, bytes: number): Leaf => ({ type, form, physical: kind, bytes })
  if (isDecimal(element)) return decimalOf(file, element, column)
  switch (kind) {
    case physical.boolean:
      return make(dataType('BOOLEAN'), 'boolean', 0)
    case physical.int32:
      return make(...int32Of(element), 4)
    case physical.int64:
      return make(...int64Of(element), 8)
    case physical.int96:
      return make(dataType('TIMESTAMP_NS'), 'int96', 12)
    case physical.float:
      return make(dataType('FLOAT'), 'same', 4)
    case physical.double:
      return make(dataType('DOUBLE'), 'same', 8)
    case physical.bytes:
      return isText(element) ? make(dataType('VARCHAR'), 'text', 0) : make(dataType('BINARY'), 'bytes', 0)
    case physical.fixed: {
      const bytes = fixedBytes(file, element, column)
      if (isSet(element.logicalType?.UUID) && bytes === 16) return make(dataType('UUID'), 'uuid', bytes)
      if (isSet(element.logicalType?.FLOAT16) && bytes === 2) return make(dataType('FLOAT'), 'half', bytes)
      return make(dataType('BINARY'), 'bytes', bytes)
    }
    default:
      throw new UnsupportedError(file, 'the type of the column is not supported', column)
  }
}

function fixedBytes(file: ForeignFile, { type_length: bytes }: Element, column: string): number {
  if (bytes === undefined || bytes === null || bytes < 1 || bytes > 1024 * 1024)
    throw new UnsupportedError(file, `values of ${bytes} bytes are not supported`, column)
  return bytes
}

function int32Of({ logicalType, converted_type: type }: Element): [DataType, Form] {
  if (isSet(logicalType?.DATE) || type === converted.date) return [dataType('DATE'), 'days']
  const integer = logicalType?.INTEGER
  const bits = isSet(integer) ? Number(integer?.bitWidth) : 0
  const isSigned = integer?.isSigned === true
  if (type === converted.int8 || (bits === 8 && isSigned)) return [dataType('BYTE'), 'i8']
  if (type === converted.uint8 || bits === 8) return [dataType('SHORT'), 'i16']
  if (type === converted.int16 || (bits === 16 && isSigned)) return [dataType('SHORT'), 'i16']
  if (type === converted.uint32 || (bits === 32 && !isSigned)) return [dataType('LONG'), 'unsigned 32']
  return [dataType('INT'), 'same']
}

function int64Of({ logicalType, converted_type: type }: Element): [DataType, Form] {
  const unit = logicalType?.TIMESTAMP?.unit
  if (isSet(unit?.NANOS)) return [dataType('TIMESTAMP_NS'), 'same']
  if (isSet(unit?.MILLIS) || type === converted.millis) return [dataType('TIMESTAMP'), 'milliseconds']
  if (isSet(unit?.MICROS) || type === converted.micros) return [dataType('TIMESTAMP'), 'same']
  const integer = logicalType?.INTEGER
  const isUnsigned = type === converted.uint64 || (isSet(integer) && integer?.isSigned === false)
  return [dataType('LONG'), isUnsigned ? 'unsigned 64' : 'same']
}

function isText({ logicalType, converted_type: type }: Element): boolean {
  if (type === converted.utf8 || type === converted.enum || type === converted.json) return true
  return isSet(logicalType?.STRING) || isSet(logicalType?.ENUM) || isSet(logicalType?.JSON)
}

function isDecimal({ logicalType, converted_type: type }: Element): boolean {
  return isSet(logicalType?.DECIMAL) || type === converted.decimal
}

function decimalOf(file: ForeignFile, element: Element, column: string): Leaf {
  const { logicalType, type } = element
  const precision = Number(logicalType?.DECIMAL?.precision ?? element.precision)
  const scale = Number(logicalType?.DECIMAL?.scale ?? element.scale ?? 0)
  const fits = precision >= 1 && precision <= decimalDigitsMax && scale >= 0 && scale <= precision
  if (!fits) throw new UnsupportedError(file, `DECIMAL(${precision},${scale}) is not supported`, column)
  const kind = Number(type)
  const bytes = decimalBytes[kind] ?? (kind === physical.fixed ? fixedBytes(file, element, column) : -1)
  if (bytes < 0) throw new UnsupportedError(file, 'the type of the column is not supported', column)
  return { type: dataType('DECIMAL', precision, scale), form: 'decimal', physical: kind, bytes }
}

const decimalBytes: Readonly<Record<number, number>> = {
  [physical.int32]: 4,
  [physical.int64]: 8,
  [physical.bytes]: 0,
}
