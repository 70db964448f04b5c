// The backslash commands of the prompt of `penstock sql`, such as `\x`.

import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { literal } from '../../gateways/common/sql-text.js'
import { exitCodes, ToolError } from './http-client.js'
import { checkFolder } from './output-file.js'
import type { PromptControls } from './prompt-state.js'
import { checkFormat, formatOfFile, isEmpty, resultOf, sqlFormats } from './sql-result.js'

interface Command {
  readonly names: readonly string[]
  readonly usage: string
  readonly what: string
  readonly run: (prompt: PromptControls, argument: string) => Promise<void> | void
}

const watchSeconds = 2

const listed = (kind: string): string =>
  `SELECT table_name, table_row_count AS "rows", "partitionBy" AS partitioned, "designatedTimestamp" AS "timestamp" FROM tables() WHERE table_type = '${kind}' ORDER BY table_name`

const commands: readonly Command[] = [
  {
    names: ['d'],
    usage: '\\d [TABLE]',
    what: 'tables and views; the columns of one',
    run: (prompt, table) =>
      ask(prompt, table === '' ? 'SHOW TABLES' : `SHOW COLUMNS FROM "${unquoted(table).replaceAll('"', '""')}"`),
  },
  { names: ['dt'], usage: '\\dt', what: 'tables with their rows', run: (prompt) => ask(prompt, listed('T')) },
  {
    names: ['dv'],
    usage: '\\dv',
    what: 'views',
    run: (prompt) => ask(prompt, 'SELECT view_name, view_status, view_sql FROM views()'),
  },
  {
    names: ['dm'],
    usage: '\\dm',
    what: 'materialized and live views',
    run: (prompt) =>
      ask(
        prompt,
        "SELECT view_name, base_table_name, refresh_type, view_status FROM materialized_views() UNION ALL SELECT view_name, base_table_name, 'live', view_status FROM live_views()",
      ),
  },
  {
    names: ['df'],
    usage: '\\df [NAME]',
    what: 'functions whose name contains NAME',
    run: (prompt, name) =>
      ask(
        prompt,
        `SELECT name, signature, type FROM functions() WHERE name LIKE ${literal(`%${name}%`)} ORDER BY name, signature`,
      ),
  },
  {
    names: ['l'],
    usage: '\\l',
    what: 'databases',
    run: (prompt) => ask(prompt, 'SELECT datname AS name FROM pg_catalog.pg_database'),
  },
  {
    names: ['x'],
    usage: '\\x [on|off|auto]',
    what: 'a line for each value',
    run: (prompt, argument) => {
      const { state } = prompt
      state.expanded = choiceOf(argument, ['on', 'off', 'auto'], state.expanded === 'off' ? 'on' : 'off')
      prompt.write(`A line for each value: ${state.expanded}.\n`)
    },
  },
  {
    names: ['timing'],
    usage: '\\timing [on|off]',
    what: 'print how long statements take',
    run: (prompt, argument) => {
      prompt.state.timing = choiceOf(argument, ['on', 'off'], prompt.state.timing ? 'off' : 'on') === 'on'
      prompt.write(`Timing: ${prompt.state.timing ? 'on' : 'off'}.\n`)
    },
  },
  {
    names: ['pager'],
    usage: '\\pager [on|off]',
    what: 'show long results in a pager (PENSTOCK_PAGER, PAGER, less)',
    run: (prompt, argument) => {
      prompt.state.pager = choiceOf(argument, ['on', 'off'], prompt.state.pager ? 'off' : 'on') === 'on'
      prompt.write(`Pager: ${prompt.state.pager ? 'on' : 'off'}.\n`)
    },
  },
  {
    names: ['format'],
    usage: '\\format NAME',
    what: sqlFormats.join(', '),
    run: (prompt, name) => {
      prompt.state.format = checkFormat(name)
    },
  },
  {
    names: ['i'],
    usage: '\\i FILE',
    what: 'run the statements of a file, until one fails; the file continues an unfinished one',
    run: async (prompt, file) => {
      const text = readText(file)
      // The last statement needs no semicolon.
      const waiting = prompt.takeWaiting()
      await prompt.runText(`${waiting}${text}\n;`, { file, linesBefore: 1 - waiting.split('\n').length })
    },
  },
  {
    names: ['o'],
    usage: '\\o [FILE]',
    what: 'results go to a file, in the format of its name (.csv, .parquet ..); without one, to the terminal',
    run: (prompt, file) => {
      if (file !== '') writeText(file)
      prompt.state.outputFile = file === '' ? null : file
    },
  },
  {
    names: ['watch'],
    usage: '\\watch [SECONDS]',
    what: 'run the statement, or the last one, again and again, until Ctrl-C',
    run: watch,
  },
  {
    names: ['e'],
    usage: '\\e',
    what: 'edit the statement (PENSTOCK_EDITOR, VISUAL, EDITOR, vi), and run it if it ends with a semicolon',
    run: edit,
  },
  { names: ['q', 'quit'], usage: '\\q', what: 'leave', run: (prompt) => prompt.leave() },
  { names: ['?', 'h', 'help'], usage: '\\?', what: 'this list', run: (prompt) => prompt.write(helpText()) },
]

