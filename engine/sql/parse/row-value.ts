// Splits a row value, which is a list `(a, b)` or a sub-query that returns one row, into one expression per column, so
// that `(a, b) = (1, 2)` becomes one comparison per column, and `set (a, b) = (..)` one assignment per column.

import type { Expression, Query } from '../ast/ast.js'

/** The values of the row; null if it is no row value, or a query whose columns cannot be separated. */
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
    // Next to an aggregate a constant yields one row, but alone it would yield one per row of FROM. LIMIT 1 restores
    // that.
    const one: Expression = { kind: 'integer', position, text: '1', digits: '1', long: false }
    const limit = query.limit ?? (body.items.length > 1 ? { position, low: one, high: null, offset: null } : null)
    return { kind: 'subquery', position, query: { ...query, limit, body: { ...body, items: [item] } } }
  })
}
