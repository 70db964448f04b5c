// Estimates the cost of a query before it runs: the number of values read from tables plus the rows from other sources,
// multiplied where expressions are expensive. A query with a small estimate runs on the main thread, because passing it
// to a query thread would cost more. If the estimate was too low, the main thread stops the query at a time limit, and
// a query thread runs it again.

import { unreachable } from '../../base/assert.js'
import { pageRowsMax } from '../../base/limits.js'
import {
  blockAt,
  blockCount,
  blockRows,
  blockTimes,
  dictionaryCount,
  isBlockSorted,
  supersededRows,
} from '../../memory/column-layout.js'
import type { SharedMemory } from '../../memory/shared-memory.js'
import type { Expression, Plan, Query, TimeRange } from '../../sql/plan/plan.js'
import { expressionsOf } from '../../sql/plan/walk-plan.js'
import { conjuncts, visitExpression } from '../../sql/typing/walk-expression.js'
import { areIndexed } from '../../storage/cache/inverted-index.js'
import type { PartDescriptor, TableSnapshot } from '../../storage/schema/schema.js'
import { widthOf } from '../../types/column-types.js'
import { wantedStrings } from '../batch/symbol-matches.js'
import { fragmentAggregateNames } from '../fragment/fragment-aggregate.js'
import { isMetadataOnly } from '../scan/answer-from-metadata.js'
import { areNewest } from '../scan/latest-symbols.js'
import { touches } from '../scan/morsels.js'

type PlanOf<Kind extends Plan['kind']> = Extract<Plan, { kind: Kind }>

/** Tables with more parts are never small. */
const partsMax = 256
/** A part costs at least as much as this many values. */
const partValues = 500
/** Cost of a part that an ordered scan need not open, in values. */
const walkedPartValues = 30
/** A kernel scans unsorted blocks: this many rows cost as much as one value. */
const unsortedValues = 32
/**
 * Estimated fraction of rows within a time range, for blocks that are unsorted, have replaced rows, or are too many to
 * look at.
 */
const rangeShare = 1 / 16
const blocksMax = 64
/** Generated code reads this many values in the time in which an operator reads one. */
const generatedValues = 20
/** Values read via an inverted index, in the time in which one is read otherwise. */
const pickedValues = 4
/** Cost of a lookup in the inverted index of a page, for each column read. */
const listedPageValues = 10
/** Assumed number of rows that a row of a list or a set-returning function becomes. */
const expansion = 8

/** Estimated rows read until a symbol is found, if all are equally frequent. */
const rowsPerSymbol = 8

/** Cost of a call that reads or returns a string or an array, in values. */
const longWeight = 16
/** Queries with longer constants are never small. */
const textMax = 4096
/**
 * Building operators takes time and cannot be interrupted: each side of a set operation costs as much as this many
 * values.
 */
const sideValues = 100
/** Queries with larger expressions than this are never small. */
const expressionPartsMax = 300
/** Functions whose result may be longer than their arguments. */
const growing = /^(lpad|rpad|repeat|replace|regexp_replace|translate|array_.*|rnd_.*|generate_.*|.*_agg|string_to_.*)$/
/** Functions whose second argument is a list of the catalog, which is read once. */
const lookUps = /^(catalog_(name|text|number)|role_name)$/

interface Tables {
  readonly snapshots: readonly TableSnapshot[]
  readonly memory: SharedMemory
}

export function workOf({ plan, subqueries }: Query, tables: Tables): number {
  return subqueries.reduce((sum, subquery) => sum + planWork(subquery.plan, tables), planWork(plan, tables))
}

function planWork(plan: Plan, tables: Tables): number {
  switch (plan.kind) {
    case 'scan':
      return scanWork(plan, tables, false)
    case 'foreign':
      return Number.POSITIVE_INFINITY
    case 'values':
      return plan.rows.length
    case 'sequence':
      return Number(plan.count)
    case 'set':
      return planWork(plan.left, tables) + planWork(plan.right, tables) + sideValues
    case 'join':
      return joinWork(plan, planWork(plan.left, tables), planWork(plan.right, tables))
    case 'recursive':
      return Number.POSITIVE_INFINITY
    case 'working':
      return 1
    case 'expand':
      return times(planWork(plan.input, tables) * expansion, weightOf(plan.count))
    case 'limit':
      return limitWork(plan, tables)
    case 'aggregate':
      return metadataWork(plan, tables) ?? newestWork(plan, tables) ?? aggregateWork(plan, tables)
    case 'sample':
      return aggregateWork(plan, tables)
    case 'latest':
      return latestWork(plan, tables)
    case 'filter':
    case 'project':
    case 'sort':
    case 'distinct':
    case 'window':
      return times(planWork(plan.input, tables), weightsOf(plan))
    default:
      return unreachable(plan)
  }
}

