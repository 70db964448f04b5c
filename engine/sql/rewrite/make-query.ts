// Constructors of syntax tree nodes (names, calls, SELECTs, sub-queries), for code that rewrites one clause or
// expression to another before binding.

import type {
  Call,
  Expression,
  Join,
  Name,
  Query,
  QueryBody,
  QuerySource,
  Select,
  SelectItem,
  TableFunction,
  TableSource,
  TypeName,
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

/** The numbers from 1 to `count` as a source; table and column have the same name. */
export function numbersTo(count: number, name: string, position: number): TableFunction {
  const call = callOf('generate_series', [integerAt(1, position), integerAt(count, position)], position)
  const alias = nameAt(name, position)
  return {
    ...{ kind: 'table function', position, schema: null, call, ordinality: false },
    ...{ alias, columnAliases: [alias], timestamp: null },
  }
}

/** `position`: of the comma or the word that joins. */
export function crossJoin(source: TableSource, position: number): Join {
  const plain = { natural: false, on: null, using: [], merges: false, tolerance: null, window: null, horizon: null }
  return { position, kind: 'cross', source, ...plain }
}

export function typeNamed(name: string, position: number): TypeName {
  return { position, name, text: name, parameters: [], unit: null, dimensions: 0 }
}

/** A text literal as a value of the type; any other expression as it is. */
export function textAs(expression: Expression, type: string): Expression {
  const { kind, position } = expression
  return kind === 'string'
    ? { kind: 'cast', position, operand: expression, type: typeNamed(type, position) }
    : expression
}
