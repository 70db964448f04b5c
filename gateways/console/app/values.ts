// Formats, compares and copies values of query results in the console. LONG values arrive as strings, because a
// JavaScript number is exact only up to 53 bits.

export interface Column {
  readonly name: string
  readonly type: string
}

export type Row = readonly unknown[]

const wholeTypes = new Set(['BYTE', 'SHORT', 'INT', 'LONG'])
const floatTypes = new Set(['FLOAT', 'DOUBLE'])
const timeTypes = new Set(['TIMESTAMP', 'TIMESTAMP_NS', 'DATE'])
const textTypes = new Set(['SYMBOL', 'STRING', 'VARCHAR', 'CHAR'])

export function isNumeric(type: string): boolean {
  return wholeTypes.has(type) || floatTypes.has(type) || type.startsWith('DECIMAL')
}

export function isTime(type: string): boolean {
  return timeTypes.has(type)
}

export function isText(type: string): boolean {
  return textTypes.has(type)
}

/** The text of a value; null for NULL. */
export function cellText(value: unknown): string | null {
  if (value === null || value === undefined) return null
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}

/** Compares values of a column; NULL comes first, as in the server's order. */
export function compareValues(type: string, x: unknown, y: unknown): number {
  if (x === null || y === null) return x === y ? 0 : x === null ? -1 : 1
  if (type === 'LONG') {
    const [a, b] = [BigInt(String(x)), BigInt(String(y))]
    return a < b ? -1 : a > b ? 1 : 0
  }
  if (isNumeric(type)) return Number(x) - Number(y)
  const [a, b] = [String(x), String(y)]
  return a < b ? -1 : a > b ? 1 : 0
}

/** Milliseconds since 1970 of a timestamp's text, with fractions; NaN for other texts. */
export function millisOf(text: string): number {
  const match = /^(.*?)\.(\d+)Z?$/.exec(text)
  if (match === null) return Date.parse(text)
  return Date.parse(`${match[1]}Z`) + Number(`0.${match[2]}`) * 1000
}

export const copyFormats = ['text', 'csv', 'json', 'markdown'] as const
export type CopyFormat = (typeof copyFormats)[number]

/** Rows as text for the clipboard. */
export function copyText(format: CopyFormat, columns: readonly Column[], rows: readonly Row[]): string {
  switch (format) {
    case 'text':
      return lines(columns, rows, '\t', (text) => (text ?? '').replaceAll(/[\t\r\n]/g, ' '))
    case 'csv':
      return lines(columns, rows, ',', csvCell)
    case 'json':
      return `[${rows.map((row) => `\n  {${columns.map((column, index) => jsonMember(column, row[index])).join(', ')}}`).join(',')}\n]\n`
    case 'markdown':
      return markdown(columns, rows)
  }
}

function lines(
  columns: readonly Column[],
  rows: readonly Row[],
  separator: string,
  cell: (text: string | null) => string,
): string {
  const head = columns.map(({ name }) => cell(name)).join(separator)
  const body = rows.map((row) => columns.map((_, index) => cell(cellText(row[index]))).join(separator))
  return `${[head, ...body].join('\n')}\n`
}

/** NULL is an empty field, an empty string has quotes. */
function csvCell(text: string | null): string {
  if (text === null) return ''
  return text === '' || /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

function jsonMember({ name, type }: Column, value: unknown): string {
  const isExact = type === 'LONG' && typeof value === 'string'
  return `${JSON.stringify(name)}: ${isExact ? value : JSON.stringify(value ?? null)}`
}

function markdown(columns: readonly Column[], rows: readonly Row[]): string {
  const escaped = (text: string): string => text.replaceAll('|', '\\|').replaceAll(/\r?\n/g, '<br>')
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`
  const head = line(columns.map(({ name }) => escaped(name)))
  const rule = line(columns.map(({ type }) => (isNumeric(type) ? '--:' : '---')))
  const body = rows.map((row) => line(columns.map((_, index) => escaped(cellText(row[index]) ?? 'NULL'))))
  return `${[head, rule, ...body].join('\n')}\n`
}

/** 1234567 as `1,234,567`, the same in every language of the browser. */
export function grouped(count: number | bigint | string): string {
  return String(count).replace(/\B(?=(\d{3})+(?!\d))/g, ',')
}

/** Bytes as a person reads them: `1.4 GB`. */
export function sizeText(bytes: number): string {
  const units = ['B', 'KB', 'MB', 'GB', 'TB', 'PB']
  let value = bytes
  let unit = 0
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000
    unit++
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`
}

/** A duration as a person reads it: `340 ms`, `2.1 s`, `3 min 5 s`. */
export function durationText(ms: number): string {
  if (ms < 10) return `${ms.toFixed(1)} ms`
  if (ms < 1000) return `${Math.round(ms)} ms`
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`
  if (ms < 3_600_000) return `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`
  if (ms < 86_400_000) return `${Math.floor(ms / 3_600_000)} h ${Math.round((ms % 3_600_000) / 60_000)} min`
  return `${Math.floor(ms / 86_400_000)} d ${Math.round((ms % 86_400_000) / 3_600_000)} h`
}
