// Formats a plan for EXPLAIN: one line per node, with its inputs indented below it. The filter of a scan has a line of
// its own below the scan. The plans of sub-queries follow at the end.

import { typeText } from '../../types/column-types.js'
import { displayText } from '../../types/convert.js'
import { allOfTime } from '../../types/interval.js'
import { formatTimestamp } from '../../types/timestamp.js'
import type { Expression, Plan, PlanColumn, Query, ViewSide } from './plan.js'
import { inputsOf } from './walk-plan.js'

/** The lines of a query's plan. The text that `details` returns for a node is appended to its line. */
export function printQuery(
  query: Query,
  tableName: (table: number) => string,
  details: (plan: Plan) => string = () => '',
): string[] {
  const lines: string[] = []
  const print = (plan: Plan, depth: number): void => {
    lines.push(`${'    '.repeat(depth)}${nodeText(plan, tableName)}${details(plan)}`)
    if (plan.kind === 'scan' && plan.filter !== null) {
      lines.push(`${'    '.repeat(depth + 1)}filter: ${expressionShown(plan.filter, plan.columns)}`)
    }
    for (const input of inputsOf(plan)) print(input, depth + 1)
  }
  print(query.plan, 0)
  for (const [index, { plan, mode }] of query.subqueries.entries()) {
    lines.push(`Subquery ${index} mode: ${mode}`)
    print(plan, 1)
  }
  return lines
}

function nodeText(plan: Plan, tableName: (table: number) => string): string {
  switch (plan.kind) {
    case 'scan':
      return scanText(plan, tableName(plan.table))
    case 'foreign':
      return `${foreignName(plan)} files: ${plan.files.length} columns: [${plan.wanted.map(({ name }) => name).join()}]`
    case 'values':
      return `Values rows: ${plan.rows.length}`
    case 'sequence':
      return `long_sequence count: ${plan.count}`
    case 'filter':
      if (plan.viewSide !== undefined) return 'Filter filter: rows that are not stored'
      return `Filter filter: ${expressionShown(plan.predicate, plan.input.columns)}`
    case 'project':
      return `VirtualRecord functions: [${plan.expressions.map((expression) => expressionShown(expression, plan.input.columns)).join(',')}]`
    case 'aggregate':
      return `GroupBy ${groupsText(plan)}`
    case 'sample':
      return `Sample By interval: ${plan.interval.count}${plan.interval.unit} fill: ${[...new Set(plan.fills.map(({ kind }) => kind))].join()} ${groupsText(plan)}`
    case 'latest':
      return `LatestBy keys: [${plan.keys.map((index) => plan.columns[index]?.name ?? '').join(',')}]`
    case 'sort':
      return `${plan.limit === null ? 'Sort' : `Sort light lo: ${plan.limit}`} keys: [${plan.keys
        .map(({ index, descending }) => `${plan.columns[index]?.name ?? ''}${descending ? ' desc' : ''}`)
        .join(', ')}]`
    case 'limit':
      return `Limit lo: ${plan.lo}${plan.hi === null ? '' : ` hi: ${plan.hi}`}`
    case 'distinct':
      return 'Distinct'
    case 'expand':
      return `Expand times: ${expressionShown(plan.count, plan.input.columns)}`
    case 'set':
      return `${plan.operation[0]?.toUpperCase() ?? ''}${plan.operation.slice(1)}${plan.all ? ' All' : ''}`
    case 'recursive':
      return `Recursive Union${plan.all ? ' All' : ''}`
    case 'working':
      return 'Rows of the previous iteration'
    case 'join':
      return joinText(plan)
    case 'window':
      return `Window functions: [${plan.calls.map(({ name }) => name).join(',')}]`
  }
}

function foreignName({ wanted, files }: Extract<Plan, { kind: 'foreign' }>): string {
  const isTable = wanted.some(({ field }) => field !== undefined) || files[0]?.data !== undefined
  return isTable ? 'iceberg' : 'read_parquet'
}

function scanText({ ranges, order, columns, viewSides }: Extract<Plan, { kind: 'scan' }>, table: string): string {
  const direction =
    order === 'descending' ? 'Frame backward scan' : order === 'ascending' ? 'Frame forward scan' : 'Row scan'
  const intervals = ranges === null ? '' : ` intervals: [${ranges.map(rangeText).join(',')}]`
  const side = viewSides === undefined ? '' : viewSides.map(sideText).join('')
  return `${direction} on: ${table}${side} columns: [${columns.map(({ name }) => name).join(',')}]${intervals}`
}

