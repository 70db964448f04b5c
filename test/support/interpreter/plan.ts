// A simple interpreter of plans over rows of JavaScript values, one function for each operator: the oracle of the
// executor's property tests, also used by the binder's tests. Expressions are evaluated by
// sql/functions/registry/evaluate.ts.

import type { CallSite, EvaluationContext } from '../../../engine/sql/functions/function-types.js'
import { createRandom } from '../../../engine/sql/functions/random-generator.js'
import {
  aggregateOf,
  callSite,
  compileExpression,
  type Evaluation,
  listKeys,
  type Row,
  type SubqueryResult,
} from '../../../engine/sql/functions/registry/evaluate.js'
import type { AggregateCall, Fill, Plan, Query } from '../../../engine/sql/plan/plan.js'
import { compareForSort, keyText } from '../../../engine/types/compare.js'
import { castValue, nullOf } from '../../../engine/types/convert.js'
import { type TimestampUnit, ticksPerMicro } from '../../../engine/types/timestamp-calendar.js'
import { floorTimestamp, nextBucket } from '../../../engine/types/timestamp-floor.js'
import { fromZone, timeZone, toZone } from '../../../engine/types/timestamp-zone.js'
import type { Value } from '../../../engine/types/value.js'
import { joinRows } from './join.js'
import { windowRows } from './window.js'

/** One table: rows in commit order, the values of each in the order of `columnIds`. */
export interface TableRows {
  readonly columnIds: readonly number[]
  /** Column id of the designated timestamp, -1 without one. */
  readonly timestampId: number
  readonly rows: readonly Row[]
}

export interface InterpreterOptions {
  /** Rows of Query.tables by index. */
  readonly tables: readonly TableRows[]
  readonly context?: Partial<EvaluationContext>
}

export function defaultContext(overrides: Partial<EvaluationContext> = {}): EvaluationContext {
  const nowMicros = 1_704_067_200_000_000n
  return { nowMicros, clockMicros: () => nowMicros, random: createRandom(1n, 2n), user: 'admin', ...overrides }
}

/** All rows of a query. */
export function interpretQuery(query: Query, options: InterpreterOptions): Row[] {
  const subqueries: SubqueryResult[] = []
  const evaluation: Evaluation = { ...defaultContext(options.context), subqueries }
  for (const { plan, mode } of query.subqueries) {
    const rows = interpret(plan, options.tables, evaluation)
    if (mode === 'scalar') subqueries.push({ mode, value: rows[0]?.[0] ?? null })
    else if (mode === 'list') subqueries.push({ mode, keys: listKeys(rows.map(([value = null]) => value)) })
    else subqueries.push({ mode, exists: rows.length > 0 })
  }
  return interpret(query.plan, options.tables, evaluation)
}

function interpret(
  plan: Plan,
  tables: readonly TableRows[],
  evaluation: Evaluation,
  working: ReadonlyMap<number, readonly Row[]> = new Map(),
): Row[] {
  const run = (input: Plan): Row[] => interpret(input, tables, evaluation, working)
  switch (plan.kind) {
    case 'scan':
      return scanRows(plan, tables[plan.table], evaluation)
    case 'foreign':
      throw new Error('the interpreter reads no files')
    case 'values':
      return [...plan.rows]
    case 'sequence':
      return Array.from({ length: Number(plan.count) }, (_, index) => [BigInt(index + 1)])
    case 'filter': {
      const keep = compileExpression(plan.predicate, evaluation)
      return run(plan.input).filter((row) => keep(row) === true)
    }
    case 'project': {
      const seeded = withSeed(plan.input, evaluation)
      const columns = plan.expressions.map((expression) => compileExpression(expression, seeded))
      return run(plan.input).map((row) => columns.map((column) => column(row)))
    }
    case 'aggregate':
      return groupRows(plan, run(plan.input), evaluation)
    case 'sample':
      return sampleRows(plan, run(plan.input), evaluation)
    case 'latest':
      return latestRows(plan, run(plan.input))
    case 'sort':
      return sortRows(plan, run(plan.input))
    case 'limit':
      return limitRows(plan, run(plan.input))
    case 'distinct':
      return distinctRows(run(plan.input))
    case 'set':
      return setRows(plan, run(plan.left), run(plan.right))
    case 'recursive':
      return recursiveRows(plan, run(plan.left), (rows) =>
        interpret(plan.right, tables, evaluation, new Map(working).set(plan.id, rows)),
      )
    case 'working':
      return [...(working.get(plan.id) ?? [])]
    case 'join':
      return joinRows(plan, run(plan.left), run(plan.right), evaluation)
    case 'window':
      return windowRows(plan, run(plan.input), evaluation)
    case 'expand': {
      const count = compileExpression(plan.count, evaluation)
      return run(plan.input).flatMap((row) =>
        Array.from({ length: Math.max(0, Number(count(row) ?? 0)) }, (_, index): Row => [...row, BigInt(index + 1)]),
      )
    }
  }
}

