// Zone maps: a page whose least and greatest value of a column show that no row passes the scan's filter is not read. The
// filter is asked again of all rows that are: a zone only says "none" or "perhaps".

import type { Value } from '../../types/value.js'
import { conjuncts } from '../bind/walk-expression.js'
import type { Expression } from '../plan/plan.js'
import type { ExecContext } from './context.js'
import { type Piece, type Run, runsOf, withoutPieces } from './pieces.js'
import type { ScanShape } from './scan-slices.js'

type Bound = number | bigint

/** Whether a value between the bounds may pass. NULLs pass none of the comparisons that become tests. */
interface ZoneTest {
  readonly columnId: number
  readonly mayHold: (min: Bound, max: Bound) => boolean
}

/** Runs of a scan that may hold rows of its ranges and its filter. */
export function scanRuns({ memory, partAccess, space }: ExecContext, shape: ScanShape): Run[] {
  const runs = runsOf(memory, partAccess, shape.snapshot, shape.ranges, space)
  const tests = shape.filter === null ? [] : conjuncts(shape.filter).flatMap((part) => testOf(part, shape))
  if (tests.length === 0) return runs
  // Only now: rows of a page that is left out may replace rows of another one.
  return runs.flatMap((run) => withoutPieces(run, (piece) => !tests.every((test) => mayHold(piece, test))))
}

function mayHold(piece: Piece, { columnId, mayHold }: ZoneTest): boolean {
  const bounds = piece.bounds(columnId)
  return bounds === undefined || mayHold(bounds.min, bounds.max)
}

/** Types whose bounds compare as their values do. FLOAT is left out: constants beside it are rounded when they meet it. */
const ordered: ReadonlySet<string> = new Set([
  ...['BYTE', 'SHORT', 'INT', 'LONG', 'DOUBLE', 'DATE', 'TIMESTAMP', 'TIMESTAMP_NS'],
])

const mirrored: Readonly<Record<string, string>> = { '=': '=', '<': '>', '>': '<', '<=': '>=', '>=': '<=' }

function testOf(condition: Expression, shape: ScanShape): ZoneTest[] {
  if (condition.kind !== 'call') return []
  const { name, args } = condition
  const [first, second] = args
  if (first === undefined || second === undefined) return []
  if (first.kind === 'column') return columnTest(name, first, args.slice(1), shape)
  const turned = mirrored[name]
  return second.kind === 'column' && turned !== undefined ? columnTest(turned, second, [first], shape) : []
}

function columnTest(
  name: string,
  column: Extract<Expression, { kind: 'column' }>,
  args: readonly Expression[],
  shape: ScanShape,
): ZoneTest[] {
  if (!ordered.has(column.type.name)) return []
  const values = args.map((argument) => (argument.kind === 'constant' ? bound(argument.value) : undefined))
  if (values.length === 0 || !values.every((value) => value !== undefined)) return []
  const test = mayHoldOf(name, values)
  return test === null ? [] : [{ columnId: shape.columnIds[column.index] as number, mayHold: test }]
}

function bound(value: Value): Bound | undefined {
  return typeof value === 'bigint' || (typeof value === 'number' && !Number.isNaN(value)) ? value : undefined
}

function mayHoldOf(name: string, values: readonly Bound[]): ZoneTest['mayHold'] | null {
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
      return (min, max) => values.some((value) => min <= value && value <= max)
    case 'between':
      return (min, max) => (min <= a || min <= b) && (max >= a || max >= b)
    default:
      return null
  }
}
