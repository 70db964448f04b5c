// Helpers to traverse plans: the inputs and expressions of a node, a node with other inputs, the number of sources, all
// nodes of a query, and expressions with column references replaced.

import { rewriteExpression } from '../typing/walk-expression.js'
import type { Expression, Plan, Query } from './plan.js'

/** Rebuilds a node with new inputs; returns the node itself if they are unchanged. */
export function mapInputs(plan: Plan, map: (input: Plan) => Plan): Plan {
  switch (plan.kind) {
    case 'scan':
    case 'foreign':
    case 'values':
    case 'sequence':
    case 'working':
      return plan
    case 'recursive':
    case 'set':
    case 'join': {
      const [left, right] = [map(plan.left), map(plan.right)]
      return left === plan.left && right === plan.right ? plan : { ...plan, left, right }
    }
    default: {
      const input = map(plan.input)
      return input === plan.input ? plan : { ...plan, input }
    }
  }
}

export function inputsOf(plan: Plan): readonly Plan[] {
  switch (plan.kind) {
    case 'scan':
    case 'foreign':
    case 'values':
    case 'sequence':
    case 'working':
      return []
    case 'recursive':
    case 'set':
    case 'join':
      return [plan.left, plan.right]
    default:
      return [plan.input]
  }
}

/** The expressions that a node evaluates for each row. */
export function expressionsOf(plan: Plan): readonly Expression[] {
  switch (plan.kind) {
    case 'scan':
      return plan.filter === null ? [] : [plan.filter]
    case 'filter':
      return [plan.predicate]
    case 'project':
      return plan.expressions
    case 'expand':
      return [plan.count]
    case 'join':
      return plan.residual === null ? [] : [plan.residual]
    case 'aggregate':
    case 'sample':
      return [...plan.keys, ...plan.aggregates.flatMap(({ args }) => args)]
    case 'window':
      return plan.calls.flatMap(({ args, partitionBy, orderBy }) => [
        ...args,
        ...partitionBy,
        ...orderBy.map(({ expression }) => expression),
      ])
    default:
      return []
  }
}

/** Number of sources that a plan reads, each counted as often as it occurs. */
export function sourcesOf(plan: Plan): number {
  const inputs = inputsOf(plan)
  return inputs.length === 0 ? 1 : inputs.reduce((sum, input) => sum + sourcesOf(input), 0)
}

/** Replaces column references by the expressions that compute the columns. */
export function substitute(expression: Expression, made: readonly Expression[]): Expression {
  return rewriteExpression(expression, (part) => (part.kind === 'column' ? made[part.index] : undefined))
}

/**
 * All nodes of a query, each before its inputs, sub-queries last. The position in this list identifies a node in
 * statistics.
 */
export function plansOf({ plan, subqueries }: Query): Plan[] {
  const below = (node: Plan): Plan[] => [node, ...inputsOf(node).flatMap(below)]
  return [plan, ...subqueries.map((subquery) => subquery.plan)].flatMap(below)
}
