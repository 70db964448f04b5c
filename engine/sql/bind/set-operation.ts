// Binds UNION, EXCEPT, INTERSECT and VALUES. Columns of the branches are cast to common types.

import { nonNull } from '../../base/assert.js'
import { SqlError } from '../../base/errors.js'
import { type DataType, dataType, sameType } from '../../types/column-types.js'
import { isIntOrLong, isTime, nullOf } from '../../types/convert.js'
import type * as ast from '../ast/ast.js'
import type { Dialect } from '../dialect.js'
import type { Expression, Plan, PlanColumn } from '../plan/plan.js'
import { type BindContext, nested } from '../scope/bind-context.js'
import type { Relation } from '../scope/scope.js'
import { unionOf } from '../scope/union-tree.js'
import { charactersAsStrings } from '../typing/characters.js'
import { besideDecimals, exactNumber } from '../typing/exact-numbers.js'
import { isConstant } from '../typing/make-call.js'
import { castTo, constantOf, convertTo, isFiner, unify, unionType } from '../typing/types.js'
import { bindExpression, rowlessScope } from './expression.js'
import { bindBody, plainRelation } from './query.js'

export function bindSetOperation(written: ast.SetOperation, context: BindContext): Relation {
  const chain = unionChain(written)
  if (chain !== null) return bindUnions(written, chain.first, chain.more, context)
  const { operation, all, left, right } = written
  const retained = bindBody(left, context)
  const bound = exactBranches([retained.plan, bindBody(right, context).plan], context.dialect)
  const [a, b] = [nonNull(bound[0]), nonNull(bound[1])]
  checkBranches(a, b, left.position, right.position)
  const columns = unitedColumns(a, b, operation === 'union')
  const [first, second] = [castColumns(a, columns), castColumns(b, columns)]
  const relation = plainRelation({ kind: 'set', columns, operation, all, left: first, right: second })
  if (operation === 'union' || first !== a) return relation
  // The rows keep the order of the left side.
  return { ...relation, timestampIndex: retained.timestampIndex, order: retained.order }
}

/** Throws unless both sides have the same number of columns, and no timestamp meets a number. */
export function checkBranches(left: Plan, right: Plan, leftPosition: number, rightPosition: number): void {
  if (left.columns.length !== right.columns.length)
    throw new SqlError('queries have different number of columns', rightPosition)
  for (const [index, a] of left.columns.entries()) {
    const b = right.columns[index] as PlanColumn
    if (isTime(a.type) && isIntOrLong(b.type)) throw timeExpected(b, a, rightPosition)
    if (isTime(b.type) && isIntOrLong(a.type)) throw timeExpected(a, b, leftPosition)
  }
}

function timeExpected({ name, type }: PlanColumn, wanted: PlanColumn, position: number): SqlError {
  return new SqlError(`unsupported cast [column=${name}, from=${type.name}, to=${wanted.type.name}]`, position)
}

type Branch = Pick<ast.SetOperation, 'right' | 'position'>

/** The branches of `a union b union c ..`, if all have ALL or none has; null for anything else. */
function unionChain(written: ast.SetOperation): { readonly first: ast.QueryBody; readonly more: Branch[] } | null {
  const more: Branch[] = []
  let first: ast.QueryBody = written
  while (first.kind === 'set operation' && first.operation === 'union' && first.all === written.all) {
    more.push(first)
    first = first.left
  }
  return more.length > 1 ? { first, more: more.reverse() } : null
}

/** Types are determined from left to right, as if each union stood alone. The plan is a balanced tree. */
function bindUnions({ all }: ast.SetOperation, first: ast.QueryBody, more: Branch[], context: BindContext): Relation {
  const written = [
    bindBody(first, context).plan,
    ...more.map(({ right, position }) => nested(context, position, () => bindBody(right, context).plan)),
  ]
  const bound = exactBranches(written, context.dialect)
  const plans = bound.slice(0, 1)
  let united: Plan = plans[0] as Plan
  for (const [index, { right }] of more.entries()) {
    const plan = nonNull(bound[index + 1])
    checkBranches(united, plan, first.position, right.position)
    const columns = unitedColumns(united, plan, true)
    const isKnown = united.columns.every(({ type }, index) => sameType(type, columns[index]?.type ?? type))
    if (!isKnown) plans.forEach((before, index) => plans.splice(index, 1, castColumns(before, columns)))
    plans.push(castColumns(plan, columns))
    united = { kind: 'values', columns, rows: [] }
  }
  const tree = unionOf(plans, united.columns)
  return plainRelation(tree.kind === 'set' ? { ...tree, all } : tree)
}

