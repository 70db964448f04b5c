// Rewrites a select item `count` without parentheses to `count()`, as in `select symbol, count from t`, unless a column
// or alias has that name. Within a larger expression `count` stays a column name.

import type * as ast from '../ast/ast.js'
import type { BindContext } from './bind-context.js'
import { findInScope, type Scope } from './scope.js'

/** The item, with a bare `count` replaced by `count()` under the name `count`. */
export function asCountCall(
  item: ast.SelectItem,
  { columns, context }: { readonly columns: Scope; readonly context: BindContext },
  aliases: ReadonlyMap<string, unknown>,
): ast.SelectItem {
  const { expression, alias, position } = item
  if (!isBareCount(expression) || aliases.has('count') || findInScope(columns, expression, context) !== undefined)
    return item
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
