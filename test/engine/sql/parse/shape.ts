// Formats an expression's syntax tree for tests, in prefix notation with parentheses.

import type { Expression, Slice } from '../../../../engine/sql/ast/ast.js'

export function shape(node: Expression): string {
  switch (node.kind) {
    case 'column':
      return node.path.join('.')
    case 'star':
      return '*'
    case 'null':
      return 'null'
    case 'boolean':
      return String(node.value)
    case 'string':
      return `'${node.value}'`
    case 'integer':
    case 'float':
      return node.text
    case 'unary':
      return list(node.operator, [node.operand])
    case 'binary':
      return list(node.operator, [node.left, node.right])
    case 'in':
      return list(node.negated ? 'not in' : 'in', 'kind' in node.set ? [node.operand] : [node.operand, ...node.set])
    case 'between':
      return list(node.negated ? 'not between' : 'between', [node.operand, node.low, node.high])
    case 'is null':
      return list(node.negated ? 'is not null' : 'is null', [node.operand])
    case 'quantified':
      return list(`${node.operator} ${node.quantifier}`, [node.left, node.right])
    case 'cast':
      return `(cast ${shape(node.operand)} ${node.type.name})`
    case 'array':
      return list('array', node.elements)
    case 'field':
      return `(. ${shape(node.operand)} ${node.name})`
    case 'subscript':
      return `([] ${shape(node.operand)} ${node.indexes.map(indexShape).join(' ')})`
    case 'call':
      return list(
        node.distinct ? `${node.name} distinct` : node.name,
        node.args,
        node.filter === null ? '' : ` filter ${shape(node.filter)}`,
      )
    case 'case':
      return list(
        'case',
        [node.operand, ...node.branches.flatMap(({ when, result }) => [when, result]), node.otherwise].filter(
          (part) => part !== null,
        ),
      )
    default:
      return node.kind
  }
}

function indexShape(index: Expression | Slice): string {
  if (index.kind !== 'slice') return shape(index)
  return `${index.low === null ? '' : shape(index.low)}:${index.high === null ? '' : shape(index.high)}`
}

function list(head: string, parts: readonly Expression[], tail = ''): string {
  return `(${[head, ...parts.map(shape)].join(' ')}${tail})`
}
