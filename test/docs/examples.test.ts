// Goal: the examples in the documents run, and print what the documents say; so do the example calls of functions.
//
// One server with the tables of `penstock demo` runs all pages but docs/guides/ten-tasks.md (tasks.test.ts). Tables
// that a page creates are dropped at its end, and no page may change the demo's tables. `DOCS_COMPLETE=1 npx vitest run
// test/docs` writes the actual results into the pages, so that reviewers read the diff. test/support/docs/doc-blocks.ts
// describes the blocks.

import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { doneText, parseResponse, tableText } from '../../deploy/cli/exec-response.js'
import { splitStatements } from '../../deploy/cli/sql-result.js'
import { aggregateFunctions, scalarFunctions } from '../../engine/sql/functions/registry/all.js'
import { sessionUsage, usage, windowUsage } from '../../engine/sql/functions/registry/usage.js'
import { type DocBlock, runnableBlocks, withResults } from '../support/docs/doc-blocks.js'
import { hasLanguage, isLanguage, runProgram } from '../support/docs/doc-programs.js'
import { filesBelow, repositoryRoot } from '../support/docs/source-tree.js'
import { command, TestServer } from '../support/server.js'

/** A Python with pandas and pyarrow: `.ci/run` has one. */
const python = process.env['DOCS_PYTHON']
const complete = process.env['DOCS_COMPLETE'] === '1'
const run = promisify(execFile)
const folder = mkdtempSync(join(tmpdir(), 'penstock-docs-'))
const server = new TestServer([
  ...['memory.bytes=512m', 'query.threads=1', 'telemetry.enabled=false'],
  ...[`copy.import.root=${folder}`, `copy.export.root=${folder}`],
  ...[`object.store.url=file://${folder}/store`, 'lake.commit.lag=1s'],
])
const demoCounts = `SELECT (SELECT count() FROM sensors) a, (SELECT count() FROM readings) b, (SELECT count() FROM doors) c,
  (SELECT sum(temperature) FROM readings) d`
let untouched: readonly (readonly unknown[])[] = []

/** tasks.test.ts runs it: it starts servers of its own. */
const tasks = 'docs/guides/ten-tasks.md'
const pages = ['README.md', ...filesBelow('docs').filter((path) => path.endsWith('.md') && path !== tasks)]
  .map((path) => ({ path, blocks: runnableBlocks(readFileSync(join(repositoryRoot, path), 'utf8')) }))
  .filter(({ blocks }) => blocks.length > 0)

beforeAll(async () => {
  await server.start()
  await shell('penstock demo')
  untouched = await server.rows(demoCounts)
})

afterAll(async () => {
  await server.remove()
  rmSync(folder, { recursive: true, force: true })
})

test.each(pages)('$path', async ({ path, blocks }) => {
  const results: (readonly [DocBlock, string])[] = []
  const session = new PgSession()
  for (const block of blocks.filter(({ kind }) => isHere(kind))) results.push([block, await resultOf(block, session)])
  await removeOthers()
  expect(await server.rows(demoCounts), 'the page changes the tables of the demo').toEqual(untouched)
  if (complete) {
    const file = join(repositoryRoot, path)
    writeFileSync(file, withResults(readFileSync(file, 'utf8'), results))
  }
  const wrong = results.filter(([{ mustFail }, result]) => mustFail !== result.startsWith('error: '))
  expect(wrong.map(([{ line, text }, result]) => `${path}:${line} ${result}\n${text}`)).toEqual([])
  if (complete) return
  for (const [{ line, text, expected }, result] of results)
    if (expected !== null) expect(result, `${path}:${line}\n${text}`).toBe(expected)
})

test('example calls of functions', async () => {
  await server.exec('CREATE SEQUENCE doc_numbers')
  const aggregates = new Set(aggregateFunctions.map(({ name }) => name))
  const scalars = new Set(scalarFunctions.map(({ name }) => name))
  const wrong: string[] = []
  for (const [key, [call, result]] of Object.entries(usage)) {
    const name = key.replace(/^.*: /, '')
    if (sessionUsage.has(name)) continue
    const isAggregate = aggregates.has(name) && (!scalars.has(name) || key.startsWith('Series'))
    const { body, text } = await server.exec(`SELECT ${call} x ${isAggregate ? 'FROM long_sequence(5)' : ''}`)
    const value = body.dataset?.[0]?.[0]
    const shown = value === null ? 'NULL' : typeof value === 'object' ? JSON.stringify(value) : String(value)
    if (body.error !== undefined || (result !== null && shown !== result)) wrong.push(`${call}: ${text}`)
  }
  expect(wrong).toEqual([])
  for (const { example } of windowUsage) {
    const values = await server.rows(`SELECT ${example[0]} FROM long_sequence(4)`)
    expect(values.map(([value]) => value ?? 'NULL').join(', '), example[0]).toBe(example[1])
  }
})

