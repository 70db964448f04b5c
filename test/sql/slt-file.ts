// Golden SQL files (.slt): reads, compares and writes them.
//
// A file consists of records separated by empty lines. Lines that begin with # before a record are comments.
//
//   statement ok            the statement succeeds; rows are ignored
//   <sql, any lines>
//
//   statement error         the statement fails with this position and message
//   <sql>
//   ----
//   14: table does not exist [table=nope]
//
//   query [rowsort]         the statement returns these rows; rowsort: in any order
//   <sql>
//   ----
//   side:SYMBOL | count:LONG        names and types of the columns
//   buy | 10                        one line per row
//
//   restart                 the database is closed and opened again, with some clients
//   include trades          the records of fixtures/trades.slt
//
// Cells are formatted as in the JSON of /exec, strings without quotes. NULL means null; a string that would be
// ambiguous (empty, NULL, with leading or trailing spaces, or with a bar, a quote, # or a control character) keeps its
// quotes. DOUBLE and FLOAT are compared with a tolerance, since the order of summation depends on where rows are.
//
// `failing` before a record's first word marks a correct expectation that the server does not meet yet. If such a
// record passes, the test fails, so that the mark is removed.

/** When the runner flushes: never, before each query that follows a change, or after every second statement. */
export const modes = ['in memory', 'in parts', 'in both'] as const
export type Mode = (typeof modes)[number]

type SltKind = 'ok' | 'error' | 'query' | 'restart' | 'include'

export interface SltRecord {
  readonly comments: readonly string[]
  readonly kind: SltKind
  readonly failing: boolean
  readonly rowsort: boolean
  /** The statement, or the name of an include. */
  readonly sql: string
  /** Lines after the dashes. */
  readonly expected: readonly string[]
  /** Line number of the record's first line, from 1. */
  readonly line: number
}

/** The response of a database, in the format of the file. */
export interface SltAnswer {
  readonly kind: 'ok' | 'error' | 'query'
  readonly lines: readonly string[]
}

export function parseSlt(text: string): SltRecord[] {
  const records: SltRecord[] = []
  const lines = text.split('\n')
  for (let index = 0; index < lines.length; ) {
    if (lines[index] === '') {
      index++
      continue
    }
    const begin = index
    while (index < lines.length && lines[index] !== '') index++
    records.push(parseRecord(lines.slice(begin, index), begin + 1))
  }
  return records
}

function parseRecord(lines: readonly string[], line: number): SltRecord {
  const first = lines.findIndex((text) => !text.startsWith('#'))
  const comments = first < 0 ? lines : lines.slice(0, first)
  if (first < 0) return { comments, kind: 'ok', failing: false, rowsort: false, sql: '', expected: [], line }
  const words = (lines[first] as string).split(' ')
  const failing = words[0] === 'failing'
  if (failing) words.shift()
  const rest = lines.slice(first + 1)
  const bar = rest.indexOf('----')
  const sql = (bar < 0 ? rest : rest.slice(0, bar)).join('\n')
  const expected = bar < 0 ? [] : rest.slice(bar + 1)
  const kind = kindOf(words, line + first)
  if (kind === 'include') return { comments, kind, failing, rowsort: false, sql: words[1] ?? '', expected, line }
  return { comments, kind, failing, rowsort: words.includes('rowsort'), sql, expected, line: line + first }
}

function kindOf(words: readonly string[], line: number): SltKind {
  const text = words.join(' ')
  if (text === 'statement ok') return 'ok'
  if (text === 'statement error') return 'error'
  if (text === 'restart') return 'restart'
  if (words[0] === 'include') return 'include'
  if (text === 'query' || text === 'query rowsort') return 'query'
  throw new Error(`unknown record [line=${line}, text=${text}]`)
}

export function printSlt(records: readonly SltRecord[]): string {
  return records.map(printRecord).join('\n')
}

function printRecord(record: SltRecord): string {
  const { comments, kind, failing, rowsort, sql, expected } = record
  if (kind === 'include') return `${[...comments, `include ${sql}`].join('\n')}\n`
  const words = kind === 'ok' || kind === 'error' ? `statement ${kind}` : `${kind}${rowsort ? ' rowsort' : ''}`
  const head = sql === '' && kind !== 'restart' ? [] : [`${failing ? 'failing ' : ''}${words}`]
  const body = sql === '' ? [] : [sql]
  const tail = kind === 'error' || kind === 'query' ? ['----', ...expected] : []
  return `${[...comments, ...head, ...body, ...(head.length === 0 ? [] : tail)].join('\n')}\n`
}

/** Null if the response is the expected one, else a description of the difference. */
export function difference(record: SltRecord, answer: SltAnswer): string | null {
  const wanted = record.kind
  if (wanted === 'ok') return answer.kind === 'error' ? `refused: ${answer.lines.join(' ')}` : null
  if (answer.kind !== wanted) return `wanted ${wanted}, got ${answer.kind}:\n${answer.lines.join('\n')}`
  const [expected, found] = ordered(record, answer.lines)
  const types = wanted === 'query' ? headerTypes(record.expected[0] ?? '') : []
  const same = expected.length === found.length && expected.every((line, at) => sameLine(line, found[at] ?? '', types))
  return same ? null : `wanted:\n${record.expected.join('\n')}\ngot:\n${answer.lines.join('\n')}`
}

function ordered({ rowsort, expected }: SltRecord, found: readonly string[]): [readonly string[], readonly string[]] {
  if (!rowsort) return [expected, found]
  const sorted = (lines: readonly string[]) => [...lines.slice(0, 1), ...lines.slice(1).sort()]
  return [sorted(expected), sorted(found)]
}

function headerTypes(header: string): string[] {
  return splitCells(header).map((cell) => cell.slice(cell.lastIndexOf(':') + 1).replace(/"$/, ''))
}

function sameLine(wanted: string, found: string, types: readonly string[]): boolean {
  if (wanted === found) return true
  if (!types.some((type) => type in tolerances)) return false
  const wantedCells = splitCells(wanted)
  const foundCells = splitCells(found)
  return (
    wantedCells.length === foundCells.length &&
    wantedCells.every((cell, at) => sameCell(cell, foundCells[at] ?? '', types[at] ?? ''))
  )
}

/** Relative tolerance. */
const tolerances: Readonly<Record<string, number>> = { DOUBLE: 1e-9, FLOAT: 1e-6 }

function sameCell(wanted: string, found: string, type: string): boolean {
  if (wanted === found) return true
  const tolerance = tolerances[type]
  if (tolerance === undefined || wanted === 'NULL' || found === 'NULL') return false
  const size = Math.max(Math.abs(Number(wanted)), Math.abs(Number(found)))
  return Math.abs(Number(wanted) - Number(found)) <= size * tolerance
}

/** Splits at ` | ` outside of quoted cells. */
export function splitCells(line: string): string[] {
  return line.match(/(?:^|(?<= \| ))(?:"(?:[^"\\]|\\.)*"|.*?)(?= \| |$)/g) ?? []
}

/** A cell of the file from a JSON token. */
export function cellText(token: string): string {
  if (token === 'null') return 'NULL'
  if (!token.startsWith('"')) return token
  return plainText(JSON.parse(token) as string)
}

export function plainText(text: string): string {
  const plain = text !== '' && text !== 'NULL' && text === text.trim() && !/[\p{Cc}|"#]/u.test(text)
  return plain ? text : JSON.stringify(text)
}
