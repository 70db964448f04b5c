// Row values: `(a, b)`, and sub-queries of one row that stand for them.

import type { Expression, Query } from '../ast/ast.js'

/** Each value of the row by itself; null: it is none, or a query whose columns cannot be told apart. */
export function valuesOfRow(row: Expression): readonly Expression[] | null {
  if (row.kind === 'list') return row.elements
  return row.kind === 'subquery' ? valuesOfQuery(row.query) : null
}

/** Each column as a sub-query of its own. */
function valuesOfQuery(query: Query): readonly Expression[] | null {
  const { body } = query
  if (body.kind !== 'select' || body.distinct || body.distinctOn.length > 0) return null
  if (body.items.some(({ expression }) => expression.kind === 'star')) return null
  return body.items.map((item) => {
    const { position } = item
    // Beside aggregates a constant is one row, on its own it would be one for each row of FROM.
    const one: Expression = { kind: 'integer', position, text: '1', digits: '1', long: false }
    const limit = query.limit ?? (body.items.length > 1 ? { position, low: one, high: null, offset: null } : null)
    return { kind: 'subquery', position, query: { ...query, limit, body: { ...body, items: [item] } } }
  })
}
