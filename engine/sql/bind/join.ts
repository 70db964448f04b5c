// Binds joins. The ON condition is split at AND: equations between the two sides become join keys, the rest becomes a
// residual filter. Keys that are expressions or need a cast are computed as hidden columns of their side.

import { SqlError } from '../../base/errors.js'
import { dataType } from '../../types/column-types.js'
import { ticksPerUnit } from '../../types/timestamp-floor.js'
import type * as ast from '../ast/ast.js'
import { comparableAsIs } from '../functions/comparisons.js'
import { expressionText } from '../parse/text.js'
import type { Expression, Plan } from '../plan/plan.js'
import type { BindContext } from '../scope/bind-context.js'
import { timestampHint } from '../scope/sample-errors.js'
import type { Relation, ScopeColumn } from '../scope/scope.js'
import { directed, separated } from '../scope/timed-conditions.js'
import { isConstant } from '../typing/make-call.js'
import { commonType, convertCompared, convertTo } from '../typing/types.js'
import { allOf, columnsOf, conjuncts, remapColumns } from '../typing/walk-expression.js'
import { isForeign } from './correlated-conditions.js'
import { bindCondition, bindExpression, comparedRows, type ExpressionScope, rowlessScope } from './expression.js'
import { columnExpression, withExtra } from './order.js'
import { isLateralFunction, lateralJoin } from './set-returning-call.js'
import { bindJoinedSource } from './timed-source.js'

type Join = Extract<Plan, { kind: 'join' }>

/** A join key, as expressions over the columns of either side. */
export interface KeyPair {
  readonly left: Expression
  readonly right: Expression
}

export function bindJoin(before: Relation, join: ast.Join, context: BindContext): Relation {
  if (isLateralFunction(join.source)) return lateralJoin(before, join, join.source, context)
  const right = bindJoinedSource(join.source, join, context)
  checkAlias(before, right, join)
  const { left, known } = withSubqueries(before, join, context)
  const timed = join.kind === 'asof' || join.kind === 'lt' || join.kind === 'splice'
  if (timed && left.timestampIndex < 0)
    throw new SqlError('left side of time series join has no timestamp', join.position, timestampHint)
  if (timed && right.timestampIndex < 0)
    throw new SqlError('right side of time series join has no timestamp', join.position, timestampHint)
  const width = left.plan.columns.length
  const { pairs, rest } = joinCondition(left, right, join, width, context, known)
  if (!timed) return assemble(left, right, join, { pairs, rest })
  const tolerance = toleranceOf(join, left, context)
  const keys = keysBesideTime(left, right, join, pairs)
  if (join.kind === 'splice') return assemble(left, right, join, { pairs: keys, rest })
  const { kind, direction, conditions } = directed(join, left, right, rest)
  const sides = separated(right, width, conditions)
  const condition = { pairs: [...keys, ...sides.pairs], rest: sides.rest }
  return assemble(left, sides.right, { ...join, kind }, condition, { tolerance, ...direction })
}

/** `on a.ts = b.ts` of ASOF and LT JOIN repeats the comparison of the timestamps and is not a key. */
function keysBesideTime(left: Relation, right: Relation, join: ast.Join, pairs: KeyPair[]): KeyPair[] {
  const isTime = (side: Expression, { timestampIndex }: Relation): boolean =>
    side.kind === 'column' && side.index === timestampIndex
  if (join.kind === 'splice' || !pairs.some((pair) => isTime(pair.left, left) && isTime(pair.right, right)))
    return pairs
  if (pairs.length > 1) throw new SqlError('ASOF/LT JOIN cannot use designated timestamp as a join key', join.position)
  return []
}

/** Throws: SPLICE JOIN matches by equal keys and time, and supports no other conditions. */
function refuseInSplice({ kind }: ast.Join, part: ast.Expression): void {
  if (kind !== 'splice') return
  throw new SqlError(`unsupported SPLICE join expression [expr='${expressionText(part)}']`, part.position)
}

export function checkAlias(left: Relation, right: Relation, { source }: ast.Join): void {
  const name = right.columns[0]?.source
  if (name === null || name === undefined) return
  if (!left.columns.some((column) => column.source?.toLowerCase() === name.toLowerCase())) return
  throw new SqlError(`Duplicate table or alias: ${name}`, source.alias?.position ?? source.position)
}

