// Decides which pages and parts a scan can skip (zone maps): pages whose minimum and maximum show that no row satisfies
// the filter, and parts that do not contain the symbols that the filter requires. The filter is still applied to the
// rows of all other pages.

import { dictionaryCount } from '../../memory/column-layout.js'
import { type Expression, rowIdColumn } from '../../sql/plan/plan.js'
import { conjuncts } from '../../sql/typing/walk-expression.js'
import type { Value } from '../../types/value.js'
import type { ExecContext } from '../batch/context.js'
import type { WantedSymbols } from '../batch/query-state.js'
import { wantedSymbols } from '../batch/symbol-matches.js'
import { type Run, runsOf, type ScanMorsel, withoutMorsels } from './morsels.js'
import { withRowIds } from './row-ids.js'
import type { ScanShape } from './scan-shape.js'

type Bound = number | bigint

/** Whether a row of the morsel may pass. NULL passes none of the supported comparisons. */
type ZoneTest = (morsel: ScanMorsel) => boolean

const never: ZoneTest = () => false

/** Symbols are not resolved in larger dictionaries. */
const dictionaryEntriesMax = 65_536

/** The runs of a scan that may have rows in its time ranges and for its filter. */
export function scanRuns(context: ExecContext, shape: ScanShape): Run[] {
  const { memory, partAccess, arena } = context
  const tests: ZoneTest[] = []
  if (shape.filter !== null) for (const part of conjuncts(shape.filter)) tests.push(...testOf(context, part, shape))
  if (tests.includes(never)) return []
  const { version } = shape.snapshot
  const stored = runsOf(memory, partAccess, shape.snapshot, shape.ranges, arena)
  const runs = shape.columnIds.includes(rowIdColumn)
    ? withRowIds(context, version, version.schema.timestampId >= 0, stored)
    : stored
  if (tests.length === 0) return runs
  // Applied last, because rows of a skipped page may replace rows of other pages.
  const retained: Run[] = []
  for (const run of runs) retained.push(...withoutMorsels(run, (morsel) => !tests.every((test) => test(morsel))))
  return retained
}

/**
 * Types whose statistics compare like their values. FLOAT is not among them, because constants are rounded in
 * comparisons with it.
 */
const ordered: ReadonlySet<string> = new Set([
  ...['BYTE', 'SHORT', 'INT', 'LONG', 'DOUBLE', 'DATE', 'TIMESTAMP', 'TIMESTAMP_NS'],
])

const mirrored: Readonly<Record<string, string>> = { '=': '=', '<': '>', '>': '<', '<=': '>=', '>=': '<=' }

function testOf(context: ExecContext, condition: Expression, shape: ScanShape): ZoneTest[] {
  if (condition.kind !== 'call') return []
  const wanted = wantedSymbols(condition, context)
  if (wanted !== undefined) return symbolTest(context, wanted, shape)
  const { name, args } = condition
  const [first, second] = args
  if (first === undefined || second === undefined) return []
  if (first.kind === 'column' && second.kind === 'constants') return boundsTest('in', first, second.values, shape)
  if (first.kind === 'column') return columnTest(name, first, args.slice(1), shape)
  const turned = mirrored[name]
  return second.kind === 'column' && turned !== undefined ? columnTest(turned, second, [first], shape) : []
}

/** A part lists its symbols by id of the table's dictionary, so all pages of a part have the same answer. */
function symbolTest({ memory }: ExecContext, wanted: WantedSymbols, { columnIds, snapshot }: ScanShape): ZoneTest[] {
  const columnId = columnIds[wanted.column]
  const [, dictionary] = snapshot.version.dictionaries.find(([id]) => id === columnId) ?? []
  if (columnId === undefined || dictionary === undefined) return []
  const count = dictionaryCount(memory, dictionary)
  if (count > dictionaryEntriesMax) return []
  const ids = wanted.idsIn(dictionary, count)
  if (ids.length === 0) return [never]
  const known = new Map<number, boolean>()
  return [
    (morsel) => {
      const zoneAnswer = known.get(morsel.source) ?? morsel.mayHold(columnId, ids)
      known.set(morsel.source, zoneAnswer)
      return zoneAnswer
    },
  ]
}

function columnTest(
  name: string,
  column: Extract<Expression, { kind: 'column' }>,
  args: readonly Expression[],
  shape: ScanShape,
): ZoneTest[] {
  const values = args.flatMap((argument) => (argument.kind === 'constant' ? [argument.value] : []))
  return values.length === args.length ? boundsTest(name, column, values, shape) : []
}

function boundsTest(
  name: string,
  column: Extract<Expression, { kind: 'column' }>,
  constants: readonly Value[],
  shape: ScanShape,
): ZoneTest[] {
  if (!ordered.has(column.type.name)) return []
  const values = constants.map(bound)
  if (values.length === 0 || !values.every((value) => value !== undefined)) return []
  const test = mayHoldOf(name, values)
  if (test === null) return []
  const columnId = shape.columnIds[column.index] as number
  return [
    (morsel) => {
      const bounds = morsel.bounds(columnId)
      return bounds === undefined || test(bounds.min, bounds.max)
    },
  ]
}

function bound(value: Value): Bound | undefined {
  return typeof value === 'bigint' || (typeof value === 'number' && !Number.isNaN(value)) ? value : undefined
}

/** Whether a value between the bounds may pass; null for other comparisons. */
function mayHoldOf(name: string, values: readonly Bound[]): ((min: Bound, max: Bound) => boolean) | null {
  const [a, b = a] = values as [Bound, ...Bound[]]
  switch (name) {
    case '=':
      return (min, max) => min <= a && a <= max
    case '<':
      return (min) => min < a
    case '<=':
      return (min) => min <= a
    case '>':
      return (_min, max) => max > a
    case '>=':
      return (_min, max) => max >= a
    case 'in':
      return anyBetween(values)
    case 'between':
      return (min, max) => (min <= a || min <= b) && (max >= a || max >= b)
    default:
      return null
  }
}

/** Whether one of the values is between the bounds, by binary search for the first that is not below `min`. */
function anyBetween(values: readonly Bound[]): (min: Bound, max: Bound) => boolean {
  const sorted: { readonly length: number; readonly [index: number]: Bound } = values.every(
    (value) => typeof value === 'bigint',
  )
    ? BigInt64Array.from(values as bigint[]).sort()
    : values.toSorted((a, b) => (a < b ? -1 : a > b ? 1 : 0))
  return (min, max) => {
    let [from, to] = [0, sorted.length]
    while (from < to) {
      const middle = (from + to) >>> 1
      if ((sorted[middle] as Bound) < min) from = middle + 1
      else to = middle
    }
    const value = sorted[from]
    return value !== undefined && value <= max
  }
}
