// Generates docs/functions.md from the function tables: signature, result type, description and example of every
// function.

import { basicAggregates } from '../aggregates/aggregates.js'
import { seriesAggregates } from '../aggregates/aggregates-series.js'
import { statisticAggregates } from '../aggregates/aggregates-statistics.js'
import { collectingAggregates, filtered } from '../aggregates/aggregates-strings.js'
import { histogramAggregates } from '../aggregates/histogram.js'
import { sliceFunctions } from '../array-slice.js'
import { arrayFunctions } from '../arrays.js'
import { pgArrays } from '../arrays-pg.js'
import { chartAggregates, chartFunctions } from '../charts.js'
import { comparisonFunctions } from '../comparisons.js'
import { conditionFunctions } from '../conditions.js'
import type { AggregateFunction, ScalarFunction, TypePattern } from '../function-types.js'
import { geographyFunctions } from '../geography.js'
import { jsonAccess } from '../json/json-access.js'
import { jsonChange } from '../json/json-change.js'
import { jsonFunctions } from '../json/json-extract.js'
import { jsonAggregates, jsonMakers } from '../json/json-make.js'
import { jsonParts } from '../json/json-parts.js'
import { mathFunctions } from '../math.js'
import { pgMath } from '../math-pg.js'
import { operatorFunctions } from '../operators.js'
import { orderBookFunctions } from '../order-book.js'
import { randomFunctions } from '../random.js'
import { sessionFunctions } from '../session-functions.js'
import { numberFormats } from '../text/number-format.js'
import { numberReaders } from '../text/number-read.js'
import { regexParts } from '../text/regex-parts.js'
import { rowFunctions } from '../text/row-text.js'
import { stringFunctions } from '../text/strings.js'
import { textFormatFunctions } from '../text/text-format.js'
import { pgStrings } from '../text/text-pg.js'
import { textListFunctions } from '../text-lists.js'
import { timeFunctions } from '../times.js'
import { exactTimeParts } from '../times-exact.js'
import { timeMakers } from '../times-make.js'
import { spanFunctions } from '../times-spans.js'
import { timeTextFunctions } from '../times-text.js'
import { pgFunctions } from './all.js'
import { usage, windowUsage } from './usage.js'

type Row = Pick<ScalarFunction | AggregateFunction, 'name' | 'takes' | 'gives' | 'description' | 'example'> & {
  readonly more?: TypePattern
}

const families: readonly (readonly [title: string, note: string, rows: readonly Row[]])[] = [
  ['Operators', 'Written as infix or prefix operators: `a + b`, `-a`.', operatorFunctions],
  ['Comparisons', '', comparisonFunctions],
  ['Conditions', '', conditionFunctions],
  ['Numbers', '', [...mathFunctions, ...pgMath]],
  ['Charts', 'Charts in a line of text.', [...chartFunctions, ...chartAggregates]],
  ['Text', '', [...stringFunctions, ...pgStrings]],
  [
    'JSON',
    'Aggregates read `long_sequence(5)` in their examples.',
    [
      ...jsonFunctions,
      ...jsonAccess,
      ...jsonMakers,
      ...jsonChange,
      ...jsonParts,
      ...jsonAggregates,
      ...jsonAggregates.map(filtered),
    ],
  ],
  ['Regular expressions', 'Functions of PostgreSQL. Those of the native dialect are listed under Text.', regexParts],
  ['Time', '', [...timeFunctions, ...exactTimeParts, ...timeMakers, ...spanFunctions]],
  ['Time as text', '', timeTextFunctions],
  ['Arrays', '', [...arrayFunctions, ...pgArrays, ...sliceFunctions, ...orderBookFunctions]],
  ['Places and networks', '', geographyFunctions],
  ['Random values', 'Each row gets its own value.', randomFunctions],
  [
    'Aggregates',
    'Examples read `long_sequence(5)`, whose column x counts from 1 to 5. With OVER they are window functions.',
    basicAggregates,
  ],
  ['Statistics', '', [...statisticAggregates, ...histogramAggregates, ...collectingAggregates]],
  ['Series', '', seriesAggregates],
  ['Session', '', sessionFunctions],
  ['Lists', 'Lists are arrays of other types than DOUBLE, in the form `{a,b}` of PostgreSQL.', textListFunctions],
  [
    'Formatting',
    'Formatting of values, sizes and numbers, and parsing of numbers.',
    [...textFormatFunctions, ...rowFunctions, ...numberFormats, ...numberReaders],
  ],
  ['PostgreSQL catalog', 'Names may be qualified with `pg_catalog.`.', pgFunctions],
]

