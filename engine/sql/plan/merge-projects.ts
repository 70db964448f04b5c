// Planner rule: merges a projection over a projection, and removes projections that change nothing.

import { sameType } from '../../types/column-types.js'
import { visitExpression } from '../typing/walk-expression.js'
import type { Expression, Plan } from './plan.js'
import { isStable } from './volatile.js'
import { mapInputs, substitute } from './walk-plan.js'

type Project = Extract<Plan, { kind: 'project' }>

export function mergeProjects(plan: Plan): Plan {
  const below = mapInputs(plan, mergeProjects)
  if (below.kind !== 'project') return below
  const { input } = below
  if (isIdentity(below)) return input
  if (input.kind !== 'project' || !mayInline(below.expressions, input)) return below
  return mergeProjects({
    ...below,
    input: input.input,
    expressions: below.expressions.map((expression) => substitute(expression, input.expressions)),
  })
}

function isIdentity({ columns, expressions, input }: Project): boolean {
  if (columns.length !== input.columns.length) return false
  return expressions.every((expression, index) => {
    const source = input.columns[index]
    return (
      expression.kind === 'column' &&
      expression.index === index &&
      source?.name === columns[index]?.name &&
      sameType(source?.type ?? expression.type, expression.type)
    )
  })
}

/** Whether inlining computes nothing twice: an expression other than a column may be read only once. */
function mayInline(outer: readonly Expression[], inner: Project): boolean {
  const reads = new Array<number>(inner.expressions.length).fill(0)
  for (const expression of outer) {
    visitExpression(expression, (part) => {
      if (part.kind === 'column') reads[part.index] = (reads[part.index] ?? 0) + 1
    })
  }
  return inner.expressions.every((made, index) => {
    if (made.kind === 'column' || made.kind === 'constant') return true
    return isStable(made) && (reads[index] ?? 0) === 1
  })
}