/** The scope of both sides. Indexes of the right side's columns start at `width`. */
export function bothScopes(left: Relation, right: Relation, width: number): ScopeColumn[] {
  return [...left.columns, ...right.columns.map((column) => ({ ...column, index: column.index + width }))]
}

/** The scope with USING: its columns come first, once. FULL JOIN keeps those of both sides. */
function mergedScopes(left: Relation, right: Relation, join: ast.Join, width: number): readonly ScopeColumn[] {
  const columns = bothScopes(left, right, width)
  if (join.kind === 'full') return columns
  const names = usingNames(left, right, join).map(({ name }) => name.toLowerCase())
  const wanted = new Set(names)
  const [first, second] = [columns.slice(0, left.columns.length), columns.slice(left.columns.length)]
  const [retained, other] = join.kind === 'right' ? [second, first] : [first, second]
  const isNamed = ({ name, merged }: ScopeColumn): boolean => merged !== true && wanted.has(name.toLowerCase())
  // From the right, so that the first of several columns with one name remains.
  const firsts = new Map(
    retained
      .filter(isNamed)
      .toReversed()
      .map((column) => [column.name.toLowerCase(), column]),
  )
  const keys = names.flatMap((name) => firsts.get(name) ?? [])
  const taken = new Set(keys)
  const others = new Set(other)
  const rest = columns
    .filter((column) => !taken.has(column))
    .map((column) => (others.has(column) && isNamed(column) ? { ...column, merged: true as const } : column))
  return [...keys, ...rest]
}

/** Key pairs of USING and ON, and the other conditions of ON. */
export function joinCondition(
  left: Relation,
  right: Relation,
  join: ast.Join,
  width: number,
  context: BindContext,
  known: KnownSides = new Map(),
): { readonly pairs: KeyPair[]; readonly rest: Expression[] } {
  const pairs = usingNames(left, right, join).map((name) => usingPair(left, right, name))
  const rest: Expression[] = []
  if (join.on === null) return { pairs, rest }
  const scope: ExpressionScope = { context, columns: bothScopes(left, right, width), aggregates: null, windows: null }
  for (const part of writtenConjuncts(join.on)) {
    const pair = equalityPair(part, scope, width, known)
    if (pair !== null) pairs.push(pair)
    else {
      rest.push(...conjuncts(bindCondition(part, scope)))
      refuseInSplice(join, part)
    }
  }
  return { pairs, rest }
}

/** Sides of ON equations that are bound already, as columns of the left side. */
type KnownSides = ReadonlyMap<ast.Expression, Expression>
type Sides = [Expression, Expression]

/** `on r.id = (select .. where s.x = l.x)`: the value of the sub-query becomes a column of the left side. */
function withSubqueries(
  before: Relation,
  { on }: ast.Join,
  context: BindContext,
): { readonly left: Relation; readonly known: KnownSides } {
  const known = new Map<ast.Expression, Expression>()
  const rows = { relation: before }
  const scope = { context, columns: before.columns, aggregates: null, windows: null, rows }
  for (const part of on === null ? [] : writtenConjuncts(on)) {
    if (part.kind !== 'binary' || part.operator !== '=') continue
    for (const side of [part.left, part.right])
      if (side.kind === 'subquery' && isForeign(side, [], scope)) known.set(side, bindExpression(side, scope))
  }
  return { left: rows.relation, known }
}

function writtenConjuncts(condition: ast.Expression): ast.Expression[] {
  const pairs = condition.kind === 'binary' ? comparedRows(condition) : null
  if (pairs !== null) return writtenConjuncts(pairs)
  if (condition.kind !== 'binary' || condition.operator !== 'and') return [condition]
  return [...writtenConjuncts(condition.left), ...writtenConjuncts(condition.right)]
}

function usingNames(left: Relation, right: Relation, join: ast.Join): readonly ast.Name[] {
  if (!join.natural) return join.using
  const names = new Set(left.columns.map(({ name }) => name.toLowerCase()))
  return right.columns
    .filter(({ name }) => names.has(name.toLowerCase()))
    .map(({ name }) => ({ name, position: join.position, quoted: true }))
}