test('example calls of functions that need a session', async () => {
  const session = new PgSession()
  const calls = [...sessionUsage].map((name) => `SELECT ${usage[name]?.[0]} FROM sensors LIMIT 1`)
  const results: string[] = []
  for (const statement of ['BEGIN', "SELECT nextval('doc_numbers')", ...calls, 'ROLLBACK', 'DROP SEQUENCE doc_numbers'])
    results.push(await session.run(statement))
  expect(results.filter((result) => result.startsWith('error: '))).toEqual([])
})

async function resultOf({ kind, text }: DocBlock, session: PgSession): Promise<string> {
  if (kind === 'sh') return shell(text)
  if (isLanguage(kind)) {
    const ports = { http: portOf('http'), pg: portOf('postgres') }
    return runProgram(kind, text, ports)
  }
  if (kind === 'python') return shell(`'${python}' - <<'END'\n${text}\nEND`)
  const { statements, rest } = splitStatements(text)
  const all = [...statements, rest].filter((each) => each.replace(/--[^\n]*/g, '').trim() !== '')
  let result = ''
  for (const [index, statement] of all.entries()) {
    result = kind === 'sql' ? await overHttp(statement) : await session.run(statement)
    if (result.startsWith('error: ') && index < all.length - 1) return `${result}\n${statement}`
  }
  return result
}

function isHere(kind: string): boolean {
  return kind === 'python' ? python !== undefined : !isLanguage(kind) || hasLanguage(kind)
}

function portOf(listener: 'http' | 'postgres'): string {
  return server.address(listener).split(':')[1] ?? ''
}

/** As `penstock sql` prints it. */
async function overHttp(statement: string): Promise<string> {
  const { text } = await server.exec(statement)
  const answer = parseResponse(text) as ReturnType<typeof parseResponse> & { error?: string; position?: number }
  if (answer.error !== undefined) return `error: ${answer.error} [position=${answer.position}]`
  return (answer.columns === undefined ? doneText(answer) : tableText(answer)).trimEnd()
}

/** Connects at the first statement of a page. */
class PgSession {
  #client: pg.Client | null = null

  async run(statement: string): Promise<string> {
    this.#client ??= await server.connect({ types: { getTypeParser: () => String } })
    try {
      const { fields, rows, command, rowCount } = await this.#client.query<unknown[]>({
        text: statement,
        rowMode: 'array',
      })
      if (fields.length === 0) return rowCount === null ? command : `${command} ${rowCount}`
      return tableText({ columns: fields.map(({ name }) => ({ name, type: '' })), dataset: rows }).trimEnd()
    } catch (error) {
      return `error: ${error instanceof Error ? error.message : String(error)}`
    }
  }
}

/** The output of commands, errors included, with the addresses that the documents use. */
async function shell(commands: string): Promise<string> {
  const http = server.address('http')
  const functions = `set -eo pipefail; penstock() { '${process.execPath}' '${command}' "$@"; }`
  const own = commands
    .replaceAll(/(localhost|127\.0\.0\.1):9000/g, http)
    .replaceAll(/(localhost|127\.0\.0\.1):8812/g, server.address('postgres'))
  const env = { ...process.env, PENSTOCK_URL: `http://${http}` }
  try {
    const { stdout, stderr } = await run('bash', ['-c', `${functions}\n{ ${own}\n} 2>&1`], { cwd: folder, env })
    return (stdout + stderr).replaceAll('\r\n', '\n').trimEnd()
  } catch (error) {
    const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string }
    return `error: ${(stdout + stderr).trim()}`
  }
}

/** Drops what the page has created. */
async function removeOthers(): Promise<void> {
  for (const [name] of await server.rows('SELECT view_name FROM views()'))
    await server.exec(`DROP VIEW '${String(name)}'`)
  const demo = "'sensors', 'readings', 'doors'"
  const tables = await server.rows(`SELECT table_name FROM tables() WHERE table_name NOT IN (${demo})`)
  for (const [name] of tables) await server.exec(`DROP TABLE '${String(name)}'`)
}
