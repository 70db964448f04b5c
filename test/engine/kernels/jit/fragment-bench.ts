// Helpers for tests of the code generator: writes columns of values into a small memory, runs compiled fragments (parts
// of a query plan) over them, and computes the same fragments value by value with the interpreter of sql/functions.

import { SqlError } from '../../../../engine/base/errors.js'
import type {
  AggregateShape,
  FragmentExpression,
  GroupKey,
  ProjectShape,
  SelectShape,
} from '../../../../engine/kernels/jit/fragment.js'
import { createJit } from '../../../../engine/kernels/jit/jit.js'
import { createSharedMemory } from '../../../../engine/memory/shared-memory.js'
import {
  aggregateOf,
  callSite,
  compileExpression,
  type Evaluation,
} from '../../../../engine/sql/functions/registry/evaluate.js'
import type { Expression } from '../../../../engine/sql/plan/plan.js'
import { type ColumnType, type DataType, dataType, widthOf } from '../../../../engine/types/column-types.js'
import { longMin } from '../../../../engine/types/number.js'
import type { Value } from '../../../../engine/types/value.js'

const memory = createSharedMemory(32 * 1024 * 1024)
const jit = createJit(memory)

const blockAt = 1024
const columnsAt = 64 * 1024
const columnBytes = 512 * 1024
const outAt = 16 * 1024 * 1024
const stateAt = 24 * 1024 * 1024

const evaluation = { subqueries: [] } as unknown as Evaluation

export interface Column {
  readonly type: DataType
  readonly values: readonly Value[]
}

/** SYMBOL values are ids here, as constants of fragments are. */
function writeColumn(index: number, { type, values }: Column): number {
  const address = columnsAt + index * columnBytes
  memory.u8.fill(0x5b, address, address + values.length * widthOf(type) + 64)
  values.forEach((value, row) => writeOne(type.name, address, row, value))
  return address
}

function writeOne(name: ColumnType, address: number, row: number, value: Value): void {
  switch (widthOf(dataType(name))) {
    case 1:
      memory.i8[address + row] = Number(value)
      return
    case 2:
      memory.i16[(address >>> 1) + row] = Number(value)
      return
    case 4:
      if (name === 'FLOAT') memory.f32[(address >>> 2) + row] = value === null ? Number.NaN : Number(value)
      else memory.i32[(address >>> 2) + row] = value === null ? nullInt(name) : Number(value)
      return
    default:
      if (name === 'DOUBLE') memory.f64[(address >>> 3) + row] = value === null ? Number.NaN : Number(value)
      else memory.i64[(address >>> 3) + row] = value === null ? longMin : BigInt(value as bigint)
  }
}

function nullInt(name: ColumnType): number {
  return name === 'SYMBOL' ? -1 : name === 'IPv4' ? 0 : -0x80000000
}

function readOne(name: ColumnType, address: number, row: number): Value {
  switch (name) {
    case 'BOOLEAN':
      return memory.i8[address + row] !== 0
    case 'BYTE':
      return memory.i8[address + row]!
    case 'SHORT':
      return memory.i16[(address >>> 1) + row]!
    case 'INT': {
      const value = memory.i32[(address >>> 2) + row]!
      return value === -0x80000000 ? null : value
    }
    case 'FLOAT':
      return numberOrNull(memory.f32[(address >>> 2) + row]!)
    case 'DOUBLE':
      return numberOrNull(memory.f64[(address >>> 3) + row]!)
    default: {
      const value = memory.i64[(address >>> 3) + row]!
      return value === longMin ? null : value
    }
  }
}

function numberOrNull(value: number): number | null {
  return Number.isNaN(value) ? null : value
}

interface Prepared {
  readonly lookups: readonly number[]
  writeConstants(block: number): void
  setColumn(block: number, index: number, address: number): void
  setLookup(block: number, slot: number, address: number, entries: number): void
}

/** Tables of answers by the caller's number; the first byte is NULL's. */
export type Tables = readonly (readonly boolean[])[]