function recursiveRows(
  { all }: Extract<Plan, { kind: 'recursive' }>,
  first: readonly Row[],
  step: (rows: readonly Row[]) => Row[],
): Row[] {
  const rows: Row[] = []
  const seen = new Set<string>()
  const fresh = (given: readonly Row[]): Row[] =>
    given.filter((row) => {
      const key = rowKey(row)
      const isKnown = seen.has(key)
      seen.add(key)
      return all || !isKnown
    })
  for (let round = fresh(first); round.length > 0; round = fresh(step(round))) rows.push(...round)
  return rows
}

/** A seeded sequence below seeds the random functions of the projection above it. */
function withSeed(input: Plan, evaluation: Evaluation): Evaluation {
  if (input.kind !== 'sequence' || input.seed === null) return evaluation
  return { ...evaluation, random: createRandom(input.seed[0], input.seed[1]) }
}

function scanRows(plan: Extract<Plan, { kind: 'scan' }>, table: TableRows | undefined, evaluation: Evaluation): Row[] {
  if (table === undefined) throw new Error('the interpreter was given too few tables')
  const timestamp = table.columnIds.indexOf(table.timestampId)
  const positions = plan.columnIds.map((id) => table.columnIds.indexOf(id))
  const keep = plan.filter === null ? null : compileExpression(plan.filter, evaluation)
  const rows =
    timestamp < 0
      ? [...table.rows]
      : table.rows.toSorted((a, b) =>
          compareForSort(a[timestamp] ?? null, b[timestamp] ?? null, { name: 'TIMESTAMP', a: 0, b: 0 }),
        )
  if (plan.order === 'descending') rows.reverse()
  return rows
    .filter((row) => plan.ranges === null || inRanges(row[timestamp] ?? null, plan.ranges))
    .map((row) => positions.map((position) => row[position] ?? null))
    .filter((row) => keep === null || keep(row) === true)
}

function inRanges(value: Value, ranges: NonNullable<Extract<Plan, { kind: 'scan' }>['ranges']>): boolean {
  return typeof value === 'bigint' && ranges.some(({ lo, hi }) => value >= lo && value <= hi)
}

// Groups ------------------------------------------------------------------------------------------------------------

interface Aggregation {
  readonly start: () => unknown[]
  readonly add: (states: unknown[], row: Row) => void
  readonly finish: (states: unknown[]) => Value[]
}

export function aggregation(calls: readonly AggregateCall[], evaluation: Evaluation): Aggregation {
  const parts = calls.map((call) => {
    const row = aggregateOf(call.name, call.args)
    if (row === undefined) throw new Error(`no aggregate of that signature [name=${call.name}]`)
    const site: CallSite = callSite(call.type, call.args, call.position, evaluation)
    const args = call.args.map((argument) => compileExpression(argument, evaluation))
    return { accumulator: row.accumulator, site, args }
  })
  return {
    start: () => parts.map(({ accumulator }) => accumulator.init()),
    add: (states, row) => {
      for (const [index, { accumulator, site, args }] of parts.entries()) {
        accumulator.add(
          states[index],
          args.map((argument) => argument(row)),
          site,
        )
      }
    },
    finish: (states) =>
      parts.map(({ accumulator, site }, index) => accumulator.result(states[index], site) ?? nullOf(site.type)),
  }
}

function rowKey(values: readonly Value[]): string {
  return values.map(keyText).join('|')
}

function groupRows(plan: Extract<Plan, { kind: 'aggregate' }>, rows: readonly Row[], evaluation: Evaluation): Row[] {
  const keys = plan.keys.map((key) => compileExpression(key, evaluation))
  const { start, add, finish } = aggregation(plan.aggregates, evaluation)
  const groups = new Map<string, { readonly key: Value[]; readonly states: unknown[] }>()
  if (plan.keys.length === 0) groups.set('', { key: [], states: start() })
  for (const row of rows) {
    const key = keys.map((evaluate) => evaluate(row))
    const text = rowKey(key)
    let group = groups.get(text)
    if (group === undefined) {
      group = { key, states: start() }
      groups.set(text, group)
    }
    add(group.states, row)
  }
  return [...groups.values()].map(({ key, states }) => [...key, ...finish(states)])
}

// SAMPLE BY ---------------------------------------------------------------------------------------------------------

type Sample = Extract<Plan, { kind: 'sample' }>

