// Parses the schema of a CSV import: a JSON array of {name, type, pattern, as}. `name` is a column of the file, `as`
// its name in the table, `type` its type, and `pattern` the format of its timestamps.

import { epochScale } from '../engine/engine.js'
import { type ColumnType, columnTypes, type DataType, dataType } from '../engine/types/column-types.js'

/** A mistake in the request, with the message that clients expect. */
export class ImportError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'ImportError'
  }
}

export interface SchemaColumn {
  /** In the file. */
  readonly name: string
  /** Null: the type of the file. */
  readonly type: DataType | null
  readonly pattern: string | null
  /** In the table; null: as in the file. */
  readonly as: string | null
}

export function parseImportSchema(text: string): readonly SchemaColumn[] {
  const trimmed = text.trim()
  if (trimmed === '') return []
  let parsed: unknown
  try {
    parsed = JSON.parse(trimmed)
  } catch {
    throw new ImportError('Unexpected symbol')
  }
  if (typeof parsed === 'string') throw new ImportError("Unexpected quote '\"'")
  if (!Array.isArray(parsed)) throw new ImportError(isObject(parsed) ? 'Unexpected object' : 'Unexpected symbol')
  return parsed.map(schemaColumn)
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function schemaColumn(entry: unknown): SchemaColumn {
  if (!isObject(entry)) throw new ImportError('Unexpected array value')
  const { name, type, pattern, as } = entry
  if (typeof name !== 'string') throw new ImportError("Missing 'name' property")
  if (typeof type !== 'string' && (type !== undefined || as === undefined))
    throw new ImportError("Missing 'type' property")
  const column = { name, pattern: parsePattern(pattern), as: parseName(as) }
  if (type !== undefined) return { ...column, type: parseType(type) }
  if (column.pattern !== null) throw new ImportError(`a pattern needs a type [column=${name}]`)
  return { ...column, type: null }
}

function parseName(as: unknown): string | null {
  if (as === undefined || as === null) return null
  if (typeof as !== 'string' || !/[\p{L}\p{N}_]/u.test(as))
    throw new ImportError(`invalid name of a column [as=${String(as)}]`)
  return as
}

/** A pattern for strings, or epoch, epoch_s, epoch_ms, epoch_us, epoch_ns for numbers. */
function parsePattern(pattern: unknown): string | null {
  if (typeof pattern !== 'string' || pattern === '') return null
  if (/^epoch/i.test(pattern) && epochScale(pattern) === null)
    throw new ImportError(
      `unknown unit of an epoch, expected epoch_s, epoch_ms, epoch_us or epoch_ns [pattern=${pattern}]`,
    )
  return pattern
}

const geohash = /^GEOHASH\s*\(\s*(\d{1,2})\s*([cb]?)\s*\)$/i
const decimal = /^DECIMAL\s*\(\s*(\d{1,2})\s*(?:,\s*(\d{1,2})\s*)?\)$/i
const array = /^DOUBLE((?:\[\])+)$/i

function parseType(text: string): DataType {
  const trimmed = text.trim()
  const bits = geohash.exec(trimmed)
  if (bits !== null) return geohashType(Number(bits[1]) * (bits[2]?.toLowerCase() === 'c' ? 5 : 1))
  const digits = decimal.exec(trimmed)
  if (digits !== null) return decimalType(Number(digits[1]), Number(digits[2] ?? 0))
  const brackets = array.exec(trimmed)
  if (brackets !== null) return dataType('ARRAY', (brackets[1] as string).length / 2)
  const name = (Object.keys(columnTypes) as ColumnType[]).find((known) => known.toLowerCase() === trimmed.toLowerCase())
  if (name === 'BINARY') throw new ImportError('no adapter for type [id=18, name=BINARY]')
  if (name === undefined || ['GEOHASH', 'DECIMAL', 'ARRAY', 'INTERVAL'].includes(name))
    throw new ImportError('Invalid type')
  return dataType(name)
}

function geohashType(bits: number): DataType {
  if (bits < 1 || bits > 60) throw new ImportError('Invalid type')
  return dataType('GEOHASH', bits)
}

function decimalType(precision: number, scale: number): DataType {
  if (precision < 1 || precision > 76 || scale > precision) throw new ImportError('Invalid type')
  return dataType('DECIMAL', precision, scale)
}