/** Words that other prompts know, and that are no SQL. */
const words: Readonly<Record<string, string>> = { exit: '\\q', quit: '\\q', help: '\\?' }

/** The command that a line stands for: one with a backslash, or, where a statement begins, `exit`, `quit` or `help`. */
export function commandOf(line: string, begins: boolean): string | null {
  const text = line.trim()
  if (text.startsWith('\\')) return text
  return begins ? (words[text.replace(/\s*;$/, '').toLowerCase()] ?? null) : null
}

export const commandNames: readonly string[] = commands.flatMap(({ names }) => names.map((name) => `\\${name}`))

export async function runCommand(prompt: PromptControls, line: string): Promise<void> {
  const [, name = '', rest = ''] = /^\\(\S*)\s*(.*?)\s*;?\s*$/.exec(line) ?? []
  const command = commands.find(({ names }) => names.includes(name))
  await prompt.guarded(async () => {
    if (command === undefined) throw new ToolError(`unknown command \\${name}; \\? lists them`, exitCodes.usage)
    await command.run(prompt, rest)
  })
}

function helpText(): string {
  const size = commands.reduce((most, { usage }) => Math.max(most, usage.length), 0)
  const lines = commands.map(({ usage, what }) => `${usage.padEnd(size)}  ${what}\n`)
  return `${lines.join('')}A statement ends with a semicolon. Tab completes, Ctrl-C cancels.\n`
}

async function ask(prompt: PromptControls, sql: string): Promise<void> {
  await prompt.runStatement(sql)
}

function unquoted(name: string): string {
  return /^".*"$/.test(name) ? name.slice(1, -1).replaceAll('""', '"') : name
}

function choiceOf<Choice extends string>(text: string, choices: readonly Choice[], otherwise: Choice): Choice {
  if (text === '') return otherwise
  const found = choices.find((choice) => choice === text)
  if (found === undefined) throw new ToolError(`expected ${choices.join(', ')}`, exitCodes.usage)
  return found
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw new ToolError(fileProblem(error, file))
  }
}

function fileProblem(error: unknown, file: string): string {
  const code = error instanceof Error && 'code' in error ? error.code : ''
  if (code === 'ENOENT') return `no such file: ${file}`
  return error instanceof Error ? error.message : String(error)
}

/** Checks the ending of the name, and empties the file, so that it is known to be writable. */
function writeText(file: string): void {
  formatOfFile(file)
  checkFolder(file)
  try {
    writeFileSync(file, '')
  } catch (error) {
    throw new ToolError(fileProblem(error, file))
  }
}

async function watch(prompt: PromptControls, argument: string): Promise<void> {
  const seconds = argument === '' ? watchSeconds : Number(argument)
  if (!(seconds > 0)) throw new ToolError('expected a number of seconds', exitCodes.usage)
  const waiting = prompt.takeWaiting()
  const sql = isEmpty(waiting) ? prompt.state.last : waiting.trim()
  if (sql === '') throw new ToolError('no statement has run yet')
  await prompt.guarded(async (signal) => {
    while (!signal.aborted) {
      const result = await resultOf(prompt.client, sql, { ...prompt.flags, signal })
      prompt.write(`${new Date().toISOString()} (every ${seconds} s)\n${result.render(prompt.state.format)}`)
      await sleep(seconds * 1000, undefined, { signal }).catch(() => {})
    }
  })
}

async function edit(prompt: PromptControls): Promise<void> {
  const editor = process.env['PENSTOCK_EDITOR'] ?? process.env['VISUAL'] ?? process.env['EDITOR'] ?? 'vi'
  const folder = mkdtempSync(join(tmpdir(), 'penstock-sql-'))
  const file = join(folder, 'statement.sql')
  const waiting = prompt.takeWaiting()
  writeFileSync(file, waiting.trim() === '' && prompt.state.last !== '' ? `${prompt.state.last};\n` : waiting)
  try {
    await prompt.aside(() => foreground(editor, file))
    const text = readText(file)
    prompt.write(text.endsWith('\n') ? text : `${text}\n`)
    await prompt.runText(text)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function foreground(command: string, file: string): Promise<void> {
  return new Promise((resolve, reject) => {
    // The variable may contain options.
    const child = spawn(`${command} "${file}"`, { stdio: 'inherit', shell: true })
    child.on('error', (error) => reject(new ToolError(error.message)))
    child.on('close', (code) =>
      code === 0 ? resolve() : reject(new ToolError(`the editor ended with status ${code} [editor=${command}]`)),
    )
  })
}
