// Pushes NOT down to the comparisons of a WHERE condition: `not (x > 5)` becomes `x <= 5`, AND and OR swap, ANY and ALL
// swap. A row with a NULL operand then passes neither `x > 5` nor `not (x > 5)`. Without the rewrite it would pass the
// latter, because in this dialect a comparison with NULL is false rather than NULL.

import type * as ast from '../ast/ast.js'

const turned: Readonly<Partial<Record<ast.BinaryOperator, ast.BinaryOperator>>> = {
  '<': '>=',
  '>=': '<',
  '>': '<=',
  '<=': '>',
}

export function withoutNot(condition: ast.Expression): ast.Expression {
  switch (condition.kind) {
    case 'unary':
      return condition.operator === 'not' ? (negated(condition.operand) ?? condition) : condition
    case 'binary': {
      if (condition.operator !== 'and' && condition.operator !== 'or') return condition
      const [left, right] = [withoutNot(condition.left), withoutNot(condition.right)]
      return left === condition.left && right === condition.right ? condition : { ...condition, left, right }
    }
    default:
      return condition
  }
}

/** The negated condition; undefined if NOT cannot be pushed down. */
function negated(condition: ast.Expression): ast.Expression | undefined {
  if (condition.kind === 'unary') return condition.operator === 'not' ? withoutNot(condition.operand) : undefined
  if (condition.kind === 'quantified') {
    const opposite = turned[condition.operator]
    const quantifier = condition.quantifier === 'all' ? 'any' : 'all'
    return opposite === undefined ? undefined : { ...condition, operator: opposite, quantifier }
  }
  if (condition.kind !== 'binary') return undefined
  const { operator, left, right } = condition
  if (operator === 'and' || operator === 'or') {
    const other = operator === 'and' ? 'or' : 'and'
    return { ...condition, operator: other, left: negated(left) ?? notOf(left), right: negated(right) ?? notOf(right) }
  }
  const opposite = turned[operator]
  return opposite === undefined ? undefined : { ...condition, operator: opposite }
}

function notOf(operand: ast.Expression): ast.Expression {
  return { kind: 'unary', position: operand.position, operator: 'not', operand }
}
