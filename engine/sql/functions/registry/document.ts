// Generates docs/functions.md from the function tables: signature, result type, description and example of every
// function.

import { basicAggregates } from '../aggregates/aggregates.js'
import { seriesAggregates } from '../aggregates/aggregates-series.js'
import { statisticAggregates } from '../aggregates/aggregates-statistics.js'
import { collectingAggregates, filtered } from '../aggregates/aggregates-strings.js'
import { sliceFunctions } from '../array-slice.js'
import { arrayFunctions } from '../arrays.js'
import { pgArrays } from '../arrays-pg.js'
import { chartAggregates, chartFunctions } from '../charts.js'
import { comparisonFunctions } from '../comparisons.js'
import { conditionFunctions } from '../conditions.js'
import type { AggregateFunction, ScalarFunction, TypePattern } from '../function-types.js'
import { jsonAccess } from '../json/json-access.js'
import { jsonChange } from '../json/json-change.js'
import { jsonFunctions } from '../json/json-extract.js'
import { jsonAggregates, jsonMakers } from '../json/json-make.js'
import { jsonParts } from '../json/json-parts.js'
import { mathFunctions } from '../math.js'
import { pgMath } from '../math-pg.js'
import { operatorFunctions } from '../operators.js'
import { orderBookFunctions } from '../order-book.js'
import { placeFunctions } from '../places.js'
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
import { pgFunctions, signatureText, windowFunctionNames } from './all.js'

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
  ['Places and networks', '', placeFunctions],
  ['Random values', 'Each row gets its own value.', randomFunctions],
  [
    'Aggregates',
    'Examples read `long_sequence(5)`, whose column x counts from 1 to 5. With OVER they are window functions.',
    basicAggregates,
  ],
  ['Statistics', '', [...statisticAggregates, ...collectingAggregates]],
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

\`select * from functions()\` lists the same functions. Types in signatures: TEXT is STRING, VARCHAR, SYMBOL or CHAR; TIME is
TIMESTAMP or TIMESTAMP_NS; ANY is any type; \`...\` stands for further arguments. Narrower numbers are widened.
Unless the description says otherwise, a NULL argument makes the result NULL. Names ignore case.

This page is generated from the tables in engine/sql/functions by \`npm run docs\`.
`

export function functionsDocument(): string {
  const windows = [...windowFunctionNames].map((name) => `\`${name}\``).join(', ')
  const parts = families.map(([title, note, rows]) => familyText(title, note, rows))
  const last = `## Window functions\n\nThese need OVER: ${windows}.\n`
  return [introduction, ...parts, last].join('\n')
}

function familyText(title: string, note: string, rows: readonly Row[]): string {
  const lines = rows.map(
    (row) => `| ${code(signatureText(row))} | ${givesText(row)} | ${row.description} | ${exampleText(row)} |`,
  )
  const head = ['| signature | result | description | example |', '|---|---|---|---|']
  return [`## ${title}`, '', ...(note === '' ? [] : [note, '']), ...head, ...lines, ''].join('\n')
}

function givesText({ gives }: Row): string {
  if (typeof gives === 'function') return 'by its arguments'
  return gives === 'FIRST' ? 'type of the first' : gives
}

function exampleText({ example }: Row): string {
  return example === null ? '' : `${code(example[0])} is ${example[1] === '' ? 'empty' : code(example[1])}`
}

/** In Markdown tables bars end cells even within backticks. */
function code(text: string): string {
  const fence = text.includes('`') ? '``' : '`'
  return `${fence}${text.replaceAll('|', '\\|')}${fence}`
}