/** Number literals become DECIMALs where another branch has a DECIMAL, if the dialect has exact literals. */
function exactBranches(plans: readonly Plan[], dialect: Dialect): readonly Plan[] {
  const isDecimal = (index: number): boolean => plans.some(({ columns }) => columns[index]?.type.name === 'DECIMAL')
  if (!dialect.exactNumbers) return plans
  return plans.map((plan) => {
    if (plan.kind !== 'project') return plan
    const expressions = plan.expressions.map((made, index) => (isDecimal(index) ? exactNumber(made, dialect) : made))
    const isSame = (index: number): boolean => expressions[index] === plan.expressions[index]
    const columns = plan.columns.map((column, index) =>
      isSame(index) ? column : { ...column, type: expressions[index]?.type ?? column.type },
    )
    return { ...plan, expressions, columns }
  })
}

/**
 * Output columns: names of the left side, common types. Symbols remain symbols only if the rows of one side pass
 * unchanged.
 */
export function unitedColumns(left: Plan, right: Plan, isUnion: boolean): PlanColumn[] {
  const types = left.columns.map((_, index) => typeOf(left, right, index))
  const isChanged =
    isUnion || left.columns.some(({ type }, index) => !sameType(type, right.columns[index]?.type ?? type))
  return left.columns.map(({ name }, index) => {
    const type = types[index] ?? dataType('STRING')
    return { name, type: isChanged && type.name === 'SYMBOL' ? dataType('STRING') : type }
  })
}

/** A column that contains only NULL takes the other side's type. */
function typeOf(left: Plan, right: Plan, index: number): PlanColumn['type'] {
  const [a, b] = [left.columns[index], right.columns[index]]
  if (a === undefined || b === undefined) throw new SqlError('queries have different number of columns', 0)
  if (isNullColumn(left, index)) return besideNull(b.type)
  if (isNullColumn(right, index)) return besideNull(a.type)
  return unionType(a.type, b.type)
}

/** A NULL of CHAR would read as the empty character. */
function besideNull(type: DataType): DataType {
  return type.name === 'CHAR' ? dataType('STRING') : type
}

function isNullColumn(plan: Plan, index: number): boolean {
  if (plan.kind !== 'project') return false
  const expression = plan.expressions[index]
  return expression?.kind === 'constant' && expression.value === null && expression.type.name === 'STRING'
}

export function castColumns(plan: Plan, columns: readonly PlanColumn[]): Plan {
  if (plan.columns.every((column, index) => sameType(column.type, columns[index]?.type ?? column.type))) return plan
  const expressions = plan.columns.map(({ type }, index): Expression => {
    const column: Expression = { kind: 'column', index, type, position: 0 }
    const target = columns[index]?.type ?? type
    if (isNullColumn(plan, index)) return constantOf(nullOf(target), target, 0)
    if (sameType(type, target)) return column
    return isFiner(target, type) ? convertTo(column, target) : castTo(column, target)
  })
  return { kind: 'project', columns, input: plan, expressions }
}

export function bindValues({ rows, position }: ast.Values, context: BindContext): Relation {
  const scope = rowlessScope(context)
  const bound = rows.map(({ values }) => values.map((value) => bindExpression(value, scope)))
  const width = bound[0]?.length ?? 0
  if (bound.some((row) => row.length !== width))
    throw new SqlError('VALUES lists must all be the same length', position)
  const listed = Array.from({ length: width }, (_, index) =>
    besideDecimals(
      bound.map((row) => row[index] as Expression),
      context.dialect,
    ),
  )
  const columns = listed.map((values, index): PlanColumn => {
    const written = rows.map(({ values }) => values[index])
    const type = unify(charactersAsStrings(written, values), '')
    return { name: `column${index + 1}`, type }
  })
  const values = bound.map((row, place) =>
    row.map((given, index) => {
      const value = listed[index]?.[place] ?? given
      const converted = convertTo(value, columns[index]?.type ?? value.type)
      if (!isConstant(converted)) throw new SqlError('VALUES takes constants', value.position)
      return converted.value
    }),
  )
  return plainRelation({ kind: 'values', columns, rows: values })
}
