// Zone maps: a page whose least and greatest value of a column show that no row passes the scan's filter is not read, and
// no part without the symbols that the filter asks for. The filter is asked again of all rows that are: a zone only says
// "none" or "perhaps".

import { dictionaryCount } from '../../memory/column-layout.js'
import type { Expression } from '../../sql/plan/plan.js'
import { conjuncts } from '../../sql/typing/walk-expression.js'
import type { Value } from '../../types/value.js'
import type { ExecContext } from '../batch/context.js'
import type { WantedSymbols } from '../batch/query-state.js'
import { wantedSymbols } from '../batch/symbol-matches.js'
import { type Piece, type Run, runsOf, withoutPieces } from './pieces.js'
import type { ScanShape } from './scan-shape.js'

type Bound = number | bigint

/** Whether a row of the piece may pass. NULLs pass none of the comparisons that become tests. */
type ZoneTest = (piece: Piece) => boolean

const never: ZoneTest = () => false

/** Larger dictionaries are not looked through for a few texts. */
const dictionaryEntriesMax = 65_536

/** Runs of a scan that may hold rows of its ranges and its filter. */
export function scanRuns(context: ExecContext, shape: ScanShape): Run[] {
  const { memory, partAccess, space } = context
  const tests: ZoneTest[] = []
  if (shape.filter !== null) for (const part of conjuncts(shape.filter)) tests.push(...testOf(context, part, shape))
  if (tests.includes(never)) return []
  const runs = runsOf(memory, partAccess, shape.snapshot, shape.ranges, space)
  if (tests.length === 0) return runs
  // Only now: rows of a page that is left out may replace rows of another one.
  const kept: Run[] = []
  for (const run of runs) kept.push(...withoutPieces(run, (piece) => !tests.every((test) => test(piece))))
  return kept
}

/** Types whose bounds compare as their values do. FLOAT is left out: constants beside it are rounded when they meet it. */
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

/** Ids are the table's, parts name those that they hold: all pages of a part have one answer. */
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
    (piece) => {
      const answer = known.get(piece.source) ?? piece.mayHold(columnId, ids)
      known.set(piece.source, answer)
      return answer
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
    (piece) => {
      const bounds = piece.bounds(columnId)
      return bounds === undefined || test(bounds.min, bounds.max)
    },
  ]
}

function bound(value: Value): Bound | undefined {
  return typeof value === 'bigint' || (typeof value === 'number' && !Number.isNaN(value)) ? value : undefined
}

/** Whether a value between the bounds may pass. */
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

/** Whether one of the values lies between two bounds: the first that is not below the lower one is looked up. */
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
