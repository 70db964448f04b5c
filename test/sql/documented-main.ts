// `node dist/test/sql/documented-main.js <folder> [--only name] [--all]`: runs the SQL blocks of a folder of Markdown
// documents (.md, .mdx) on a server of its own and prints each rejected statement with its error. It measures how much
// of another product's documented SQL this server accepts. Each document begins with the tables of fixtures/demo.sql.
//
// Unless `--all` is given, some rejected statements are only counted: syntax diagrams, incomplete statements,
// statements of other products and of the commercial edition of the documented product, those that the document itself
// shows as errors or writes by mistake, those with parameters, those that need a table, column or file that the
// document does not create, and those whose rejection docs/compatibility/ explains.

import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { parseArgs } from 'node:util'
import { splitStatements } from '../../deploy/cli/sql-result.js'
import { filesBelow, repositoryRoot } from '../support/docs/source-tree.js'
import { TestServer } from '../support/server.js'

type Kind =
  | 'carried out'
  | 'refused'
  | 'not a statement'
  | 'paid version'
  | 'missing name'
  | 'other product'
  | 'other table'
  | 'error by intent'
  | 'mistake of the document'
  | 'needs parameters'
  | 'listed'

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: { only: { type: 'string', default: '' }, all: { type: 'boolean', default: false } },
})
const [folder] = positionals
if (folder === undefined) throw new Error('usage: documented-main.js <folder> [--only name] [--all]')

const fragments = new Set([
  ...['WHERE', 'CASE', 'SAMPLE', 'FILL', 'WINDOW', 'PIVOT', 'FOR', 'ORDER', 'GROUP', 'LIMIT', 'CAST', 'FROM', 'JOIN'],
  ...['WHEN', 'SUM', 'AVG', 'HORIZON', 'ASOF', 'LATEST', 'PARTITION', 'ALIGN', 'FLOOR', 'LEFT', 'UNION', 'EXCEPT', ''],
])
/** Placeholders of syntax diagrams. */
const placeholders =
  /\b(tableName|columnName|tab_name|viewName|view_name|userName|groupName|HINT_NAME|queryId|rowCount)\b|<\w+>|\bFROM table\b/
const paid = new RegExp(
  '^(GRANT|REVOKE|ASSUME|EXIT SERVICE|(CREATE|ALTER|DROP) (USER|GROUP|SERVICE ACCOUNT|EXTERNAL|SERVICE)|ADD (USER|EXTERNAL)|REMOVE (USER|EXTERNAL)' +
    '|SHOW (USER|USERS|GROUP|GROUPS|SERVICE|PERMISSIONS))\\b|OWNED BY|\\ball_permissions\\(|reload_tls|\\bpermissions\\(',
  'i',
)

