// Columns of a Parquet file in our types, and its rows as lines of CSV, which is how imports take rows. Times are
// printed from the integers that are stored, so that none of their digits is lost.

/** What the footer says of a column, or of a group of them. */
export interface ParquetElement {
  readonly name: string
  readonly type?: string
  readonly repetition_type?: string
  readonly num_children?: number
  readonly converted_type?: string
  readonly logical_type?: {
    readonly type: string
    readonly unit?: string
    readonly isSigned?: boolean
    readonly bitWidth?: number
  }
}

export interface ParquetColumn {
  readonly name: string
  /** As in the schema part of an import. */
  readonly type: string
}

const integerTypes: Record<string, string> = {
  INT_8: 'BYTE',
  UINT_8: 'SHORT',
  INT_16: 'SHORT',
  UINT_16: 'INT',
  UINT_32: 'LONG',
}

/** Throws for columns of nested types: CSV has no form for them. */
export function parquetColumns(schema: readonly ParquetElement[]): ParquetColumn[] {
  const [root, ...elements] = schema
  if (elements.length !== (root?.num_children ?? 0)) {
    const nested = elements.find(({ num_children: children }) => (children ?? 0) > 0)
    throw new Error(`columns of nested types are not read [column=${nested?.name ?? ''}]`)
  }
  return elements.map((element) => ({ name: element.name, type: typeOf(element) }))
}

function typeOf(element: ParquetElement): string {
  const { type, converted_type: converted, logical_type: logical } = element
  if (element.repetition_type === 'REPEATED')
    throw new Error(`columns of nested types are not read [column=${element.name}]`)
  if (logical?.type === 'TIMESTAMP') return logical.unit === 'NANOS' ? 'TIMESTAMP_NS' : 'TIMESTAMP'
  if (converted === 'TIMESTAMP_MICROS' || converted === 'TIMESTAMP_MILLIS') return 'TIMESTAMP'
  if (logical?.type === 'UUID') return 'UUID'
  if (logical?.type === 'DATE' || converted === 'DATE') return 'DATE'
  if (logical?.type === 'DECIMAL' || converted === 'DECIMAL') return 'DOUBLE'
  if (logical?.type === 'FLOAT16') return 'FLOAT'
  const integer = logical?.type === 'INTEGER' ? `${logical.isSigned ? '' : 'U'}INT_${logical.bitWidth}` : converted
  switch (type) {
    case 'BOOLEAN':
      return 'BOOLEAN'
    case 'INT32':
      return integerTypes[integer ?? ''] ?? 'INT'
    case 'INT64':
      return 'LONG'
    case 'INT96':
      return 'TIMESTAMP_NS'
    case 'FLOAT':
      return 'FLOAT'
    case 'DOUBLE':
      return 'DOUBLE'
    case 'BYTE_ARRAY':
    case 'FIXED_LEN_BYTE_ARRAY':
      return 'VARCHAR'
    default:
      throw new Error(`a column has no type [column=${element.name}]`)
  }
}

/** Times as text instead of Date, which knows milliseconds only. */
export const timeParsers = {
  timestampFromMilliseconds: (millis: bigint): string => isoText(millis, 3),
  timestampFromMicroseconds: (micros: bigint): string => isoText(micros, 6),
  timestampFromNanoseconds: (nanos: bigint): string => isoText(nanos, 9),
  dateFromDays: (days: number): string => isoText(BigInt(days) * 86_400_000n, 3),
}

/** `digits` of the second's fraction are in the number. */
export function isoText(ticks: bigint, digits: 3 | 6 | 9): string {
  const perSecond = 10n ** BigInt(digits)
  const fraction = ((ticks % perSecond) + perSecond) % perSecond
  const date = new Date(Number((ticks - fraction) / perSecond) * 1000)
  if (Number.isNaN(date.getTime())) throw new Error(`a time is out of range [value=${ticks}]`)
  return `${date.toISOString().slice(0, -5)}.${String(fraction).padStart(digits, '0')}Z`
}

export function csvHeader(columns: readonly ParquetColumn[]): string {
  return `${columns.map(({ name }) => quoted(name)).join(',')}\n`
}

export function csvLines(rows: readonly (readonly unknown[])[]): string {
  return rows.map((row) => `${row.map(csvField).join(',')}\n`).join('')
}

function csvField(value: unknown): string {
  switch (typeof value) {
    case 'string':
      return quoted(value)
    case 'number':
      return Number.isFinite(value) ? String(value) : ''
    case 'bigint':
    case 'boolean':
      return String(value)
    default:
      break
  }
  if (value === null || value === undefined) return ''
  if (value instanceof Uint8Array) return quoted(Buffer.from(value).toString('utf8'))
  // JSON columns come parsed.
  return quoted(JSON.stringify(value))
}

function quoted(text: string): string {
  return `"${text.replaceAll('"', '""')}"`
}
