// Goal: the documents cover everything that users can write or see: each statement and column type is in the SQL
// reference, each metric in docs/metrics.md. The documents of settings and functions are generated.
//
// `DOCS_COMPLETE=1 npx vitest run test/docs` writes docs/metrics.md.

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { statementWords } from '../../engine/sql/parse/statement.js'
import { columnTypes } from '../../engine/types/column-types.js'
import { allMetrics } from '../support/docs/metric-names.js'
import { filesBelow, repositoryRoot } from '../support/docs/source-tree.js'

const reference = filesBelow('docs/sql')
  .map((path) => readFileSync(join(repositoryRoot, path), 'utf8'))
  .join('\n')

/** Words that begin statements which this server only rejects. */
const rejected: ReadonlySet<string> = new Set(['refresh'])

test('every statement is in the SQL reference', () => {
  const words = [...statementWords].filter((word) => !rejected.has(word))
  expect(words.filter((word) => !new RegExp(`\\b${word.toUpperCase()}\\b`).test(reference))).toEqual([])
})

test('every column type is on the page of data types', () => {
  const page = readFileSync(join(repositoryRoot, 'docs/sql/data-types.md'), 'utf8')
  const inResultsOnly = ['INTERVAL']
  const names = Object.keys(columnTypes).map((name) => (name === 'ARRAY' ? 'DOUBLE[]' : name))
  expect(names.filter((name) => !inResultsOnly.includes(name) && !page.includes(`| ${name}`))).toEqual([])
})

test('every metric is in docs/metrics.md', () => {
  const path = join(repositoryRoot, 'docs/metrics.md')
  if (process.env['DOCS_COMPLETE'] === '1') writeFileSync(path, metricsDocument())
  expect(readFileSync(path, 'utf8'), 'DOCS_COMPLETE=1 npx vitest run test/docs').toBe(metricsDocument())
})

function metricsDocument(): string {
  const rows = allMetrics()
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
    .map(({ name, type, description }) => `| \`${name}\` | ${type} | ${description} |`)
  return `# Metrics

\`/metrics\` on ports 9000 and 9003 returns them in the text format of Prometheus. [Operations](operations.md#metrics) says
which ones to watch, and [deploy/prometheus/rules.yml](../deploy/prometheus/rules.yml) has alerts. A counter counts from
the start of the server.

| metric | type | meaning |
|---|---|---|
${rows.join('\n')}
`
}
