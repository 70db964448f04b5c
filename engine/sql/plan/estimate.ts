// Estimates how many rows each node of a plan returns, for the output of EXPLAIN. Estimates for scans use statistics of
// the partitions that their time ranges overlap. Estimates for filters and other nodes are rules of thumb, which use
// the number of distinct values of symbol columns. For a plan that reads a whole table, also gives the exact row count.

import type { PartitionStatistics, TableStatistics } from '../catalog.js'
import { conjuncts } from '../typing/walk-expression.js'
import type { Expression, Plan, TimeRange } from './plan.js'
import { inputsOf } from './walk-plan.js'

type Scan = Extract<Plan, { kind: 'scan' }>

export interface ScanEstimate {
  readonly rows: number
  readonly partitions: number
  readonly partitionsInAll: number
}

export class Estimates {
  readonly #statistics: (table: number) => TableStatistics
  readonly #rows = new Map<Plan, number>()

  constructor(statistics: (table: number) => TableStatistics) {
    this.#statistics = statistics
  }

  rows(plan: Plan): number {
    const known = this.#rows.get(plan)
    if (known !== undefined) return known
    const rows = Math.round(this.#estimate(plan))
    this.#rows.set(plan, rows)
    return rows
  }

  scan({ table, ranges }: Scan): ScanEstimate {
    const { partitions, rows } = this.#statistics(table)
    const touched = ranges === null ? partitions : partitions.filter((partition) => share(partition, ranges) > 0)
    const within =
      ranges === null ? rows : touched.reduce((sum, partition) => sum + partition.rows * share(partition, ranges), 0)
    return { rows: Math.round(within), partitions: touched.length, partitionsInAll: partitions.length }
  }

  #estimate(plan: Plan): number {
    const [first = 0, second = 0] = inputsOf(plan).map((input) => this.rows(input))
    switch (plan.kind) {
      case 'scan':
        return this.scan(plan).rows * (plan.filter === null ? 1 : this.#selectivity(plan.filter, plan))
      case 'foreign':
        return plan.rows
      case 'values':
        return plan.rows.length
      case 'sequence':
        return Number(plan.count)
      case 'filter':
        return first * this.#selectivity(plan.predicate, plan.input)
      case 'aggregate':
        return plan.keys.length === 0 ? 1 : Math.min(first, this.#groups(plan.keys, plan.input, first))
      case 'sample':
        return Math.min(first, Math.max(1, first / 10) * this.#groups(plan.keys, plan.input, 1))
      case 'latest':
        return Math.min(first, this.#groups(plan.keys.map(columnAt(plan.input)), plan.input, first))
      case 'sort':
        return plan.limit === null ? first : Math.min(first, plan.limit)
      case 'limit':
        return limited(first, plan.lo, plan.hi)
      case 'distinct':
        return Math.min(
          first,
          this.#groups(
            plan.columns.map((_, index) => columnAt(plan.input)(index)),
            plan.input,
            first,
          ),
        )
      case 'set':
        return plan.operation === 'union' ? first + second : first / 2
      case 'recursive':
        return first + second * 10
      case 'working':
        return 1
      case 'join':
        return joined(plan, first, second)
      case 'project':
      case 'window':
        return first
      case 'expand':
        return first * 3
    }
  }

  #selectivity(predicate: Expression, input: Plan): number {
    return conjuncts(predicate).reduce((part, condition) => part * this.#chance(condition, input), 1)
  }

  #chance(condition: Expression, input: Plan): number {
    if (condition.kind !== 'call') return condition.kind === 'constant' && condition.value === true ? 1 : 0.5
    if (condition.name === 'not') return 1 - this.#selectivity(condition.args[0] as Expression, input)
    if (condition.name === '=') return 1 / Math.max(1, this.#distinct(condition.args, input))
    const members = membersOf(condition)
    if (members > 0) return Math.min(1, members / Math.max(1, this.#distinct(condition.args, input)))
    if (condition.name === 'or')
      return Math.min(
        1,
        condition.args.reduce((sum, part) => sum + this.#chance(part, input), 0),
      )
    return condition.name === '<>' ? 0.9 : 1 / 3
  }

  /** Number of distinct values of the operands: the dictionary size of a symbol column, 20 if unknown. */
  #distinct(operands: readonly Expression[], input: Plan): number {
    const counts = operands.map((operand) => this.#symbols(operand, input)).filter((count) => count > 0)
    return counts.length === 0 ? 20 : Math.min(...counts)
  }

  #groups(keys: readonly Expression[], input: Plan, rows: number): number {
    return keys.reduce((product, key) => product * (this.#symbols(key, input) || Math.max(1, Math.sqrt(rows))), 1)
  }

  /** Dictionary size of a table's symbol column; 0 for any other expression. */
  #symbols(expression: Expression, input: Plan): number {
    if (expression.kind !== 'column' || expression.type.name !== 'SYMBOL') return 0
    if (input.kind === 'scan')
      return this.#statistics(input.table).symbolCounts.get(input.columnIds[expression.index] ?? -1) ?? 0
    if (input.kind === 'filter' || input.kind === 'sort' || input.kind === 'window')
      return this.#symbols(expression, input.input)
    const made = input.kind === 'project' ? input.expressions[expression.index] : undefined
    return made === undefined || input.kind !== 'project' ? 0 : this.#symbols(made, input.input)
  }
}

function columnAt(input: Plan): (index: number) => Expression {
  return (index) => ({
    kind: 'column',
    index,
    type: input.columns[index]?.type ?? { name: 'LONG', a: 0, b: 0 },
    position: 0,
  })
}

/** Fraction of a partition's rows within the ranges, assuming that they are spread evenly. */
function share({ minTs, maxTs }: PartitionStatistics, ranges: readonly TimeRange[]): number {
  if (minTs === null || maxTs === null) return 1
  const length = Number(maxTs - minTs) + 1
  const inside = ranges.reduce((sum, { lo, hi }) => {
    const [from, to] = [lo > minTs ? lo : minTs, hi < maxTs ? hi : maxTs]
    return to < from ? sum : sum + Number(to - from) + 1
  }, 0)
  return Math.min(1, inside / length)
}

function limited(rows: number, lo: number, hi: number | null): number {
  const place = (bound: number): number => Math.max(0, Math.min(rows, bound < 0 ? rows + bound : bound))
  return Math.max(0, place(hi ?? rows) - place(lo))
}

function joined(plan: Extract<Plan, { kind: 'join' }>, left: number, right: number): number {
  if (plan.join === 'asof' || plan.join === 'lt') return left
  if (plan.join === 'splice' || plan.join === 'full') return left + right
  if (plan.leftKeys.length === 0) return left * right * (plan.residual === null ? 1 : 1 / 3)
  return Math.max(left, right)
}

/** Row count of a plan that reads a whole table, which is certain rather than estimated. 0 for other plans. */
export function certainRows(plan: Plan, statistics: (table: number) => TableStatistics): number {
  if (plan.kind === 'project') return certainRows(plan.input, statistics)
  return plan.kind === 'scan' && plan.filter === null && plan.ranges === null ? statistics(plan.table).rows : 0
}

/** Number of constants in the list of an IN; 0 for other calls. */
function membersOf({ name, args }: Extract<Expression, { kind: 'call' }>): number {
  const list = args[1]
  if (name === 'in') return args.length - 1
  return name === 'in_list' && list?.kind === 'constants' ? list.values.length : 0
}
