// Extracts from a filter the conditions that compare a column with constants, by which scans skip pages, row groups and
// files.

import type { Bound, ColumnCondition } from '../../types/bounds.js'
import type { ColumnType } from '../../types/column-types.js'
import type { Value } from '../../types/value.js'
import type { Expression } from './plan.js'

/** A comparison of a column, which is the index of its input's column, with constants of any type. */
export interface ConstantComparison {
  readonly column: Extract<Expression, { kind: 'column' }>
  readonly name: string
  readonly values: readonly Value[]
}

/**
 * Types whose bounds compare like their values. FLOAT is not among them, because constants are rounded in comparisons
 * with it.
 */
const ordered: ReadonlySet<ColumnType> = new Set<ColumnType>([
  ...(['BYTE', 'SHORT', 'INT', 'LONG', 'DOUBLE', 'DATE', 'TIMESTAMP', 'TIMESTAMP_NS'] as const),
])

const mirrored: Readonly<Record<string, string>> = { '=': '=', '<': '>', '>': '<', '<=': '>=', '>=': '<=' }

/** Null: the condition is no such comparison. */
export function constantComparison(condition: Expression): ConstantComparison | null {
  if (condition.kind !== 'call') return null
  const { name, args } = condition
  const [first, second] = args
  if (first === undefined || second === undefined) return null
  if (first.kind === 'column' && second.kind === 'constants')
    return { column: first, name: 'in', values: second.values }
  if (first.kind === 'column') return withConstants(name, first, args.slice(1))
  const turned = mirrored[name]
  return second.kind === 'column' && turned !== undefined ? withConstants(turned, second, [first]) : null
}

function withConstants(
  name: string,
  column: ConstantComparison['column'],
  args: readonly Expression[],
): ConstantComparison | null {
  const values = args.flatMap((argument) => (argument.kind === 'constant' ? [argument.value] : []))
  return values.length === args.length ? { column, name, values } : null
}

/** The constants of a comparison whose column has bounds; null: it has none, or a constant is NULL. */
export function orderedBounds({ column, values }: ConstantComparison): readonly Bound[] | null {
  if (!ordered.has(column.type.name)) return null
  const bounds = values.flatMap((value) => boundOf(value) ?? [])
  return bounds.length === values.length && bounds.length > 0 ? bounds : null
}

function boundOf(value: Value): Bound | undefined {
  return typeof value === 'bigint' || (typeof value === 'number' && !Number.isNaN(value)) ? value : undefined
}

/** The comparison as files of other programs are skipped by; null: by none. */
export function fileCondition(condition: Expression): ColumnCondition | null {
  const comparison = constantComparison(condition)
  if (comparison === null) return null
  const { column, name, values } = comparison
  const bounds = column.type.name === 'VARCHAR' ? textsOf(values) : orderedBounds(comparison)
  return bounds === null ? null : { column: column.index, name, values: bounds }
}

function textsOf(values: readonly Value[]): Uint8Array[] | null {
  const texts = values.flatMap((value) => (typeof value === 'string' ? [Buffer.from(value)] : []))
  return texts.length === values.length && texts.length > 0 ? texts : null
}
