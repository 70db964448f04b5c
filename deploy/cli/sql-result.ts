// Executes one statement of `penstock sql`: sends it to the server, and renders the result in the requested format, or
// an error with its place. Also splits a text into statements.

import { displayWidth } from './display-width.js'
import {
  csvText,
  cutText,
  doneText,
  type ExecResponse,
  htmlText,
  jsonLinesText,
  markdownText,
  parseResponse,
  tableText,
  tsvText,
  verticalText,
} from './exec-response.js'
import { type Client, exitCodes, refusalOf, type ServerFlags, ToolError } from './http-client.js'
import { formatOfName } from './output-file.js'

export interface SqlFlags extends ServerFlags {
  readonly execute?: string
  readonly file?: string
  readonly format?: string
  readonly output?: string
  readonly limit?: string
  readonly timings?: boolean
}

export const sqlFormats = ['table', 'vertical', 'csv', 'tsv', 'json', 'jsonl', 'markdown', 'html'] as const
export type Format = (typeof sqlFormats)[number]

/** How each format shows rows; null: the response as it came. */
const rowsText: Readonly<Record<Format, ((response: ExecResponse) => string) | null>> = {
  table: tableText,
  vertical: verticalText,
  csv: csvText,
  tsv: tsvText,
  json: null,
  jsonl: jsonLinesText,
  markdown: markdownText,
  html: htmlText,
}

/** Formats of files; those that are no formats of a terminal come from the export only. */
export type FileFormat = Format | 'parquet' | 'arrow'

const endings: Readonly<Record<string, FileFormat>> = {
  '.csv': 'csv',
  '.tsv': 'tsv',
  '.json': 'json',
  '.jsonl': 'jsonl',
  '.ndjson': 'jsonl',
  '.md': 'markdown',
  '.html': 'html',
  '.txt': 'table',
  '.parquet': 'parquet',
  '.arrow': 'arrow',
}

/** The format that the name of a file asks for; undefined if it has no ending. */
export function formatOfFile(file: string): FileFormat | undefined {
  return formatOfName(file, endings)
}

export interface StatementResult {
  readonly response: ExecResponse
  render(format: Format): string
  /** What belongs to the standard error in a format: that there are more rows, and timings. */
  notes(format: Format): string
}

export function checkFormat(text: string): Format {
  const known = sqlFormats.find((name) => name === text)
  if (known === undefined) throw new ToolError(`--format is one of ${sqlFormats.join(', ')}`, exitCodes.usage)
  return known
}

export async function resultOf(
  client: Client,
  statement: string,
  { limit, timings, signal }: Pick<SqlFlags, 'limit' | 'timings'> & { readonly signal?: AbortSignal },
): Promise<StatementResult> {
  const query: Record<string, string> = { query: statement }
  if (limit !== undefined) query['limit'] = limit
  if (timings === true) query['timings'] = 'true'
  const reply = await client.get('exec', query, signal)
  if (reply.status !== 200) throw await refusalOf(reply)
  const text = await bodyText(reply.body, signal)
  const failure = reply.trailers['x-error']
  if (failure !== undefined) throw new ToolError(decodeURIComponent(failure))
  const response = parseResponse(text)
  return {
    response,
    render: (format) => rendered(format, text, response),
    notes: (format) => {
      const forPeople = format === 'table' || format === 'vertical'
      const cut = response.capped === true && !forPeople ? `${cutText(response)}\n` : ''
      if (timings !== true || response.timings === undefined) return cut
      const { compiler, execute } = response.timings
      return `${cut}compiled in ${compiler} ms, run in ${execute} ms\n`
    },
  }
}

/** A body that ends because of the signal is a cancelled statement. */
async function bodyText(body: { text(): Promise<string> }, signal: AbortSignal | undefined): Promise<string> {
  try {
    return await body.text()
  } catch (error) {
    if (signal?.aborted === true) throw new ToolError('cancelled')
    throw error
  }
}

