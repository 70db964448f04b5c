// The interactive prompt of `penstock sql`: statements over several lines, a history in a file, completion, and
// backslash commands. Ctrl-C cancels the running statement on the server, or clears the input; it does not end the
// prompt.

import { appendFileSync, chmodSync, readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { createInterface, type Interface } from 'node:readline'
import { gzipSync } from 'node:zlib'
import { mentionsSecret, tokensOf } from '../../gateways/common/sql-text.js'
import { exportFormats, exportRows } from './cli-export.js'
import { displayWidth } from './display-width.js'
import { type Client, ToolError } from './http-client.js'
import { isGzip } from './output-file.js'
import { page } from './pager.js'
import { commandOf, runCommand } from './prompt-commands.js'
import { openCompleter } from './prompt-completion.js'
import type { PromptControls, PromptState, Terminal } from './prompt-state.js'
import {
  errorLines,
  type Format,
  formatOfFile,
  isEmpty,
  isQuery,
  isWithinQuotes,
  type Origin,
  placesOf,
  resultOf,
  type SqlFlags,
  type StatementResult,
  splitStatements,
} from './sql-result.js'

const historyMax = 1000
const prompts = { ready: 'penstock> ', more: '      ... ' } as const

export function ownTerminal(): Terminal {
  const historyFile = process.env['PENSTOCK_HISTORY'] ?? join(homedir(), '.penstock_history')
  return { input: process.stdin, output: process.stdout, historyFile: historyFile === '' ? null : historyFile }
}

export async function converse(client: Client, format: Format, flags: SqlFlags, terminal: Terminal): Promise<void> {
  const prompt = new Prompt(client, format, flags, terminal)
  await prompt.run()
}

class Prompt implements PromptControls {
  readonly client: Client
  readonly flags: SqlFlags
  readonly state: PromptState
  readonly terminal: Terminal
  readonly #lines: Interface
  #waiting = ''
  /** The lines of the unfinished statement, as they were typed. */
  #typed: string[] = []
  /** That of readline, newest first, which it fills with lines. */
  #history: string[] = []
  #running: AbortController | null = null
  #isOver = false

  constructor(client: Client, format: Format, flags: SqlFlags, terminal: Terminal) {
    this.client = client
    this.flags = flags
    this.terminal = terminal
    const timing = flags.timings === true
    this.state = { format, expanded: 'off', timing, pager: true, outputFile: null, last: '' }
    const complete = openCompleter(client, () => this.#waiting)
    this.#lines = createInterface({
      ...{ input: terminal.input, output: terminal.output, terminal: true, prompt: prompts.ready },
      ...{ history: readHistory(terminal.historyFile), historySize: historyMax, removeHistoryDuplicates: true },
      completer: (line: string, done: (error: Error | null, result: [string[], string]) => void) => {
        complete(line).then(
          (result) => done(null, result),
          () => done(null, [[], line]),
        )
      },
    })
  }

  async run(): Promise<void> {
    this.#lines.on('SIGINT', () => this.#interrupt())
    this.#lines.on('history', (history) => {
      this.#history = history
    })
    this.write('\\? lists the commands, \\q leaves.\n')
    this.#lines.prompt()
    for await (const line of this.#lines) {
      await this.#take(line)
      if (this.#isOver) break
      this.#lines.setPrompt(isEmpty(this.#waiting) ? prompts.ready : prompts.more)
      this.#lines.prompt()
    }
    this.#lines.close()
    if (!this.#isOver) this.write('\n')
  }

  leave(): void {
    this.#isOver = true
  }

  write(text: string): void {
    this.terminal.output.write(text)
  }

  takeWaiting(): string {
    const text = this.#waiting
    this.#waiting = ''
    this.#typed = []
    return text
  }

  async runText(text: string, origin?: Origin): Promise<boolean> {
    const { statements, rest } = splitStatements(text)
    this.#waiting = rest
    for (const { statement, linesBefore } of placesOf(text, statements)) {
      this.#remember(statement)
      const place = origin && { file: origin.file, linesBefore: origin.linesBefore + linesBefore }
      if (!(await this.runStatement(statement, place))) return false
    }
    return true
  }

  async runStatement(sql: string, origin: Origin | null = null): Promise<boolean> {
    this.state.last = sql
    const begunMs = performance.now()
    const succeeded = await this.guarded(
      async (signal) => {
        if (await this.#exported(sql, signal)) return
        const result = await resultOf(this.client, sql, { ...this.flags, signal })
        await this.#show(result)
      },
      sql,
      origin,
    )
    if (this.state.timing) this.write(`Time: ${(performance.now() - begunMs).toFixed(1)} ms\n`)
    return succeeded
  }

  async guarded(
    work: (signal: AbortSignal) => Promise<void>,
    sql = '',
    origin: Origin | null = null,
  ): Promise<boolean> {
    const running = new AbortController()
    this.#running = running
    try {
      await work(running.signal)
      return true
    } catch (error) {
      if (!(error instanceof ToolError)) throw error
      this.write(running.signal.aborted ? 'cancelled\n' : errorLines(error, sql, origin))
      return false
    } finally {
      this.#running = null
    }
  }

  async aside(work: () => Promise<void>): Promise<void> {
    this.#lines.pause()
    try {
      await work()
    } finally {
      this.#lines.resume()
    }
  }

  /** Saves all rows of a query in the file of `\o`, if its format is one of exports. */
  async #exported(sql: string, signal: AbortSignal): Promise<boolean> {
    const { outputFile: output } = this.state
    if (output === null || !isQuery(sql)) return false
    const named = formatOfFile(output) ?? this.state.format
    const format = exportFormats.find((name) => name === named)
    if (format === undefined) return false
    const { limit } = this.flags
    const append = format !== 'parquet' && format !== 'arrow'
    const flags = { output, append, signal, ...(limit === undefined ? {} : { limit }) }
    const rows = await exportRows(this.client, sql, format, flags)
    this.write(`${rows === null ? '' : `${rows} rows to `}${output}\n`)
    return true
  }

  async #show(result: StatementResult): Promise<void> {
    const { expanded } = this.state
    const named = this.state.outputFile === null ? undefined : formatOfFile(this.state.outputFile)
    // Only an export writes these: the result of another statement is shown.
    const isBinary = named === 'parquet' || named === 'arrow'
    const outputFile = isBinary ? null : this.state.outputFile
    const format = isBinary ? this.state.format : (named ?? this.state.format)
    const columns = this.terminal.output.columns ?? 80
    const isTable = format === 'table'
    const isWide = (): boolean => widest(result.render('table')) > columns
    const isExpanded = isTable && (expanded === 'on' || (expanded === 'auto' && isWide()))
    const text = result.render(isExpanded ? 'vertical' : format)
    if (outputFile === null) return await page(this, text)
    appendFileSync(outputFile, isGzip(outputFile) ? gzipSync(text) : text)
    this.write(result.notes('csv'))
  }

  async #take(line: string): Promise<void> {
    const command = isWithinQuotes(this.#waiting) ? null : commandOf(line, isEmpty(this.#waiting))
    if (command !== null) {
      await runCommand(this, command)
      return
    }
    this.#typed.push(line)
    const text = `${this.#waiting}${line}\n`
    if (!isEmpty(text) && splitStatements(text).rest.trim() === '') this.#joinHistory(text)
    await this.runText(text)
    if (isEmpty(this.#waiting)) this.#typed = []
  }

  /** A statement of several lines becomes one entry, which an arrow key brings back as a whole. */
  #joinHistory(text: string): void {
    const lines = this.#typed.filter((line) => line.trim() !== '')
    const entry = oneLine(text)
    const place = this.#history.indexOf(lines.at(-1) ?? '')
    if (lines.length < 2 || place < 0 || entry.includes('\n')) return
    this.#history.splice(place, 1, entry)
    for (const line of lines.slice(0, -1)) {
      const earlier = this.#history.indexOf(line, place + 1)
      if (earlier >= 0) this.#history.splice(earlier, 1)
    }
  }

  #interrupt(): void {
    if (this.#running !== null) {
      this.#running.abort()
      return
    }
    this.#waiting = ''
    this.#typed = []
    this.write('^C\n')
    this.#lines.write(null, { ctrl: true, name: 'e' })
    this.#lines.write(null, { ctrl: true, name: 'u' })
    this.#lines.setPrompt(prompts.ready)
    this.#lines.prompt()
  }

  /** A statement is one entry, on one line. Statements that mention secrets are not kept. */
  #remember(statement: string): void {
    const { historyFile } = this.terminal
    if (historyFile === null || mentionsSecret(statement)) return
    const entry = `${oneLine(statement)};\n`
    if (entry.trimEnd().includes('\n')) return
    try {
      appendFileSync(historyFile, entry, { mode: 0o600 })
      chmodSync(historyFile, 0o600)
    } catch {
      // A history that cannot be written is no reason to refuse statements.
    }
  }
}

/** The same statement on one line, unless a string in it has several. */
function oneLine(statement: string): string {
  return tokensOf(statement)
    .map(({ kind, text }) => {
      if (kind === 'space') return ' '
      return kind === 'comment' && text.startsWith('--') ? `/*${text.slice(2)} */` : text
    })
    .join('')
    .trim()
}

function widest(text: string): number {
  return text.split('\n').reduce((most, line) => Math.max(most, displayWidth(line)), 0)
}

/** Newest first, as readline wants it. */
function readHistory(file: string | null): string[] {
  if (file === null) return []
  try {
    return readFileSync(file, 'utf8')
      .split('\n')
      .filter((line) => line !== '')
      .slice(-historyMax)
      .reverse()
  } catch {
    return []
  }
}
