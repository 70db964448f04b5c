// `select symbol, count from t`: the rows are counted where no column has the name. Within an expression it stays a name.

import type * as ast from '../ast/ast.js'
import { findInScope, type Scope } from './scope.js'

/** The item as it is meant: `count` alone is `count()`, under that name. */
export function countedItem(
  item: ast.SelectItem,
  columns: Scope,
  aliases: ReadonlyMap<string, unknown>,
): ast.SelectItem {
  const { expression, alias, position } = item
  if (!isBareCount(expression) || aliases.has('count') || findInScope(columns, expression) !== undefined) return item
  const call: ast.Call = {
    kind: 'call',
    schema: null,
    name: 'count',
    position: expression.position,
    distinct: false,
    args: [],
    orderBy: [],
    filter: null,
    ignoreNulls: false,
    over: null,
  }
  return { position, expression: call, alias: alias ?? { position, name: 'count', quoted: true } }
}

function isBareCount(expression: ast.Expression): expression is ast.ColumnName {
  return expression.kind === 'column' && expression.path.length === 1 && expression.path[0]?.toLowerCase() === 'count'
}
