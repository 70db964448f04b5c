// Implements `penstock sql`: sends statements to a running server, from the command line, a file, standard input or a
// prompt. A statement ends at a semicolon outside of quotes and comments.

import { readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import {
  csvText,
  cutText,
  doneText,
  type ExecResponse,
  jsonLinesText,
  markdownText,
  parseResponse,
  tableText,
  tsvText,
  verticalText,
} from './exec-response.js'
import { type Client, exitCodes, openClient, refusalText, type ServerFlags, ToolError } from './http-client.js'

export interface SqlFlags extends ServerFlags {
  readonly execute?: string
  readonly file?: string
  readonly format?: string
  readonly limit?: string
  readonly timings?: boolean
}

export const sqlFormats = ['table', 'vertical', 'csv', 'tsv', 'json', 'jsonl', 'markdown'] as const
type Format = (typeof sqlFormats)[number]

const help = `\\q            leave
\\format NAME  ${sqlFormats.join(', ')}
\\d            tables
\\d TABLE      columns of a table
A statement ends with a semicolon.
`

/** How each format shows rows; null: the response as it came. */
const rowsText: Readonly<Record<Format, ((response: ExecResponse) => string) | null>> = {
  table: tableText,
  vertical: verticalText,
  csv: csvText,
  tsv: tsvText,
  json: null,
  jsonl: jsonLinesText,
  markdown: markdownText,
}

/** `statement` is one that the command line gives without an option. */
export async function runSql(statement: string | undefined, flags: SqlFlags): Promise<void> {
  if (statement !== undefined && (flags.execute !== undefined || flags.file !== undefined))
    throw new ToolError('give one of a statement, --execute and --file', exitCodes.usage)
  const format = checkFormat(flags.format ?? 'table')
  const client = openClient(flags)
  try {
    const given = statement ?? flags.execute
    if (given !== undefined) await runAll(client, given, format, flags)
    else if (flags.file !== undefined) await runAll(client, readFileSync(flags.file, 'utf8'), format, flags)
    else if (process.stdin.isTTY === true) await converse(client, format, flags)
    else await runAll(client, await textOfInput(), format, flags)
  } finally {
    await client.close()
  }
}

function checkFormat(text: string): Format {
  const known = sqlFormats.find((name) => name === text)
  if (known === undefined) throw new ToolError(`--format is one of ${sqlFormats.join(', ')}`, exitCodes.usage)
  return known
}

async function textOfInput(): Promise<string> {
  let text = ''
  process.stdin.setEncoding('utf8')
  for await (const chunk of process.stdin) text += String(chunk)
  return text
}

/** Stops at the first statement that fails. */
async function runAll(client: Client, text: string, format: Format, flags: SqlFlags): Promise<void> {
  const { statements, rest } = splitStatements(text)
  for (const statement of [...statements, rest]) {
    if (!isEmpty(statement)) await runOne(client, statement, format, flags)
  }
}

async function converse(client: Client, first: Format, flags: SqlFlags): Promise<void> {
  const lines = createInterface({ input: process.stdin, output: process.stdout, prompt: 'penstock> ' })
  let format = first
  let waiting = ''
  lines.prompt()
  for await (const line of lines) {
    if (waiting.trim() === '' && line.startsWith('\\')) {
      if (/^\\q/.test(line)) break
      const command = await runCommand(client, line, format, flags)
      format = command
    } else {
      waiting += `${line}\n`
      const { statements, rest } = splitStatements(waiting)
      waiting = rest
      for (const statement of statements)
        if (!isEmpty(statement)) await attempt(() => runOne(client, statement, format, flags))
    }
    lines.setPrompt(isEmpty(waiting) ? 'penstock> ' : '      ... ')
    lines.prompt()
  }
  lines.close()
}

async function runCommand(client: Client, line: string, format: Format, flags: SqlFlags): Promise<Format> {
  const [word = '', argument = ''] = line.trim().split(/\s+/)
  let next = format
  await attempt(async () => {
    if (word === '\\format') next = checkFormat(argument)
    else if (word === '\\d' && argument === '') await runOne(client, 'SHOW TABLES', format, flags)
    else if (word === '\\d') await runOne(client, `SHOW COLUMNS FROM "${argument.replaceAll('"', '')}"`, format, flags)
    else process.stdout.write(help)
  })
  return next
}

/** At the prompt an error is printed, and the prompt continues. */
async function attempt(work: () => Promise<void>): Promise<void> {
  try {
    await work()
  } catch (error) {
    if (!(error instanceof ToolError)) throw error
    process.stderr.write(`error: ${error.message}\n`)
  }
}

async function runOne(client: Client, statement: string, format: Format, flags: SqlFlags): Promise<void> {
  const query: Record<string, string> = { query: statement }
  if (flags.limit !== undefined) query['limit'] = flags.limit
  if (flags.timings === true) query['timings'] = 'true'
  const reply = await client.get('exec', query)
  if (reply.status !== 200) throw new ToolError(await refusalText(reply))
  const text = await reply.body.text()
  const failure = reply.trailers['x-error']
  if (failure !== undefined) throw new ToolError(decodeURIComponent(failure))
  const response = parseResponse(text)
  const show = rowsText[format]
  const forPeople = format === 'table' || format === 'vertical'
  if (show === null) process.stdout.write(`${text.trimEnd()}\n`)
  else if (response.columns === undefined) process.stdout.write(forPeople ? doneText(response) : '')
  else process.stdout.write(show(response))
  if (response.capped === true && !forPeople) process.stderr.write(`${cutText(response)}\n`)
  if (flags.timings === true && response.timings !== undefined) {
    const { compiler, execute } = response.timings
    process.stderr.write(`compiled in ${compiler} ms, run in ${execute} ms\n`)
  }
}

function isEmpty(statement: string): boolean {
  return statement.replace(/--[^\n]*|\/\*[\s\S]*?\*\//g, '').trim() === ''
}

/** Splits off complete statements, without their semicolons, from the unfinished rest. */
export function splitStatements(text: string): { readonly statements: readonly string[]; readonly rest: string } {
  const statements: string[] = []
  const token = /'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|\/\*[\s\S]*?\*\/|;|'|"|\/\*/g
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