/** Metadata of parts and blocks is not read row by row; with a time range, some rows may have to be. */
function metadataWork({ input, ...plan }: PlanOf<'aggregate'>, tables: Tables): number | undefined {
  const snapshot = input.kind === 'scan' ? tables.snapshots[input.table] : undefined
  if (input.kind !== 'scan' || snapshot === undefined || input.ranges !== null) return undefined
  if (!isMetadataOnly(plan, { snapshot, filter: input.filter, columnIds: input.columnIds })) return undefined
  const inMemory = snapshot.visibleRows.reduce((sum, rows) => sum + rows, 0)
  return snapshot.version.parts.length + inMemory / unsortedValues
}

function aggregateWork(plan: PlanOf<'aggregate' | 'sample'>, tables: Tables): number {
  const { input, keys, aggregates } = plan
  const generated =
    input.kind === 'scan' &&
    keys.every(({ kind, type }) => kind === 'column' && type.name === 'SYMBOL') &&
    aggregates.every(({ name, args }) => fragmentAggregateNames.has(name) && args.every(readsNumbers)) &&
    (input.filter === null || readsNumbers(input.filter))
  return times(generated ? scanWork(input, tables, true) : planWork(input, tables), weightsOf(plan))
}

/** Whether generated code may compute it: its columns are numbers, not addresses. */
function readsNumbers(expression: Expression): boolean {
  let plain = true
  visitExpression(expression, (part) => {
    if (part.kind === 'column') plain &&= !isLong(part) && widthOf(part.type) <= 8
    else plain &&= part.kind !== 'subquery' && part.kind !== 'constants'
  })
  return plain
}

function weightsOf(plan: Plan): number {
  const expressions = expressionsOf(plan)
  if (expressions.length > expressionPartsMax) return Number.POSITIVE_INFINITY
  return Math.max(1, ...expressions.map(weightOf))
}

/**
 * Cost relative to a plain value. Computing one very long value may take as long as thousands of rows, and cannot be
 * interrupted.
 */
function weightOf(expression: Expression): number {
  if (expression.kind === 'column') return 1
  let weight = 1
  let parts = 0
  const lists: (Expression | undefined)[] = []
  visitExpression(expression, (part) => {
    if (++parts > expressionPartsMax) weight = Number.POSITIVE_INFINITY
    if (
      part.kind === 'constant' &&
      typeof part.value === 'string' &&
      part.value.length > textMax &&
      !lists.includes(part)
    )
      weight = Number.POSITIVE_INFINITY
    if (part.kind !== 'call') return
    if (lookUps.test(part.name)) lists.push(part.args[1])
    if (growing.test(part.name)) weight = Number.POSITIVE_INFINITY
    else if (isLong(part) || part.args.some(isLongValue)) weight = Math.max(weight, longWeight)
  })
  return weight
}

const isLong = ({ type }: Expression): boolean => ['STRING', 'VARCHAR', 'BINARY', 'ARRAY'].includes(type.name)
/** Constants have a limit of their own. */
const isLongValue = (value: Expression): boolean => value.kind !== 'constant' && isLong(value)

/** No rows cost nothing, whatever the weight. */
function times(work: number, weight: number): number {
  return work === 0 ? 0 : work * weight
}

/** Without keys, every pair of rows is considered. */
function joinWork({ join, leftKeys, residual }: PlanOf<'join'>, left: number, right: number): number {
  const timed = join === 'asof' || join === 'lt' || join === 'splice'
  const weight = residual === null ? 1 : weightOf(residual)
  const pairs = leftKeys.length > 0 || timed ? 0 : left * right
  if (weight === 1) return left + right + pairs
  // The number of pairs for which the condition is evaluated is unknown: assume all.
  return times(left + right + left * right, weight)
}

/** LIMIT over a plan that returns rows in order without filtering reads only the rows needed. */
function limitWork({ input, lo, hi }: PlanOf<'limit'>, tables: Tables): number {
  const all = planWork(input, tables)
  const last = lo < 0 ? (hi ?? 0) : (hi ?? Number.POSITIVE_INFINITY)
  if ((lo < 0 && last > 0) || !streams(input)) return all
  const rows = Math.max(Math.abs(lo), Math.abs(last)) * Math.max(1, input.columns.length)
  return Math.min(all, rows + partsOf(input, tables) * walkedPartValues + partValues)
}

/** GROUP BY that the newest rows of a symbol column answer. */
function newestWork({ input, keys, aggregates }: PlanOf<'aggregate'>, tables: Tables): number | undefined {
  const snapshot = input.kind === 'scan' ? tables.snapshots[input.table] : undefined
  const [key] = keys
  if (input.kind !== 'scan' || snapshot === undefined || key?.kind !== 'column') return undefined
  if (!areNewest({ keys, aggregates }, { ...input, snapshot })) return undefined
  return newestRowsWork(input, [key.index], tables)
}

function latestWork({ input, keys }: PlanOf<'latest'>, tables: Tables): number {
  return newestRowsWork(input, keys, tables)
}

