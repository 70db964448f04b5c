// Window functions of the plan interpreter (plan.ts, the oracle of the executor's tests), which recomputes every frame
// for every row.

import { compileExpression, type Evaluation, type Row } from '../../../engine/sql/functions/registry/evaluate.js'
import type { Plan, WindowCall } from '../../../engine/sql/plan/plan.js'
import { compareForSort, keyText } from '../../../engine/types/compare.js'
import { castValue, nullOf } from '../../../engine/types/convert.js'
import type { Value } from '../../../engine/types/value.js'
import { aggregation } from './plan.js'

type Window = Extract<Plan, { kind: 'window' }>

export function windowRows(plan: Window, rows: readonly Row[], evaluation: Evaluation): Row[] {
  const columns = plan.calls.map((call) => windowColumn(call, rows, evaluation))
  return rows.map((row, index) => [...row, ...columns.map((column) => column[index] ?? null)])
}

interface Partition {
  /** Row numbers in window order. */
  readonly members: readonly number[]
  /** Order values by row number. */
  readonly keys: ReadonlyMap<number, readonly Value[]>
}

function windowColumn(call: WindowCall, rows: readonly Row[], evaluation: Evaluation): Value[] {
  const result = new Array<Value>(rows.length).fill(null)
  for (const partition of partitionsOf(call, rows, evaluation)) {
    for (const position of partition.members.keys()) {
      const row = partition.members[position] ?? 0
      result[row] = windowValue(call, partition, position, rows, evaluation)
    }
  }
  return result
}

function partitionsOf(call: WindowCall, rows: readonly Row[], evaluation: Evaluation): Partition[] {
  const by = call.partitionBy.map((expression) => compileExpression(expression, evaluation))
  const order = call.orderBy.map(({ expression }) => compileExpression(expression, evaluation))
  const groups = new Map<string, number[]>()
  const keys = new Map(rows.map((row, index) => [index, order.map((evaluate) => evaluate(row))]))
  for (const [index, row] of rows.entries()) {
    const key = by.map((evaluate) => keyText(evaluate(row))).join('|')
    const members = groups.get(key)
    if (members === undefined) groups.set(key, [index])
    else members.push(index)
  }
  return [...groups.values()].map((members) => ({
    members: members.sort((a, b) => compareKeys(call, keys, a, b) || a - b),
    keys,
  }))
}

function compareKeys(call: WindowCall, keys: Partition['keys'], a: number, b: number): number {
  for (const [index, { expression, descending }] of call.orderBy.entries()) {
    const way = compareForSort(keys.get(a)?.[index] ?? null, keys.get(b)?.[index] ?? null, expression.type)
    if (way !== 0) return descending ? -way : way
  }
  return 0
}

function windowValue(
  call: WindowCall,
  partition: Partition,
  position: number,
  rows: readonly Row[],
  evaluation: Evaluation,
): Value {
  const { members, keys } = partition
  const own = members[position] ?? 0
  const peers = (other: number): boolean => compareKeys(call, keys, own, other) === 0
  const before = members.findIndex(peers)
  switch (call.name) {
    case 'row_number':
      return BigInt(position + 1)
    case 'rank':
      return BigInt(call.orderBy.length === 0 ? 1 : before + 1)
    case 'dense_rank':
      return BigInt(
        members
          .slice(0, before)
          .filter((row, index) => index === 0 || compareKeys(call, keys, row, members[index - 1] ?? 0) !== 0).length +
          1,
      )
    case 'percent_rank':
      return members.length === 1 ? 0 : before / (members.length - 1)
    case 'cume_dist':
      return (members.findLastIndex(peers) + 1) / members.length
    case 'ntile':
      return ntile(
        Number(compileExpression(call.args[0] ?? zero, evaluation)(rows[own] ?? [])),
        position,
        members.length,
      )
    case 'lag':
    case 'lead':
      return offsetValue(call, partition, position, rows, evaluation)
    default:
      return frameValue(call, partition, position, rows, evaluation)
  }
}

const zero = { kind: 'constant', value: 1, type: { name: 'INT', a: 0, b: 0 }, position: 0 } as const

/** The first groups are one larger when the rows do not divide. */
function ntile(groups: number, position: number, rows: number): bigint {
  const size = Math.floor(rows / groups)
  const larger = rows % groups
  const inLarger = larger * (size + 1)
  return BigInt(
    position < inLarger
      ? Math.floor(position / (size + 1)) + 1
      : larger + Math.floor((position - inLarger) / Math.max(1, size)) + 1,
  )
}

