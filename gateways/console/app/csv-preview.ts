// Parses the beginning of a CSV file in the browser, for the preview of an import: delimiter, header, first rows, and
// guessed column types. Users change names and types before the import; the server parses the file itself.

export interface CsvPreview {
  readonly delimiter: string
  readonly hasHeader: boolean
  readonly names: readonly string[]
  readonly types: readonly string[]
  readonly rows: readonly (readonly string[])[]
}

const delimiters = [',', '\t', ';', '|']
const sampleRows = 100

/** Types that a column of a CSV file may be given. */
export const importTypes: readonly string[] = [
  ...['BOOLEAN', 'BYTE', 'SHORT', 'INT', 'LONG', 'FLOAT', 'DOUBLE', 'SYMBOL', 'VARCHAR', 'STRING', 'CHAR'],
  ...['TIMESTAMP', 'TIMESTAMP_NS', 'DATE', 'UUID', 'IPv4', 'LONG256'],
]

/** `text`: the first bytes of the file; its last line may be incomplete, which `whole` denies. */
export function previewCsv(text: string, whole: boolean): CsvPreview {
  const clean = text.replace(/^\ufeff/, '')
  const named = /^sep=(.)\r?\n/.exec(clean)
  const body = named === null ? clean : clean.slice(named[0].length)
  const delimiter = named?.[1] ?? delimiterOf(body)
  const parsed = parseCsv(body, delimiter, sampleRows + 2)
  const lines = !whole && parsed.length <= sampleRows + 1 ? parsed.slice(0, -1) : parsed
  const width = Math.max(0, ...lines.map((line) => line.length))
  const [first = [], ...rest] = lines
  const hasHeader = looksLikeHeader(first, rest)
  const rows = (hasHeader ? rest : lines).slice(0, sampleRows)
  const names = Array.from(
    { length: width },
    (_, index) => (hasHeader && columnName(first[index] ?? '')) || `f${index}`,
  )
  const types = names.map((_, index) => typeOf(rows.map((row) => row[index] ?? '')))
  return { delimiter, hasHeader, names, types, rows }
}

/** The delimiter that divides the lines into the most, equally many, fields. */
function delimiterOf(text: string): string {
  let best = ','
  let bestScore = 0
  for (const delimiter of delimiters) {
    const widths = parseCsv(text, delimiter, 20).map((line) => line.length)
    const usual = widths[0] ?? 0
    const equal = widths.filter((width) => width === usual).length
    const score = usual > 1 ? usual * (equal / widths.length) : 0
    if (score > bestScore) {
      bestScore = score
      best = delimiter
    }
  }
  return best
}

/** Up to `max` lines. Quoted fields may contain delimiters, quotes and ends of lines. */
export function parseCsv(text: string, delimiter: string, max: number): string[][] {
  const lines: string[][] = []
  let line: string[] = []
  let at = 0
  while (at < text.length && lines.length < max) {
    const { value, next } = fieldAt(text, at, delimiter)
    line.push(value)
    const end = text[next]
    at = next + 1
    if (end === delimiter && at < text.length) continue
    if (end === delimiter) line.push('')
    if (end === '\r' && text[at] === '\n') at++
    if (line.length > 1 || line[0] !== '') lines.push(line)
    line = []
  }
  return lines
}

function fieldAt(text: string, start: number, delimiter: string): { value: string; next: number } {
  if (text[start] !== '"') {
    let next = start
    while (next < text.length && text[next] !== delimiter && text[next] !== '\n' && text[next] !== '\r') next++
    return { value: text.slice(start, next), next }
  }
  let value = ''
  let next = start + 1
  for (; next < text.length; next++) {
    if (text[next] !== '"') value += text[next]
    else if (text[next + 1] === '"') {
      value += '"'
      next++
    } else break
  }
  next++
  while (next < text.length && text[next] !== delimiter && text[next] !== '\n' && text[next] !== '\r') next++
  return { value, next }
}

/** Names above values of another kind. */
function looksLikeHeader(first: readonly string[], rest: readonly (readonly string[])[]): boolean {
  if (first.length === 0 || rest.length === 0) return false
  if (first.some((cell) => cell !== '' && typeOf([cell]) !== 'VARCHAR')) return false
  if (new Set(first).size < first.length) return false
  const typed = first.some((_, index) => !['VARCHAR', 'SYMBOL'].includes(typeOf(rest.map((row) => row[index] ?? ''))))
  return typed || first.every((cell) => /^[A-Za-z_][\w .-]*$/.test(cell))
}

/** The name that the server makes of a header's cell. */
export function columnName(cell: string): string {
  const words = cell
    .trim()
    .split(/[^\p{L}\p{N}_]+/u)
    .filter((word) => word !== '')
  const name = words.map((word, index) => (index === 0 ? word : word.charAt(0).toUpperCase() + word.slice(1))).join('')
  return /^\d/.test(name) ? `_${name}` : name
}

const timestamp = /^\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?)?$/

/** The type that fits all values; empty ones fit every type. */
function typeOf(cells: readonly string[]): string {
  const values = cells.filter((cell) => cell !== '')
  if (values.length === 0) return 'VARCHAR'
  const all = (pattern: RegExp): boolean => values.every((value) => pattern.test(value))
  if (all(/^(true|false)$/i)) return 'BOOLEAN'
  if (all(/^-?(0|[1-9]\d{0,18})$/)) {
    return values.every((value) => Math.abs(Number(value)) <= 2147483647) ? 'INT' : 'LONG'
  }
  if (all(/^\s*-?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*$/) && !values.some((value) => /^0\d/.test(value))) return 'DOUBLE'
  if (all(timestamp)) return values.some((value) => /\.\d{7,}/.test(value)) ? 'TIMESTAMP_NS' : 'TIMESTAMP'
  if (all(/^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i)) return 'UUID'
  return 'VARCHAR'
}