/** Words that begin a statement here or in the documented product. */
const verbs = new Set([
  ...['SELECT', 'WITH', 'DECLARE', 'VALUES', 'INSERT', 'UPDATE', 'DELETE', 'MERGE', 'COPY', 'CREATE', 'ALTER', 'DROP'],
  ...['TRUNCATE', 'RENAME', 'REFRESH', 'SHOW', 'DESCRIBE', 'EXPLAIN', 'SET', 'RESET', 'BEGIN', 'COMMIT', 'ROLLBACK'],
  ...['CHECKPOINT', 'SNAPSHOT', 'BACKUP', 'CANCEL', 'VACUUM', 'REINDEX', 'COMPILE', 'LATEST', 'GRANT', 'REVOKE'],
])
const otherProduct = /\bmindsdb\b|\bquestdb\s*\(|\bENGINE ?=|'connector' ?=|^CREATE DATABASE|^SHOW DATABASES/i
/** What the document says beside a statement that it shows as wrong. */
const byIntent =
  /-- *(ERROR|Error|error:|Fails with)|will (NOT|not) work|will error|won't work|too short|into a 4 bit|not allowed/
/** Statements that cannot be meant as the document prints them. */
const mistakes: readonly (readonly [statement: RegExp, mistake: string])[] = [
  [/ticker SYMBOL,\s+timestamp TIMESTAMP\s+\) TIMESTAMP\(ts\)/, 'the column is not named ts'],
  [/^CREATE TABLE \(/, 'the table has no name'],
]
/** The tables of a document have the names of others here, with other columns, partitions or contents. */
const otherTable =
  /already exists|type is already|row value count|multiple of partition size|'yyyy-MM-dd' expected|inconvertible value|volume alias|as a table has a TTL|must appear in GROUP BY|leads out of its directory/

/** Refused statements with the text of their row in docs/compatibility/. */
const listed: readonly (readonly [statement: RegExp, row: string])[] = [
  [/^COPY\b/i, 'COPY over HTTP'],
  [/\bbackup_instance_name\b/i, 'backup_instance_name'],
  [/CONVERT PARTITION .*\sWITH \(/is, 'CONVERT PARTITION .. WITH'],
  [/#X[A-Z]{3}\b|tick_calendars\(/, 'exchange calendars'],
  [/\bWINDOW JOIN\b.*\bRANGE BETWEEN [\d* ]*\w+\./is, 'WINDOW JOIN with bounds from columns'],
  [/\bSTORAGE POLICY\b/i, 'a storage policy beside TTL'],
  [/^COMPILE VIEW\b/i, 'COMPILE VIEW'],
  [/\bREBASE WAL\b/i, 'REBASE WAL'],
  [/\bcancel_query\(/i, '`cancel_query()`'],
  [/\bSET TTL 0$/i, '`SET TTL 0`'],
  [/\btouch\(/i, '`touch`'],
  [/CAST\(123\.456789 AS DECIMAL/i, '`1.23::decimal(4, 1)`'],
]

/** A line that begins a statement, if the one before it is complete. */
const beginning = /^\s*(SELECT|CREATE|ALTER|INSERT|DROP|DECLARE|WITH \w+ AS|SHOW|UPDATE)\b/i
/** After these words, a query goes on. */
const continued = /(\b(UNION|ALL|EXCEPT|INTERSECT|AS|DO|EXPLAIN|DISTINCT)|[,=(])$/i
/** What a statement needs, outside of parentheses, after a word that begins it. */
const needed: readonly (readonly [beginning: RegExp, rest: RegExp])[] = [
  [/^(DECLARE|WITH)\b/i, /\b(SELECT|UPDATE|DELETE|MERGE|FROM|INSERT)\b/i],
  [/\bINSERT\b/i, /\b(VALUES|SELECT)\b/i],
  [/^ALTER (MATERIALIZED )?(TABLE|VIEW)\b/i, /^ALTER (MATERIALIZED )?(TABLE|VIEW) \S+\s+\w/i],
]

const compatibility = filesBelow('docs/compatibility')
  .map((path) => readFileSync(join(repositoryRoot, path), 'utf8'))
  .join('')
for (const [, row] of listed)
  if (!compatibility.includes(row)) throw new Error(`docs/compatibility/ has no row of ${row}`)

const counts = new Map<Kind, number>()
const backups = mkdtempSync(join(tmpdir(), 'penstock-documented-'))
const server = new TestServer([`backup.object.store=file://${backups}`])
await server.start()
try {
  for (const file of documentsOf(folder)) await runDocument(file, relative(folder, file))
} finally {
  await server.remove()
  rmSync(backups, { recursive: true, force: true })
}
console.log([...counts].map(([kind, count]) => `${count} ${kind}`).join(', '))
process.exitCode = (counts.get('refused') ?? 0) > 0 ? 1 : 0

function documentsOf(path: string): string[] {
  return readdirSync(path, { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.mdx?$/.test(name) && name.includes(options.only))
    .sort()
    .map((name) => join(path, name))
}

async function runDocument(file: string, name: string): Promise<void> {
  const blocks = sqlBlocks(readFileSync(file, 'utf8'))
  if (blocks.length === 0) return
  await dropAll()
  const demo = readFileSync(join(repositoryRoot, 'test/sql/fixtures/demo.sql'), 'utf8')
  for (const statement of statementsOf(demo)) {
    const error = await run(statement)
    if (error !== null) throw new Error(`${error}: ${statement}`)
  }
  for (const { line, title, text } of blocks) {
    for (const statement of statementsOf(text)) await runStatement(statement, title, `${name}:${line}`)
  }
}

/** Statements without semicolons between them are carried out one by one when they are refused as one. */
async function runStatement(statement: string, title: string, place: string): Promise<void> {
  const error = await run(statement)
  const parts = error === null ? [] : unseparated(statement)
  if (parts.length > 1) {
    for (const part of parts) await runStatement(part, title, place)
    return
  }
  const kind = error === null ? 'carried out' : kindOf(statement, title, error)
  counts.set(kind, (counts.get(kind) ?? 0) + 1)
  if (kind === 'refused' || (options.all && error !== null))
    console.log(`${place} (${kind})\n  ${error}\n  ${statement.replaceAll(/\s+/g, ' ')}\n`)
}

/** The statements of a text that lacks semicolons. Comments belong to the statement below them. */
function unseparated(text: string): string[] {
  const parts: string[] = []
  let [part, comments] = ['', '']
  for (const line of text.split('\n')) {
    if (/^\s*(--.*)?$/.test(line)) {
      comments += `${line}\n`
      continue
    }
    if (beginning.test(line) && isComplete(withoutComments(part))) {
      parts.push(part.trim())
      part = ''
    }
    part += `${comments}${line}\n`
    comments = ''
  }
  return [...parts, part.trim()]
}

function isComplete(text: string): boolean {
  let outer = text.replaceAll(/'[^']*'/g, "''")
  for (let shorter = ''; shorter !== outer; ) [outer, shorter] = [outer.replaceAll(/\([^()]*\)/g, '[]'), outer]
  if (outer === '' || outer.includes('(') || continued.test(outer)) return false
  return needed.every(([start, rest]) => !start.test(outer) || rest.test(outer))
}

function statementsOf(text: string): string[] {
  const { statements, rest } = splitStatements(text)
  return [...statements, rest].map((each) => each.trim()).filter((each) => withoutComments(each) !== '')
}

function withoutComments(statement: string): string {
  return statement.replace(/--[^\n]*|\/\*[\s\S]*?\*\//g, '').trim()
}

interface SqlBlock {
  /** Line of its first character. */
  readonly line: number
  readonly title: string
  readonly text: string
}

/** Fenced blocks whose language is SQL. */
function sqlBlocks(text: string): SqlBlock[] {
  const blocks: SqlBlock[] = []
  const lines = text.split('\n')
  let begin = -1
  for (const [index, line] of lines.entries()) {
    if (begin === -1 && /^\s*```(questdb-sql|sql)\b/.test(line)) begin = index + 1
    else if (begin !== -1 && /^\s*```\s*$/.test(line)) {
      const title = /title="([^"]*)"/.exec(lines[begin - 1] ?? '')?.[1] ?? ''
      blocks.push({ line: begin + 1, title, text: lines.slice(begin, index).join('\n') })
      begin = -1
    }
  }
  return blocks
}

async function dropAll(): Promise<void> {
  await server.exec('checkpoint release')
  for (const [kind, sql] of [
    ['view', 'select view_name from views()'],
    ['materialized view', 'select view_name from materialized_views()'],
    ['table', "select table_name from tables() where table_type = 'T'"],
  ] as const) {
    const { body } = await server.exec(sql)
    for (const [name] of body.dataset ?? []) await server.exec(`drop ${kind} '${String(name).replaceAll("'", "''")}'`)
  }
}

/** Null when the statement was carried out, else its error. A document's own table takes the place of the demo's. */
async function run(statement: string): Promise<string | null> {
  const [, what, made] =
    /^\s*create (table|view|materialized view) (?:if not exists )?['"]?(\w+)/i.exec(withoutComments(statement)) ?? []
  if (made !== undefined) await server.exec(`drop ${what} if exists "${made}"${what === 'view' ? '' : ' cascade'}`)
  const { body, status } = await server.exec(statement)
  return status === 200 && body.error === undefined ? null : (body.error ?? `status ${status}`)
}

function kindOf(statement: string, title: string, error: string): Kind {
  const text = withoutComments(statement)
  const first = /^\(*\s*(\w*)/.exec(text)?.[1]?.toUpperCase() ?? ''
  if (/\.\.\.|\{[^}']*\|[^}']*\}|\[ ?,|^[\w ]+ \[ /.test(text) || fragments.has(first) || !/^[\w(]/.test(text))
    return 'not a statement'
  if (placeholders.test(text) || (first === 'DECLARE' && !isComplete(text))) return 'not a statement'
  if (paid.test(text)) return 'paid version'
  if (otherProduct.test(text)) return 'other product'
  if (byIntent.test(statement) || byIntent.test(title)) return 'error by intent'
  if (mistakes.some(([pattern]) => pattern.test(text))) return 'mistake of the document'
  if (/\?/.test(text.replaceAll(/'[^']*'/g, ''))) return 'needs parameters'
  if (
    !verbs.has(first) &&
    /unexpected token|expected|too few|requires arguments|unknown function|must return/i.test(error)
  )
    return 'not a statement'
  if (listed.some(([pattern]) => pattern.test(text))) return 'listed'
  if (/does not exist|Invalid column|not found|no such|unknown table/i.test(error)) return 'missing name'
  return otherTable.test(error) ? 'other table' : 'refused'
}