const introduction = `# Functions

One row for each function, by family. \`select * from functions()\` lists every signature.

Types: NUMBER is any number, INTEGER one without a fraction; TEXT is STRING, VARCHAR, SYMBOL or CHAR; TIME is TIMESTAMP or
TIMESTAMP_NS; ANY is any type; \`...\` stands for further arguments. Narrower numbers are widened. Unless the description
says otherwise, a NULL argument makes the result NULL. Names ignore case. Every example is run by the tests.

This page is generated from the tables in engine/sql/functions by \`npm run docs\`.
`

/** Functions that stand for operators and clauses: they are written in another way, and documented there. */
const unwritten = /_where$|^(in_values|in_ranges|present_time|single_row|single_value|jsonb_concat)$/

/** All overloads of a function in a family. */
interface Entry {
  readonly name: string
  readonly rows: readonly Row[]
  readonly usage: readonly [string, string | null] | null
}

export function functionsDocument(): string {
  const parts = families.map(([title, note, rows]) => familyText(title, note, entriesOf(title, rows)))
  return [introduction, ...parts, windowsText()].join('\n')
}

function entriesOf(title: string, rows: readonly Row[]): Entry[] {
  const byName = new Map<string, Row[]>()
  for (const row of rows) if (!unwritten.test(row.name)) byName.set(row.name, [...(byName.get(row.name) ?? []), row])
  return [...byName].map(([name, overloads]) => ({
    name,
    rows: overloads,
    usage: usage[`${title}: ${name}`] ?? usage[name] ?? null,
  }))
}

function familyText(title: string, note: string, entries: readonly Entry[]): string {
  const lines = entries.map(
    (entry) =>
      `| ${code(entry.name)} | ${argumentsText(entry)} | ${resultText(entry)} | ${descriptionText(entry)} | ${exampleText(entry)} |`,
  )
  const head = ['| function | arguments | result | description | example |', '|---|---|---|---|---|']
  return [`## ${title}`, '', ...(note === '' ? [] : [note, '']), ...head, ...lines, ''].join('\n')
}

function windowsText(): string {
  const lines = windowUsage.map(
    ({ name, takes, gives, description, example: [call, values] }) =>
      `| ${code(name)} | ${code(`(${takes})`)} | ${gives} | ${description} | ${code(call)} is ${code(values)} |`,
  )
  const note = 'These need OVER. Examples read `long_sequence(4)`. Aggregates are window functions with OVER, too.'
  const head = ['| function | arguments | result | description | example |', '|---|---|---|---|---|']
  return ['## Window functions', '', note, '', ...head, ...lines, ''].join('\n')
}

/** One list of arguments for each number of arguments, with the types of all overloads at each place. */
function argumentsText({ rows }: Entry): string {
  const byCount = new Map<string, Row[]>()
  for (const row of rows) {
    const key = `${row.takes.length} ${row.more !== undefined}`
    byCount.set(key, [...(byCount.get(key) ?? []), row])
  }
  const lists = [...byCount.values()].map((alike) => {
    const places = (alike[0]?.takes ?? []).map((_, place) =>
      typesText(alike.flatMap(({ takes }) => takes[place] ?? [])),
    )
    const more = alike.flatMap(({ more }) => more ?? [])
    return code(`(${[...places, ...(more.length === 0 ? [] : [`${typesText(more)}...`])].join(', ')})`)
  })
  return lists.join(' ')
}

const integers: ReadonlySet<string> = new Set(['BYTE', 'SHORT', 'INT', 'LONG'])
const numbers: ReadonlySet<string> = new Set([...integers, 'FLOAT', 'DOUBLE', 'DECIMAL'])

function typesText(types: readonly TypePattern[]): string {
  const distinct = [...new Set<string>(types)]
  if (distinct.includes('ANY')) return 'ANY'
  const numeric = distinct.filter((type) => numbers.has(type))
  if (numeric.length < 2) return distinct.join(' or ')
  const group = numeric.every((type) => integers.has(type)) ? 'INTEGER' : 'NUMBER'
  return [group, ...distinct.filter((type) => !numbers.has(type))].join(' or ')
}

function resultText({ rows }: Entry): string {
  const [first = '', ...others] = new Set(rows.map(givesText))
  return others.length === 0 ? first : 'by its arguments'
}

function descriptionText({ rows }: Entry): string {
  return [...new Set(rows.map(({ description }) => description))].join(' ').replaceAll('|', '\\|')
}

function givesText({ gives }: Row): string {
  if (typeof gives === 'function') return 'by its arguments'
  return gives === 'FIRST' ? 'type of the first' : gives
}

function exampleText({ rows, usage }: Entry): string {
  const [example = usage] = rows.flatMap(({ example }) => (example === null ? [] : [example]))
  if (example === null) return ''
  const [call, result] = example
  if (result === null) return code(call)
  return `${code(call)} is ${result === '' ? 'empty' : code(result)}`
}

/** In Markdown tables bars end cells even within backticks. */
function code(text: string): string {
  const fence = text.includes('`') ? '``' : '`'
  return `${fence}${text.replaceAll('|', '\\|')}${fence}`
}
