// Goal: docs/errors.md lists every error that a client can see. The list at its end is generated from the sources;
// errors that need more explanation also have a section. Every error that a section quotes exists in the sources.
//
// `DOCS_COMPLETE=1 npx vitest run test/docs` writes the list.

import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { type ErrorText, errorTexts } from '../support/docs/error-texts.js'
import { filesBelow, readText, repositoryRoot } from '../support/docs/source-tree.js'

const path = join(repositoryRoot, 'docs/errors.md')
const begin = '## All messages\n'
const page = readFileSync(path, 'utf8')
const explained = page.slice(0, page.indexOf(begin))
const errors = errorTexts()

const groups = {
  SqlError: ['The statement is wrong', '400; SQLSTATE class 42 or 22, with the position in the statement.'],
  PgError: ['Only over the PostgreSQL wire protocol', 'With the SQLSTATE of PostgreSQL.'],
  ExecRequestError: ['An HTTP request is wrong', '400.'],
  ImportError: ['A file cannot be imported', '400; over the wire protocol SQLSTATE class 22.'],
  BadRecordError: [
    'A Kafka record is wrong',
    'The connector skips it or stops, as its settings say, and `sys.rejects` has it.',
  ],
  StoreError: [
    'The object store',
    'In the log, in `object_store()`, and in the error of the statement that needed the store.',
  ],
  RowError: ['A row is wrong', '400, with the line; SQLSTATE class 22. Line protocol over TCP closes or skips.'],
  ResourceError: ['Try again later', '503 with `Retry-After`; SQLSTATE class 53. Line protocol over TCP waits.'],
  AccessError: ['Missing rights', '403; SQLSTATE 42501.'],
  NetworkError: ['The client breaks the protocol', '400; SQLSTATE class 08. The connection may be closed.'],
  FileError: ['The operating system refused', '500; SQLSTATE 58030. The log has more.'],
  CorruptionError: ['A file is damaged', '500; SQLSTATE XX001. Run `penstock check`: [recovery](guides/recovery.md).'],
} as const

/** Pages about what the sources of a name do; the first that matches counts. */
const topics: readonly (readonly [RegExp, string])[] = [
  [/^pipeline\/(import|csv|expanded|parquet-(uploads|preview))|imp-preview/, 'csv.md'],
  [/live-(query|frames|view)/, 'sql/live-views.md'],
  [/mat-?view|materialized/, 'sql/materialized-views.md'],
  [/merge|upsert|conflict|returning/, 'sql/merge.md'],
  [/pivot/, 'sql/pivot.md'],
  [/storage-policy|storage-policies/, 'sql/storage-policy.md'],
  [/horizon/, 'sql/horizon-join.md'],
  [/window-join/, 'sql/window-join.md'],
  [/splice/, 'sql/splice-join.md'],
  [/asof|tolerance/, 'sql/asof-join.md'],
  [/lateral/, 'sql/lateral.md'],
  [/unnest|json-table/, 'sql/unnest.md'],
  [/latest/, 'sql/latest-on.md'],
  [/fill|gapfill|interpolat/, 'sql/fill.md'],
  [/sample|bucket/, 'sql/sample-by.md'],
  [/window|frame/, 'sql/window-functions.md'],
  [/qwp/, 'qwp.md'],
  [/kafka/, 'kafka.md'],
  [/lake|iceberg/, 'lake.md'],
  [/object-store|remote/, 'object-storage.md'],
  [/parquet/, 'sql/read-parquet.md'],
  [/copy/, 'sql/copy.md'],
  [/csv/, 'csv.md'],
  [/sqlite|dump/, 'sqlite.md'],
  [/lines?\b|ilp|influx/, 'line-protocol.md'],
  [/users|security|auth|credential|rights|tls|scram/, 'security.md'],
  [/pgwire|\/pg\/|pg-/, 'connecting.md'],
  [/http/, 'http.md'],
  [/transaction|savepoint/, 'sql/transactions.md'],
  [/sequence|identity|enumeration|declared|constraint|session|cursor/, 'sql/postgresql.md'],
  [/partition/, 'sql/partitions.md'],
  [/alter/, 'sql/alter-table.md'],
  [/create/, 'sql/create-table.md'],
  [/insert|rows\.ts|target/, 'sql/insert.md'],
  [/rewrite\.ts|update|delete/, 'sql/update-delete.md'],
  [/views?\b/, 'sql/views.md'],
  [/join/, 'sql/join.md'],
  [/group|aggregat/, 'sql/group-by.md'],
  [/interval|tick|time-zone|dates?\b|where|filter/, 'sql/where.md'],
  [/functions|registry/, 'functions.md'],
  [/type|cast|convert|decimal|geohash|symbol/, 'sql/data-types.md'],
  [/show|relations/, 'sql/show.md'],
  [/storage|wal|checkpoint|memory|root/, 'operations.md'],
]

test('every error has a row in docs/errors.md', () => {
  const wanted = `${explained}${begin}\n${listOf(errors)}`
  if (process.env['DOCS_COMPLETE'] === '1') writeFileSync(path, wanted)
  expect(readFileSync(path, 'utf8'), 'DOCS_COMPLETE=1 npx vitest run test/docs').toBe(wanted)
  expect(errors.length).toBeGreaterThan(800)
})

test('every heading of docs/errors.md quotes an error that exists', () => {
  const sources = ['engine', 'pipeline', 'gateways', 'connectors', 'deploy']
    .flatMap((folder) => filesBelow(folder).filter((name) => name.endsWith('.ts')))
    .map(readText)
    .join('\n')
  const quoted = [...explained.matchAll(/^### (.*)$/gm)].map(([, heading = '']) => heading.replaceAll('`', ''))
  expect(quoted.length).toBeGreaterThan(25)
  const isMissing = (heading: string): boolean =>
    heading.split(/\.\.|[[\]=]/).some((part) => !sources.includes(part.trim()))
  expect(quoted.filter(isMissing)).toEqual([])
})

test('the pages of the topics exist', () => {
  expect(topics.map(([, page]) => page).filter((page) => !existsSync(join(repositoryRoot, 'docs', page)))).toEqual([])
})

function listOf(all: readonly ErrorText[]): string {
  const intro = `\`<..>\` stands for what differs. The second column has the page that describes the statement or the interface.\n`
  const parts = Object.entries(groups).map(([name, [title, what]]) => {
    const rows = all.filter((each) => each.class === name).map((each) => `| ${cellOf(each.text)} | ${linkOf(each)} |`)
    return `### Class: ${title}\n\n${what}\n\n| message | see |\n|---|---|\n${rows.join('\n')}\n`
  })
  return [intro, ...parts].join('\n')
}

function cellOf(text: string): string {
  const quoted = text.replaceAll('|', '\\|').replaceAll('\n', ' ')
  return quoted.includes('`') ? `\`\` ${quoted} \`\`` : `\`${quoted}\``
}

function linkOf({ text, files: [file = ''] }: ErrorText): string {
  const [, page = 'sql/README.md'] = topics.find(([pattern]) => pattern.test(file) || pattern.test(nameIn(text))) ?? []
  return `[${page
    .replace(/^sql\//, '')
    .replace(/\.md$/, '')
    .replace('README', 'SQL')}](${page})`
}

/** Clauses that a message names in capitals tell more than the source, and so does what other sessions may cause. */
function nameIn(text: string): string {
  if (/^the table (was dropped in the meantime|has changed meanwhile)/.test(text)) return 'transaction'
  return /SAMPLE BY|LATEST|FILL|PIVOT|MERGE|HORIZON|ASOF/.exec(text)?.[0].toLowerCase() ?? ''
}