function usingPair(left: Relation, right: Relation, name: ast.Name): KeyPair {
  const side = ({ columns }: Relation): Expression => {
    const column = columns.find((candidate) => candidate.name.toLowerCase() === name.name.toLowerCase())
    if (column !== undefined) return { kind: 'column', index: column.index, type: column.type, position: name.position }
    const source = columns[0]?.source
    throw SqlError.columnMissing(
      source === null || source === undefined ? name.name : `${source}.${name.name}`,
      name.position,
    )
  }
  return alignPair(side(left), side(right))
}

/** The sides of `a = b` if each belongs to one input; null for anything else. */
function equalityPair(
  part: ast.Expression,
  scope: ExpressionScope,
  width: number,
  known: KnownSides = new Map(),
): KeyPair | null {
  if (part.kind !== 'binary' || part.operator !== '=') return null
  const [a, b] = [part.left, part.right].map((side) => known.get(side) ?? bindExpression(side, scope)) as Sides
  const [sideA, sideB] = [sideOf(a, width), sideOf(b, width)]
  if (sideA === null || sideB === null || sideA === sideB) return null
  const own = (expression: Expression): Expression =>
    remapColumns(expression, (index) => (index >= width ? index - width : index))
  return sideA === 'left' ? alignPair(own(a), own(b)) : alignPair(own(b), own(a))
}

function sideOf(expression: Expression, width: number): 'left' | 'right' | null {
  const columns = [...columnsOf(expression)]
  if (columns.length === 0) return null
  if (columns.every((index) => index < width)) return 'left'
  return columns.every((index) => index >= width) ? 'right' : null
}

function alignPair(left: Expression, right: Expression): KeyPair {
  if (comparableAsIs(left.type, right.type)) return { left, right }
  const type = commonType(left.type, right.type)
  if (type === null) throw new SqlError('join column type mismatch', right.position)
  return { left: convertCompared(left, type), right: convertCompared(right, type) }
}

function toleranceOf({ tolerance, position }: ast.Join, left: Relation, context: BindContext): bigint | null {
  if (tolerance === null) return null
  const unit = left.plan.columns[left.timestampIndex]?.type.name === 'TIMESTAMP_NS' ? 'TIMESTAMP_NS' : 'TIMESTAMP'
  const count = convertTo(bindExpression(tolerance.count, rowlessScope(context)), dataType('LONG'))
  const ticks = tolerance.unit === null ? null : ticksPerUnit(tolerance.unit, unit)
  if (ticks === null || !isConstant(count) || typeof count.value !== 'bigint' || count.value < 0n) {
    throw new SqlError(`unsupported TOLERANCE unit [unit=${tolerance.unit}]`, tolerance.position ?? position)
  }
  return count.value * ticks
}

/**
 * A left join by a condition, for sub-queries. Without a condition every row of the left matches every row of the
 * right.
 */
export function leftJoin(
  left: Relation,
  right: Relation,
  on: ast.Expression | null,
  context: BindContext,
): { readonly plan: Plan; readonly columns: readonly ScopeColumn[]; readonly rightStart: number } {
  const width = left.plan.columns.length
  const scope: ExpressionScope = { context, columns: bothScopes(left, right, width), aggregates: null, windows: null }
  const pairs: KeyPair[] = []
  const rest: Expression[] = []
  for (const part of on === null ? [] : writtenConjuncts(on)) {
    const pair = equalityPair(part, scope, width)
    if (pair === null) rest.push(...conjuncts(bindCondition(part, scope)))
    else pairs.push(pair)
  }
  const leftSide = withKeys(
    left,
    pairs.map((pair) => pair.left),
  )
  const rightSide = withKeys(
    right,
    pairs.map((pair) => pair.right),
  )
  const shift = leftSide.relation.plan.columns.length
  const moved = rest.map((condition) =>
    remapColumns(condition, (index) => (index >= width ? index - width + shift : index)),
  )
  const plan: Join = {
    kind: 'join',
    columns: [...leftSide.relation.plan.columns, ...rightSide.relation.plan.columns],
    join: 'left',
    left: leftSide.relation.plan,
    right: rightSide.relation.plan,
    leftKeys: leftSide.indexes,
    rightKeys: rightSide.indexes,
    residual: allOf(moved),
    leftTimestamp: left.timestampIndex,
    rightTimestamp: -1,
    tolerance: null,
  }
  return { plan, columns: bothScopes(left, right, shift), rightStart: shift }
}