function sideText({ side, live }: ViewSide): string {
  return live === true && side === 'stored' ? ' (stored rows)' : sideTexts[side]
}

const sideTexts = {
  stored: ' (stored buckets)',
  computed: ' (buckets that are not stored)',
  alone: ' (stored buckets alone)',
  input: ' (for rows that are not stored)',
  late: ' (late rows of sealed buckets)',
} as const

function rangeText({ lo, hi }: { readonly lo: bigint; readonly hi: bigint }): string {
  const bound = (value: bigint): string =>
    value === allOfTime.lo
      ? 'MIN'
      : value === allOfTime.hi
        ? 'MAX'
        : formatTimestamp(value, value > 9_000_000_000_000_000n ? 'TIMESTAMP_NS' : 'TIMESTAMP')
  return `("${bound(lo)}","${bound(hi)}")`
}

function groupsText({ keys, aggregates, input }: Extract<Plan, { kind: 'aggregate' | 'sample' }>): string {
  const shown = (expression: Expression): string => expressionShown(expression, input.columns)
  const values = aggregates.map(({ name, args }) => `${name}(${args.length === 0 ? '*' : args.map(shown).join(',')})`)
  return `keys: [${keys.map(shown).join(',')}] values: [${values.join(',')}]`
}

function joinText({
  join,
  leftKeys,
  rightKeys,
  left,
  right,
  residual,
  columns,
  direction,
}: Extract<Plan, { kind: 'join' }>): string {
  const keys = leftKeys.map(
    (index, at) => `${right.columns[rightKeys[at] ?? 0]?.name ?? ''}=${left.columns[index]?.name ?? ''}`,
  )
  const on = keys.length === 0 ? '' : ` condition: ${keys.join(' and ')}`
  const names: Record<typeof join, string> = {
    inner: 'Hash Join',
    left: 'Hash Left Outer Join',
    right: 'Hash Right Outer Join',
    full: 'Hash Full Outer Join',
    cross: 'Cross Join',
    asof: 'AsOf Join',
    lt: 'Lt Join',
    splice: 'Splice Join',
  }
  const towards = direction === undefined ? '' : ` direction: ${direction}`
  return `${names[join]}${towards}${on}${residual === null ? '' : ` filter: ${expressionShown(residual, columns)}`}`
}

const infix = new Set([
  '+',
  '-',
  '*',
  '/',
  '%',
  '=',
  '<>',
  '<',
  '<=',
  '>',
  '>=',
  'and',
  'or',
  '~',
  'like',
  'ilike',
  '&',
  '|',
  '^',
])

function expressionShown(expression: Expression, columns: readonly PlanColumn[]): string {
  switch (expression.kind) {
    case 'column':
      return columns[expression.index]?.name ?? `#${expression.index}`
    case 'constant': {
      const { value, type } = expression
      if (value === null) return 'null'
      const text = displayText(value, type)
      return typeof value === 'string' ? `'${text}'` : text
    }
    case 'constants':
      return `${expression.values.length} values`
    case 'subquery':
      return `(subquery ${expression.index})`
    case 'call':
      return callShown(expression, columns)
  }
}

const castNames: ReadonlySet<string> = new Set(['cast', 'convert', 'nearest', 'narrow'])

/** How the operators are written whose forms report a divisor of zero. */
const written: Readonly<Record<string, string>> = { divide: '/', remainder: '%' }

function callShown(
  { name: form, args, type }: Extract<Expression, { kind: 'call' }>,
  columns: readonly PlanColumn[],
): string {
  const name = written[form] ?? form
  const shown = args.map((argument) => expressionShown(argument, columns))
  if (castNames.has(name)) return `${shown[0] ?? ''}::${typeText(type).toLowerCase()}`
  if (name === 'not') return `not (${shown[0] ?? ''})`
  if (infix.has(name) && shown.length === 2)
    return name === 'and' || name === 'or' ? `(${shown.join(` ${name} `)})` : shown.join(name)
  return `${name}(${shown.join(',')})`
}
