// Constructors of syntax tree nodes (names, calls, SELECTs, sub-queries), for code that rewrites one clause or
// expression to another before binding.

import type {
  Call,
  Expression,
  Name,
  Query,
  QueryBody,
  QuerySource,
  Select,
  SelectItem,
  TableSource,
} from '../ast/ast.js'

export function nameAt(name: string, position: number): Name {
  return { position, name, quoted: true }
}

export function columnAt(name: string, position: number): Expression {
  return { kind: 'column', position, path: [name], quoted: true }
}

const plainCall: Pick<Call, 'distinct' | 'orderBy' | 'filter' | 'ignoreNulls' | 'over'> = {
  ...{ distinct: false, orderBy: [], filter: null, ignoreNulls: false, over: null },
}

export function callOf(name: string, args: readonly Expression[], position: number): Call {
  return { kind: 'call', position, schema: null, name, args, ...plainCall }
}

export function integerAt(value: number, position: number): Expression {
  return { kind: 'integer', position, text: String(value), digits: String(value), long: false }
}

/** The item `*`, without the columns of `exclude`. */
export function starItem(position: number, exclude: readonly Name[] = []): SelectItem {
  return { position, expression: { kind: 'star', position, table: null, exclude }, alias: null }
}

export function selectBody(
  from: TableSource | null,
  items: readonly SelectItem[],
  where: Expression | null,
  position: number,
): Select {
  return {
    ...{ kind: 'select', position, implicit: false, distinct: false, distinctOn: [], items, from },
    ...{ joins: [], where, latestOn: null, sampleBy: null, groupBy: [], having: null, windows: [], pivot: null },
  }
}

export function queryOf(body: QueryBody): Query {
  const { position } = body
  return { kind: 'query', position, end: position, declarations: [], commonTables: [], body, orderBy: [], limit: null }
}

/** `query` as a source of FROM. */
export function querySource(query: Query, alias: Name | null = null, lateral = false): QuerySource {
  return { kind: 'query source', position: query.position, query, lateral, alias, columnAliases: [], timestamp: null }
}