interface Grid {
  /** Start of the bucket that holds a timestamp. */
  readonly floor: (ts: bigint) => bigint
  readonly next: (bucket: bigint) => bigint
}

function gridOf(plan: Sample, unit: TimestampUnit, first: bigint): Grid {
  const { interval, align, from } = plan
  const sourcePosition = align.kind === 'first' ? first : (from ?? 0n)
  const zone = align.kind === 'calendar' && align.zone !== null ? timeZone(align.zone) : null
  const scale = ticksPerMicro(unit)
  const offset = align.kind === 'calendar' ? align.offsetMicros * scale : 0n
  const local = (ts: bigint): bigint => (zone === null ? ts : toZone(ts / scale, zone) * scale)
  const utc = (ts: bigint): bigint => (zone === null ? ts : fromZone(ts / scale, zone) * scale)
  // FROM moves the grid; without it buckets count from the epoch of local time plus the offset.
  const anchor = align.kind === 'calendar' && from !== null ? local(from) : sourcePosition
  return {
    floor: (ts) =>
      utc(floorTimestamp(local(ts) - offset, interval, unit, anchor === 0n ? 0n : anchor - offset) + offset),
    next: (bucket) => utc(nextBucket(local(bucket) - offset, interval, unit) + offset),
  }
}

function sampleRows(plan: Sample, rows: readonly Row[], evaluation: Evaluation): Row[] {
  const unit: TimestampUnit = plan.columns[0]?.type.name === 'TIMESTAMP_NS' ? 'TIMESTAMP_NS' : 'TIMESTAMP'
  const keys = plan.keys.map((key) => compileExpression(key, evaluation))
  const { start, add, finish } = aggregation(plan.aggregates, evaluation)
  const first = rows[0]?.[plan.timestampIndex]
  const hasFill = plan.fills.some(({ kind }) => kind !== 'none')
  if (typeof first !== 'bigint' && (!hasFill || plan.from === null || plan.to === null || keys.length > 0)) return []
  const grid = gridOf(plan, unit, typeof first === 'bigint' ? first : 0n)
  const buckets = new Map<bigint, Map<string, unknown[]>>()
  const keyValues = new Map<string, Value[]>()
  for (const row of rows) {
    const bucket = grid.floor(row[plan.timestampIndex] as bigint)
    const key = keys.map((evaluate) => evaluate(row))
    const text = rowKey(key)
    if (!keyValues.has(text)) keyValues.set(text, key)
    const groups = buckets.get(bucket) ?? new Map<string, unknown[]>()
    buckets.set(bucket, groups)
    const states = groups.get(text) ?? start()
    groups.set(text, states)
    add(states, row)
  }
  if (keys.length === 0) keyValues.set('', [])
  const samples: Samples = {
    keys: keyValues,
    values: new Map(
      [...buckets].map(([bucket, groups]) => [
        bucket,
        new Map([...groups].map(([key, states]) => [key, finish(states)])),
      ]),
    ),
  }
  return hasFill ? filledRows(plan, samples, grid) : plainRows(samples)
}

interface Samples {
  readonly keys: ReadonlyMap<string, Value[]>
  readonly values: ReadonlyMap<bigint, ReadonlyMap<string, Value[]>>
}

function plainRows({ keys, values }: Samples): Row[] {
  return [...values]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .flatMap(([bucket, groups]) => [...groups].map(([key, row]) => [bucket, ...(keys.get(key) ?? []), ...row]))
}

function allBuckets(plan: Sample, { values }: Samples, grid: Grid): bigint[] {
  const known = [...values.keys()].sort((a, b) => (a < b ? -1 : 1))
  const first = plan.from === null ? known[0] : grid.floor(plan.from)
  const last = plan.to === null ? known[known.length - 1] : plan.to - 1n
  const buckets: bigint[] = []
  if (first === undefined || last === undefined) return buckets
  for (let bucket = first; bucket <= last; bucket = grid.next(bucket)) buckets.push(bucket)
  return buckets
}

function filledRows(plan: Sample, samples: Samples, grid: Grid): Row[] {
  const buckets = allBuckets(plan, samples, grid)
  const series = new Map([...samples.keys.keys()].map((key) => [key, filledSeries(plan, samples, buckets, key)]))
  return buckets.flatMap((bucket, index) =>
    [...samples.keys].flatMap(([key, values]): Row[] => {
      const row = series.get(key)?.[index]
      return row === null || row === undefined ? [] : [[bucket, ...values, ...row]]
    }),
  )
}