function rendered(format: Format, text: string, response: ExecResponse): string {
  const show = rowsText[format]
  if (show === null) return `${text.trimEnd()}\n`
  if (response.columns === undefined) return format === 'table' || format === 'vertical' ? doneText(response) : ''
  return show(response)
}

/** An error with the line that contains it, a caret below its place, and the suggestion of the server. */
export function errorLines(error: ToolError, sql: string, origin: Origin | null = null): string {
  const place = errorPlace(error, sql, origin)
  if (place === '') return `error: ${error.message}\n`
  return `error: ${error.bare === '' ? error.message : error.bare}\n${place}${error.hint === '' ? '' : `hint: ${error.hint}\n`}`
}

/** The place of a statement in a file. */
export interface Origin {
  readonly file: string
  /** How many lines of the file come before the statement. */
  readonly linesBefore: number
}

/** Statements of a text that are not empty, with the number of lines before each. */
export function* placesOf(
  text: string,
  statements: readonly string[],
): Generator<{ readonly statement: string; readonly linesBefore: number }> {
  let [at, lines] = [0, 0]
  for (const statement of statements) {
    const begin = text.indexOf(statement, at)
    lines += newlines(text.slice(at, begin))
    if (!isEmpty(statement)) yield { statement, linesBefore: lines }
    lines += newlines(statement)
    at = begin + statement.length
  }
}

function newlines(text: string): number {
  return text.split('\n').length - 1
}

/**
 * The line of a statement that contains an error, with a caret below its place. If the place is not known, the line of the
 * file where the statement begins; empty without a file.
 */
export function errorPlace({ position }: ToolError, sql: string, origin: Origin | null = null): string {
  const titleOf = (line: number): string => {
    const inFile = line + (origin?.linesBefore ?? 0)
    return origin === null || inFile < 1 ? `line ${line}` : `${origin.file}, line ${inFile}`
  }
  if (position <= 0 || position > sql.length) {
    const skipped = /^\s*/.exec(sql)?.[0] ?? ''
    return origin === null ? '' : `${titleOf(1 + newlines(skipped))}\n`
  }
  const begin = sql.lastIndexOf('\n', position - 1) + 1
  const end = sql.indexOf('\n', position)
  const line = sql.slice(begin, end < 0 ? sql.length : end)
  const head = `${titleOf(1 + newlines(sql.slice(0, begin)))}: `
  // A tab stays, since its width depends on the terminal.
  const lead = sql.slice(begin, position).replace(/[^\t]+/g, (text) => ' '.repeat(displayWidth(text)))
  return `${head}${line}\n${' '.repeat(head.length)}${lead}^\n`
}

export function isEmpty(statement: string): boolean {
  return withoutComments(statement) === ''
}

/** Whether a statement begins as one that has rows, which an export can save. */
export function isQuery(statement: string): boolean {
  return /^(select|with|show|table|explain|values|from)\b|^\(/i.test(withoutComments(statement))
}

function withoutComments(statement: string): string {
  return statement.replace(/--[^\n]*|\/\*[\s\S]*?\*\//g, '').trim()
}

/** Whether a quote or a comment is not closed at the end of the text. */
export function isWithinQuotes(text: string): boolean {
  return [...text.matchAll(token)].some(([mark]) => mark === "'" || mark === '"' || mark === '/*')
}

const token = /'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|\/\*[\s\S]*?\*\/|;|'|"|\/\*/g

/** Splits off complete statements, without their semicolons, from the unfinished rest. */
export function splitStatements(text: string): { readonly statements: readonly string[]; readonly rest: string } {
  const statements: string[] = []
  let begin = 0
  for (const match of text.matchAll(token)) {
    const [mark] = match
    // An unclosed quote or comment extends to the end.
    if (mark === "'" || mark === '"' || mark === '/*') break
    if (mark !== ';') continue
    statements.push(text.slice(begin, match.index).trim())
    begin = match.index + 1
  }
  return { statements, rest: text.slice(begin) }
}
