// Helpers to traverse and rewrite bound expressions, and to split a condition at AND or join conditions with AND.

import type { Expression } from '../plan/plan.js'

type Call = Extract<Expression, { kind: 'call' }>

/** Rebuilds an expression. `rewrite` returns a replacement, or undefined to descend into the arguments. */
export function rewriteExpression(
  expression: Expression,
  rewrite: (part: Expression) => Expression | undefined,
): Expression {
  const replaced = rewrite(expression)
  if (replaced !== undefined) return replaced
  if (expression.kind !== 'call') return expression
  const args = expression.args.map((argument) => rewriteExpression(argument, rewrite))
  return args.every((argument, index) => argument === expression.args[index]) ? expression : { ...expression, args }
}

/** Calls `visit` for every sub-expression, outer ones first. */
export function visitExpression(expression: Expression, visit: (part: Expression) => void): void {
  visit(expression)
  if (expression.kind === 'call') for (const argument of expression.args) visitExpression(argument, visit)
}

/** Indexes of the input columns that an expression reads. */
export function columnsOf(expression: Expression): Set<number> {
  const found = new Set<number>()
  visitExpression(expression, (part) => {
    if (part.kind === 'column') found.add(part.index)
  })
  return found
}

export function hasCall(expression: Expression, name: string): boolean {
  let found = false
  visitExpression(expression, (part) => {
    if (part.kind === 'call' && part.name === name) found = true
  })
  return found
}

/** The index that an `$aggregate` or `$window` placeholder refers to. */
export function markIndex(mark: Call): number {
  const [index] = mark.args
  return index?.kind === 'constant' ? Number(index.value) : -1
}

/** Renumbers column references: new index = map(old). */
export function remapColumns(expression: Expression, map: (index: number) => number): Expression {
  return rewriteExpression(expression, (part) =>
    part.kind === 'column' ? { ...part, index: map(part.index) } : undefined,
  )
}

/** The conditions that AND joins, in order. */
export function conjuncts(condition: Expression): Expression[] {
  const found: Expression[] = []
  const waiting = [condition]
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    if (next.kind === 'call' && next.name === 'and') waiting.push(...next.args.toReversed())
    else found.push(next)
  }
  return found
}

/** Joins conditions with AND, the inverse of `conjuncts`; null for none. */
export function allOf(conditions: readonly Expression[]): Expression | null {
  return conditions.length === 0 ? null : joinedBy(conditions, 0, conditions.length)
}

/**
 * Short chains are left-deep, as they are written; long chains become a balanced tree, which limits recursion depth.
 */
function joinedBy(conditions: readonly Expression[], from: number, to: number): Expression {
  const last = conditions[to - 1] as Expression
  if (to - from === 1) return last
  const middle = to - from <= leaningMax ? to - 1 : (from + to) >>> 1
  const args = [joinedBy(conditions, from, middle), joinedBy(conditions, middle, to)]
  return { kind: 'call', name: 'and', args, type: last.type, position: last.position }
}

const leaningMax = 16