/** A left join with a relation whose leading columns equal the keys, for sub-queries. Its columns come last. */
export function joinOn(
  left: Relation,
  right: Relation,
  keys: readonly Expression[],
  rightKeys: readonly number[],
): Relation {
  const pairs = keys.map((key, index): KeyPair => {
    const column = rightKeys[index] ?? 0
    const type = right.plan.columns[column]?.type ?? key.type
    return alignPair(key, { kind: 'column', index: column, type, position: key.position })
  })
  const leftSide = withKeys(
    left,
    pairs.map((pair) => pair.left),
  )
  const rightSide = withKeys(
    right,
    pairs.map((pair) => pair.right),
  )
  // The value of the sub-query stays the last column.
  const width = right.plan.columns.length
  const rightPlan = rightSide.relation.plan
  const order = [...rightPlan.columns.keys()].filter((index) => index !== width - 1).concat(width - 1)
  const arranged: Plan = {
    kind: 'project',
    columns: order.map((index) => rightPlan.columns[index] as (typeof rightPlan.columns)[number]),
    input: rightPlan,
    expressions: order.map((index) =>
      columnExpression(rightPlan.columns[index] as (typeof rightPlan.columns)[number], index),
    ),
  }
  const plan: Join = {
    kind: 'join',
    columns: [...leftSide.relation.plan.columns, ...arranged.columns],
    join: 'left',
    left: leftSide.relation.plan,
    right: arranged,
    leftKeys: leftSide.indexes,
    rightKeys: rightSide.indexes.map((index) => order.indexOf(index)),
    residual: null,
    leftTimestamp: left.timestampIndex,
    rightTimestamp: -1,
    tolerance: null,
  }
  return { ...left, plan }
}

// Putting it together -----------------------------------------------------------------------------------------------

/** Appends key expressions that are not plain columns to the side's columns. */
export function withKeys(
  relation: Relation,
  keys: readonly Expression[],
): { readonly relation: Relation; readonly indexes: number[] } {
  const width = relation.plan.columns.length
  const extra: Expression[] = []
  const indexes = keys.map((key) => (key.kind === 'column' ? key.index : width + extra.push(key) - 1))
  return { relation: withExtra(relation, extra), indexes }
}

function assemble(
  left: Relation,
  right: Relation,
  join: ast.Join,
  { pairs, rest }: { readonly pairs: readonly KeyPair[]; readonly rest: readonly Expression[] },
  timed: Pick<Join, 'tolerance' | 'direction'> = { tolerance: null },
): Relation {
  const leftSide = withKeys(
    left,
    pairs.map((pair) => pair.left),
  )
  const rightSide = withKeys(
    right,
    pairs.map((pair) => pair.right),
  )
  const width = left.plan.columns.length
  const shift = leftSide.relation.plan.columns.length
  const residual = rest.map((condition) =>
    remapColumns(condition, (index) => (index >= width ? index - width + shift : index)),
  )
  const plan: Join = {
    kind: 'join',
    columns: [...leftSide.relation.plan.columns, ...rightSide.relation.plan.columns],
    join: joinKind(join, pairs, rest),
    left: leftSide.relation.plan,
    right: rightSide.relation.plan,
    leftKeys: leftSide.indexes,
    rightKeys: rightSide.indexes,
    residual: allOf(residual),
    leftTimestamp: left.timestampIndex,
    rightTimestamp: right.timestampIndex,
    ...timed,
  }
  const keepsTime = join.kind !== 'right' && join.kind !== 'full' && join.kind !== 'splice'
  return {
    plan,
    columns: join.merges ? mergedScopes(left, right, join, shift) : bothScopes(left, right, shift),
    timestampIndex: keepsTime ? left.timestampIndex : -1,
    order: keepsTime ? left.order : 'none',
  }
}

function joinKind({ kind }: ast.Join, pairs: readonly KeyPair[], rest: readonly Expression[]): Join['join'] {
  if (kind === 'inner' && pairs.length === 0 && rest.length === 0) return 'cross'
  if (kind === 'cross' && (pairs.length > 0 || rest.length > 0)) return 'inner'
  return kind === 'window' || kind === 'horizon' ? 'inner' : kind
}