function offsetValue(
  call: WindowCall,
  { members }: Partition,
  position: number,
  rows: readonly Row[],
  evaluation: Evaluation,
): Value {
  const [value, offset, fallback] = call.args.map((argument) => compileExpression(argument, evaluation))
  const row = rows[members[position] ?? 0] ?? []
  const distance = offset === undefined ? 1 : Number(offset(row))
  const other = call.ignoreNulls
    ? present(call, members, position, distance, (index) => value?.(rows[index] ?? []) ?? null)
    : members[position + (call.name === 'lag' ? -distance : distance)]
  if (other === undefined) return fallback === undefined ? nullOf(call.type) : fallback(row)
  return value?.(rows[other] ?? []) ?? null
}

/** IGNORE NULLS: rows without a value do not count. */
function present(
  call: WindowCall,
  members: readonly number[],
  position: number,
  distance: number,
  read: (row: number) => Value,
): number | undefined {
  if (distance === 0) return members[position]
  const side = call.name === 'lag' ? members.slice(0, position).reverse() : members.slice(position + 1)
  return side.filter((row) => read(row) !== null)[distance - 1]
}

function frameValue(
  call: WindowCall,
  partition: Partition,
  position: number,
  rows: readonly Row[],
  evaluation: Evaluation,
): Value {
  const frame = frameOf(call, partition, position).map((index) => rows[index] ?? [])
  if (call.name === 'first_value' || call.name === 'last_value' || call.name === 'nth_value')
    return pickValue(call, frame, evaluation)
  const { start, add, finish } = aggregation(
    [{ name: call.name, args: call.args, type: aggregateType(call), position: call.position }],
    evaluation,
  )
  const states = start()
  for (const row of frame) add(states, row)
  return castValue(finish(states)[0] ?? null, aggregateType(call), call.type)
}

/** Sums of integers are LONG below and DOUBLE above. */
function aggregateType(call: WindowCall): WindowCall['type'] {
  const integers = ['BYTE', 'SHORT', 'INT', 'LONG'].includes(call.args[0]?.type.name ?? '')
  return call.name === 'sum' && integers ? { name: 'LONG', a: 0, b: 0 } : call.type
}

function pickValue(call: WindowCall, frame: readonly Row[], evaluation: Evaluation): Value {
  const [value, nth] = call.args.map((argument) => compileExpression(argument, evaluation))
  const values = frame.map((row) => value?.(row) ?? null).filter((item) => !call.ignoreNulls || item !== null)
  if (call.name === 'nth_value') return values[Number(nth?.(frame[0] ?? [])) - 1] ?? null
  return (call.name === 'first_value' ? values[0] : values[values.length - 1]) ?? null
}

function frameOf(call: WindowCall, { members, keys }: Partition, position: number): number[] {
  const { unit, lo, hi, exclude } = call.frame
  const own = members[position] ?? 0
  const isPeer = (row: number): boolean => compareKeys(call, keys, own, row) === 0
  const inFrame = (row: number, index: number): boolean => {
    if (unit === 'rows')
      return (lo === null || index >= position + Number(lo)) && (hi === null || index <= position + Number(hi))
    if (unit === 'groups') {
      const distance = groupOf(call, members, keys, index) - groupOf(call, members, keys, position)
      return (lo === null || distance >= Number(lo)) && (hi === null || distance <= Number(hi))
    }
    return rangeBound(call, keys, own, row, lo, 1) && rangeBound(call, keys, own, row, hi, -1)
  }
  return members.filter((row, index) => {
    if (!inFrame(row, index)) return false
    if (exclude === 'current') return row !== own
    if (exclude === 'group') return !isPeer(row)
    return exclude === 'ties' ? row === own || !isPeer(row) : true
  })
}

/** Number of the group of peers that a position is in. */
function groupOf(call: WindowCall, members: readonly number[], keys: Partition['keys'], position: number): number {
  let group = 0
  for (let at = 1; at <= position; at++)
    if (compareKeys(call, keys, members[at - 1] ?? 0, members[at] ?? 0) !== 0) group++
  return group
}

/** RANGE: distance of the one order value from the own row's. */
function rangeBound(
  call: WindowCall,
  keys: Partition['keys'],
  own: number,
  row: number,
  bound: bigint | number | null,
  sign: 1 | -1,
): boolean {
  if (bound === null) return true
  const direction = call.orderBy[0]?.descending === true ? -1 : 1
  const [a, b] = [keys.get(row)?.[0] ?? null, keys.get(own)?.[0] ?? null]
  // NULL is at no distance from other values, but before or after them.
  if (bound === 0n || a === null || b === null) return compareKeys(call, keys, row, own) * sign >= 0
  return (Number(a) - Number(b)) * direction * sign >= Number(bound) * sign
}
