// `insert into t (id, name) select nextval('s'), name from ..`: a number for each row is not the plan's to give. Such items
// leave the select list, and the rows get their numbers on the way to the writer, as those of a counted column do.

import type * as ast from '../parse/ast.js'
import { counterCalled } from './defaults.js'
import type { ColumnDefault, TargetColumn } from './planned.js'

export interface NumberedSelect {
  readonly columns: ast.Insert['columns']
  readonly source: ast.Query
  readonly targets: readonly TargetColumn[]
  readonly numbered: readonly ColumnDefault[]
}

/** The INSERT without items that are numbers of a sequence over rows; as it is where its items have other places then. */
export function withoutNumbers(
  columns: ast.Insert['columns'],
  source: ast.Query,
  targets: readonly TargetColumn[],
): NumberedSelect {
  const same = { columns, source, targets, numbered: [] }
  const { body, orderBy } = source
  if (body.kind !== 'select' || body.from === null || body.distinct || body.distinctOn.length > 0) return same
  const isNumber = body.items.map(({ expression }) => counterCalled(expression) !== null)
  if (!isNumber.includes(true) || !isNumber.includes(false)) return same
  if (body.items.some(({ expression }) => expression.kind === 'star')) return same
  if (orderBy.some(({ expression }) => expression.kind === 'integer')) return same
  const isKept = (_: unknown, index: number): boolean => isNumber[index] !== true
  const numbered = targets.flatMap((target, index) => {
    const written = body.items[index]?.expression
    return written === undefined || isKept(target, index) ? [] : [{ target, written }]
  })
  return {
    columns: columns.filter(isKept),
    source: { ...source, body: { ...body, items: body.items.filter(isKept) } },
    targets: targets.filter(isKept),
    numbered,
  }
}