/** One key's row per bucket; null where nothing is to be shown. */
function filledSeries(plan: Sample, { values }: Samples, buckets: readonly bigint[], key: string): (Value[] | null)[] {
  const rows = buckets.map((bucket) => values.get(bucket)?.get(key) ?? null)
  const dropsGaps = plan.fills.every(({ kind }) => kind === 'none')
  return rows.map((row, index) => {
    if (row !== null) return row
    if (dropsGaps) return null
    return plan.fills.map((fill, column) => fillValue(fill, plan, rows, buckets, index, column))
  })
}

function fillValue(
  fill: Fill,
  plan: Sample,
  rows: readonly (Value[] | null)[],
  buckets: readonly bigint[],
  index: number,
  column: number,
): Value {
  const type = plan.aggregates[column]?.type ?? { name: 'DOUBLE', a: 0, b: 0 }
  switch (fill.kind) {
    case 'none':
    case 'null':
      return nullOf(type)
    case 'constant':
      return fill.value
    case 'prev':
      return rows.slice(0, index).findLast((row) => row !== null)?.[column] ?? nullOf(type)
    case 'linear':
      return linear(rows, buckets, index, column, type)
    case 'first':
      return rows.find((row) => row !== null)?.[column] ?? nullOf(type)
  }
}

function linear(
  rows: readonly (Value[] | null)[],
  buckets: readonly bigint[],
  index: number,
  column: number,
  type: AggregateCall['type'],
): Value {
  const before = rows.findLastIndex((row, at) => at < index && row !== null && row[column] !== null)
  const after = rows.findIndex((row, at) => at > index && row !== null && row[column] !== null)
  if (before < 0 || after < 0) return nullOf(type)
  const [t0, t, t1] = [Number(buckets[before]), Number(buckets[index]), Number(buckets[after])]
  const [v0, v1] = [Number(rows[before]?.[column]), Number(rows[after]?.[column])]
  return castValue(v0 + ((v1 - v0) * (t - t0)) / (t1 - t0), { name: 'DOUBLE', a: 0, b: 0 }, type)
}

// The rest ----------------------------------------------------------------------------------------------------------

function latestRows(plan: Extract<Plan, { kind: 'latest' }>, rows: readonly Row[]): Row[] {
  const newest = new Map<string, { readonly row: Row; readonly index: number }>()
  for (const [index, row] of rows.entries()) {
    const key = rowKey(plan.keys.map((column) => row[column] ?? null))
    const known = newest.get(key)?.row[plan.timestampIndex]
    const ts = row[plan.timestampIndex]
    if (typeof known !== 'bigint' || (typeof ts === 'bigint' && ts >= known)) newest.set(key, { row, index })
  }
  return [...newest.values()].sort((a, b) => order(a, b, plan.timestampIndex)).map(({ row }) => row)
}

interface Placed {
  readonly row: Row
  readonly index: number
}

function order(a: Placed, b: Placed, timestamp: number): number {
  const [x, y] = [a.row[timestamp] as bigint, b.row[timestamp] as bigint]
  return x < y ? -1 : x > y ? 1 : a.index - b.index
}

function sortRows(plan: Extract<Plan, { kind: 'sort' }>, rows: readonly Row[]): Row[] {
  const sorted = rows.toSorted((a, b) => {
    for (const { index, descending, nullsFirst } of plan.keys) {
      const [x, y] = [a[index] ?? null, b[index] ?? null]
      if (x === null || y === null) {
        if (x === y) continue
        return (x === null) === nullsFirst ? -1 : 1
      }
      const way = compareForSort(x, y, plan.columns[index]?.type ?? { name: 'LONG', a: 0, b: 0 })
      if (way !== 0) return descending ? -way : way
    }
    return 0
  })
  return plan.limit === null ? sorted : sorted.slice(0, plan.limit)
}

function limitRows({ lo, hi }: Extract<Plan, { kind: 'limit' }>, rows: readonly Row[]): Row[] {
  const at = (bound: number): number => (bound < 0 ? Math.max(0, rows.length + bound) : bound)
  return rows.slice(at(lo), hi === null ? rows.length : at(hi))
}

function distinctRows(rows: readonly Row[]): Row[] {
  const seen = new Map<string, Row>()
  for (const row of rows) {
    const key = rowKey(row)
    if (!seen.has(key)) seen.set(key, row)
  }
  return [...seen.values()]
}

function setRows(
  { operation, all }: Extract<Plan, { kind: 'set' }>,
  left: readonly Row[],
  right: readonly Row[],
): Row[] {
  if (operation === 'union') return all ? [...left, ...right] : distinctRows([...left, ...right])
  const keys = new Set(right.map(rowKey))
  const rows = left.filter((row) => keys.has(rowKey(row)) === (operation === 'intersect'))
  return all ? rows : distinctRows(rows)
}