function prepare(fragment: Prepared, columns: readonly Column[], tables: Tables): void {
  fragment.writeConstants(blockAt)
  columns.forEach((column, index) => fragment.setColumn(blockAt, index, writeColumn(index, column)))
  fragment.lookups.forEach((table, slot) => {
    const answers = tables[table] ?? []
    const address = 32 * 1024 + slot * 1024
    memory.u8.set(answers.map(Number), address)
    fragment.setLookup(blockAt, slot, address, answers.length)
  })
}

const rowsOf = (columns: readonly Column[]): number => columns[0]?.values.length ?? 0

/** undefined: not supported. */
export function select(shape: SelectShape, columns: readonly Column[], tables: Tables = []): number[] | undefined {
  const fragment = jit.select(shape)
  if (fragment === null) return undefined
  prepare(fragment, columns, tables)
  const rows = rowsOf(columns)
  const count = fragment.run(blockAt, rows, outAt, 0)
  if (shape.output === 'rows') return Array.from(memory.u32.subarray(outAt >>> 2, (outAt >>> 2) + count))
  const mask = memory.u8.subarray(outAt, outAt + rows)
  return Array.from({ length: rows }, (_, row) => row).filter((row) => mask[row] === 255)
}

export function project(shape: ProjectShape, columns: readonly Column[], tables: Tables = []): Value[][] | undefined {
  const fragment = jit.project(shape)
  if (fragment === null) return undefined
  prepare(fragment, columns, tables)
  shape.expressions.forEach((_, index) => fragment.setOutput(blockAt, index, outAt + index * columnBytes))
  const rows = rowsOf(columns)
  fragment.run(blockAt, rows)
  return shape.expressions.map(({ type }, index) =>
    Array.from({ length: rows }, (_, row) => readOne(type.name, outAt + index * columnBytes, row)),
  )
}

/** Results by group. The rows are added in two calls to one state and a third call to another, which is merged. */
export function aggregate(
  shape: AggregateShape,
  columns: readonly Column[],
  counts: readonly number[],
  tables: Tables = [],
): Value[][] | undefined {
  const fragment = jit.aggregate(shape)
  if (fragment === null) return undefined
  prepare(fragment, columns, tables)
  counts.forEach((count, key) => fragment.setCount(blockAt, key, count))
  const groups = counts.reduce((product, count) => product * count, 1)
  const bytes = (fragment.stateBytes(groups) + 63) & ~63
  const rows = rowsOf(columns)
  const cuts = [0, Math.floor(rows / 3) & ~15, Math.floor((rows * 2) / 3) & ~15, rows]
  memory.u8.fill(0xa5, stateAt, stateAt + bytes * 2)
  for (let part = 0; part < 3; part++) {
    const [from, to] = [cuts[part] as number, cuts[part + 1] as number]
    const state = part === 2 ? stateAt + bytes : stateAt
    if (part !== 1) fragment.init(state, groups)
    columns.forEach(({ type }, index) =>
      fragment.setColumn(blockAt, index, columnsAt + index * columnBytes + from * widthOf(type)),
    )
    fragment.run(blockAt, to - from, state, groups, from)
    if (part !== 0) fragment.fold(state, groups)
  }
  fragment.merge(stateAt + bytes, stateAt, groups)
  return Array.from({ length: groups }, (_, group) =>
    shape.aggregates.map((_, index) => valueOrProblem(() => fragment.result(stateAt, group, index))),
  )
}

/** The message of a result that is an error: a sum out of range. */
function valueOrProblem(read: () => Value): Value {
  try {
    return read()
  } catch (thrown) {
    if (thrown instanceof SqlError) return thrown.message
    throw thrown
  }
}

// The oracle --------------------------------------------------------------------------------------------------------

/** Row by row: what the interpreter says of an expression. Ids stand for symbols; a lookup is a list of ids. */
function evaluator(expression: FragmentExpression, tables: Tables = []): (row: readonly Value[]) => Value {
  return compileExpression(interpretable(expression, tables), evaluation)
}

