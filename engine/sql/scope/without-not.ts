// NOT in conditions: it moves down to the comparisons, which turn round, so that a row whose value is missing passes
// neither `x > 5` nor `not (x > 5)`, and ANY and ALL change places. As a value, `not (x > 5)` of a missing value is true in
// this dialect.

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

/** undefined: NOT stays. */
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
