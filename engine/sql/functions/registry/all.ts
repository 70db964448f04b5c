// The registry of SQL functions: joins the tables of all families and looks functions up by name. Asserts at load that
// signatures are unique.

import { assert } from '../../../base/assert.js'
import { once } from '../../pg-catalog/once.js'
import { proceduresOf } from '../../pg-catalog/procedures.js'
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
import type { AggregateFunction, ScalarFunction } from '../function-types.js'
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
import { catalogFunctions } from '../pg-functions.js'
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

/** All functions as pg_proc lists them. */
export const procedures = once(() =>
  proceduresOf({ scalars: scalarFunctions, aggregates: aggregateFunctions, windows: windowFunctionNames }),
)

const procedureByOid = once(() => new Map(procedures().map((procedure) => [procedure.oid, procedure])))

export const pgFunctions = catalogFunctions((oid) => procedureByOid().get(oid))

export const scalarFunctions: readonly ScalarFunction[] = [
  ...operatorFunctions,
  ...comparisonFunctions,
  ...conditionFunctions,
  ...mathFunctions,
  ...chartFunctions,
  ...pgMath,
  ...stringFunctions,
  ...pgStrings,
  ...timeFunctions,
  ...exactTimeParts,
  ...timeMakers,
  ...spanFunctions,
  ...timeTextFunctions,
  ...randomFunctions,
  ...geographyFunctions,
  ...arrayFunctions,
  ...pgArrays,
  ...sliceFunctions,
  ...orderBookFunctions,
  ...sessionFunctions,
  ...jsonFunctions,
  ...jsonAccess,
  ...jsonMakers,
  ...jsonChange,
  ...jsonParts,
  ...regexParts,
  ...pgFunctions,
  ...textListFunctions,
  ...textFormatFunctions,
  ...rowFunctions,
  ...numberFormats,
  ...numberReaders,
]

export const aggregateFunctions: readonly AggregateFunction[] = [
  ...basicAggregates,
  ...statisticAggregates,
  ...collectingAggregates,
  ...histogramAggregates,
  ...chartAggregates,
  ...seriesAggregates,
  ...jsonAggregates,
  ...jsonAggregates.map(filtered),
]

/** Functions that require OVER. Aggregates may be used with OVER as well. */
export const windowFunctionNames: ReadonlySet<string> = new Set([
  'row_number',
  'rank',
  'dense_rank',
  'percent_rank',
  'cume_dist',
  'ntile',
  'lag',
  'lead',
  'first_value',
  'last_value',
  'nth_value',
])

/** The overloads of a function. Names ignore case. */
export function scalarsNamed(name: string): readonly ScalarFunction[] {
  return scalars.get(name.toLowerCase()) ?? []
}

export function aggregatesNamed(name: string): readonly AggregateFunction[] {
  return aggregates.get(name.toLowerCase()) ?? []
}

/** The variant of an aggregate that does not ignore NULL and takes a condition for its rows; null if there is none. */
export function conditionalVariant(name: string): string | null {
  const variant = `${name.toLowerCase()}_where`
  return aggregates.has(variant) ? variant : null
}

interface Signature {
  readonly name: string
  readonly takes: readonly string[]
  readonly more?: string
}

function byName<Row extends Signature>(rows: readonly Row[]): ReadonlyMap<string, readonly Row[]> {
  const names = new Map<string, Row[]>()
  const signatures = new Set<string>()
  for (const row of rows) {
    const signature = signatureText(row).toLowerCase()
    assert(!signatures.has(signature), `B3: function is listed twice [signature=${signature}]`)
    signatures.add(signature)
    const list = names.get(row.name.toLowerCase())
    if (list === undefined) names.set(row.name.toLowerCase(), [row])
    else list.push(row)
  }
  return names
}

/** `left(TEXT, INT)` */
export function signatureText({ name, takes, more }: Signature): string {
  return `${name}(${[...takes, ...(more === undefined ? [] : [`${more}...`])].join(', ')})`
}

const scalars = byName(scalarFunctions)
const aggregates = byName(aggregateFunctions)