function interpretable(expression: FragmentExpression, tables: Tables): Expression {
  if (expression.kind === 'call')
    return { ...expression, args: expression.args.map((arg) => interpretable(arg, tables)), position: 0 }
  if (expression.kind !== 'lookup') return { ...expression, position: 0 }
  const type = dataType('SYMBOL')
  const ids = (tables[expression.table] ?? []).flatMap((answer, index) => (answer ? [index - 1] : []))
  const members = ids.map((id): Expression => ({ kind: 'constant', value: id < 0 ? null : id, type, position: 0 }))
  const symbol: Expression = { kind: 'column', index: expression.column, type, position: 0 }
  return { kind: 'call', name: 'in', args: [symbol, ...members], type: expression.type, position: 0 }
}

function rowAt(columns: readonly Column[], row: number): Value[] {
  return columns.map(({ values }) => values[row] ?? null)
}

export function passing(
  predicate: FragmentExpression | null,
  columns: readonly Column[],
  tables: Tables = [],
): number[] {
  const rows = Array.from({ length: rowsOf(columns) }, (_, row) => row)
  if (predicate === null) return rows
  const holds = evaluator(predicate, tables)
  return rows.filter((row) => holds(rowAt(columns, row)) === true)
}

export function projected(shape: ProjectShape, columns: readonly Column[], tables: Tables = []): Value[][] {
  return shape.expressions.map((expression) => {
    const evaluate = evaluator(expression, tables)
    return Array.from({ length: rowsOf(columns) }, (_, row) => evaluate(rowAt(columns, row)))
  })
}

export function aggregated(
  shape: AggregateShape,
  columns: readonly Column[],
  counts: readonly number[],
  tables: Tables = [],
): Value[][] {
  const groups = counts.reduce((product, count) => product * count, 1)
  const members: number[][] = Array.from({ length: groups }, () => [])
  for (const row of passing(shape.predicate, columns, tables)) {
    const group = groupOf(shape.keys, rowAt(columns, row), counts)
    if (group !== null) members[group]?.push(row)
  }
  return members.map((rows) =>
    shape.aggregates.map(({ name, arg }) => valueOrProblem(() => folded(name, arg, columns, rows))),
  )
}

function groupOf(keys: readonly GroupKey[], row: readonly Value[], counts: readonly number[]): number | null {
  let group = 0
  let factor = 1
  for (const [index, key] of keys.entries()) {
    const part = partOf(key, evaluator(key.expression)(row))
    const count = counts[index] as number
    if (part === null || part < 0 || part >= count) return null
    group += part * factor
    factor *= count
  }
  return group
}

function partOf(key: GroupKey, value: Value): number | null {
  if (key.kind === 'bucket') {
    if (value === null) return null
    const distance = (value as bigint) - key.origin
    const quotient = distance / key.step
    return Number(distance < 0n && quotient * key.step !== distance ? quotient - 1n : quotient)
  }
  if (value === null) return 0
  if (typeof value === 'boolean') return Number(value)
  return Number(value) + 1 - (key.expression.type.name === 'SYMBOL' ? 0 : key.origin)
}

function folded(
  name: string,
  arg: FragmentExpression | null,
  columns: readonly Column[],
  rows: readonly number[],
): Value {
  if (name === 'first') return rows[0] ?? null
  if (name === 'last') return rows.at(-1) ?? null
  const evaluate = arg === null ? null : evaluator(arg)
  const values = rows.map((row) => (evaluate === null ? null : evaluate(rowAt(columns, row))))
  const present = rows.filter((_, index) => values[index] !== null)
  if (name === 'first_not_null') return present[0] ?? null
  if (name === 'last_not_null') return present.at(-1) ?? null
  const args = arg === null ? [] : [{ ...arg, position: 0 } as Expression]
  const row = aggregateOf(name, args)
  if (row === undefined) throw new Error(`no aggregate ${name}`)
  const type = row.gives === 'FIRST' ? (arg?.type ?? dataType('LONG')) : dataType(row.gives as ColumnType)
  const site = callSite(type, args, 0, evaluation)
  const state = row.accumulator.init()
  for (const value of values) row.accumulator.add(state, arg === null ? [] : [value], site)
  const result = row.accumulator.result(state, site)
  if (typeof result === 'number')
    return Number.isNaN(result) ? null : type.name === 'FLOAT' ? Math.fround(result) : result
  return result === longMin ? null : result
}