/** The newest rows of each symbol are found from the newest row backwards, or in lists of the parts. */
function newestRowsWork(input: Plan, keys: readonly number[], tables: Tables): number {
  const all = planWork(input, tables)
  const [key = -1, ...more] = keys
  if (input.kind !== 'scan' || input.filter !== null || input.ranges !== null || more.length > 0) return all
  const columnId = input.columnIds[key]
  const known = tables.snapshots[input.table]?.version.dictionaries.find(([id]) => id === columnId)
  if (known === undefined) return all
  const rows = dictionaryCount(tables.memory, known[1]) * rowsPerSymbol * input.columnIds.length
  return Math.min(all, rows + partsOf(input, tables) * walkedPartValues + partValues)
}

function partsOf(plan: Plan, tables: Tables): number {
  if (plan.kind === 'project') return partsOf(plan.input, tables)
  return plan.kind === 'scan' ? (tables.snapshots[plan.table]?.version.parts.length ?? 0) : 0
}

function streams(plan: Plan): boolean {
  if (plan.kind === 'project') return streams(plan.input)
  return plan.kind === 'scan' && plan.filter === null && plan.ranges === null
}

/** `generated`: read by generated code, unless it needs few rows anyway. */
function scanWork(plan: PlanOf<'scan'>, tables: Tables, generated: boolean): number {
  const snapshot = tables.snapshots[plan.table]
  if (snapshot === undefined || snapshot.version.parts.length > partsMax) return Number.POSITIVE_INFINITY
  const ranges = snapshot.version.schema.timestampId < 0 ? null : plan.ranges
  const columns = Math.max(1, plan.columnIds.length)
  const looked = generated ? generatedValues : 1
  const indexed = indexedFraction(plan, snapshot, tables.memory)
  let work = (memoryRows(snapshot, ranges, tables.memory) * columns) / looked
  for (const part of snapshot.version.parts) {
    if (!touches(ranges, part.minTs, part.maxTs)) continue
    const rows = partRows(part, ranges)
    const values = rows * columns
    const picked = (values * indexed) / Math.max(looked, pickedValues)
    const pages = Math.ceil(rows / pageRowsMax) * columns * listedPageValues
    work += partValues + (indexed === 1 ? values / looked : picked + pages)
  }
  return work * (plan.filter === null ? 1 : weightOf(plan.filter))
}

/** Estimated fraction of rows with the symbols that the filter requires, if pages have an inverted index; else 1. */
function indexedFraction(plan: PlanOf<'scan'>, { version }: TableSnapshot, memory: SharedMemory): number {
  for (const condition of plan.filter === null ? [] : conjuncts(plan.filter)) {
    const wanted = wantedStrings(condition)
    const columnId = wanted === undefined ? undefined : plan.columnIds[wanted.column.index]
    const known = version.dictionaries.find(([id]) => id === columnId)
    if (wanted === undefined || known === undefined) continue
    const symbols = dictionaryCount(memory, known[1])
    if (areIndexed(wanted.strings.length, symbols)) return wanted.strings.length / symbols
  }
  return 1
}

/** Estimated rows in memory within the ranges. */
function memoryRows(
  { version, visibleRows }: TableSnapshot,
  ranges: readonly TimeRange[] | null,
  memory: SharedMemory,
): number {
  return version.memtables.reduce((sum, { address }, index) => {
    const visible = visibleRows[index] as number
    return sum + (ranges === null ? visible : memtableRows(memory, address, visible, ranges))
  }, 0)
}

function memtableRows(memory: SharedMemory, memtable: number, visible: number, ranges: readonly TimeRange[]): number {
  const blocks = visible === 0 ? 0 : blockCount(memory, memtable)
  if (blocks > blocksMax) return visible * rangeShare
  let sum = 0
  for (let index = 0; index < blocks; index++) {
    const block = blockAt(memory, memtable, index)
    const rows = blockRows(memory, block)
    const { minTs, maxTs } = blockTimes(memory, block)
    if (rows === 0 || !touches(ranges, minTs, maxTs)) continue
    const inOrder = isBlockSorted(memory, block) && supersededRows(memory, block) === 0
    sum += inOrder ? partRows({ rows, minTs, maxTs }, ranges) : rows * rangeShare
  }
  return sum
}

/** Rows of a part or sorted block within the ranges, assuming an even distribution. */
function partRows(
  { rows, minTs, maxTs }: Pick<PartDescriptor, 'rows' | 'minTs' | 'maxTs'>,
  ranges: readonly TimeRange[] | null,
): number {
  if (ranges === null) return rows
  const span = Number(maxTs - minTs) + 1
  let covered = 0
  for (const { lo, hi } of ranges) {
    const from = lo > minTs ? lo : minTs
    const to = hi < maxTs ? hi : maxTs
    if (from <= to) covered += Number(to - from) + 1
  }
  return (rows * Math.min(covered, span)) / span
}
