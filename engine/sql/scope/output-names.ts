// Chooses the names of result columns. A column without alias keeps its name. Another expression without alias is named
// by its text, in double quotes if that contains a dot. If the name is taken, even by an alias later in the list, it
// gets a suffix `_2`, `_3`. Two equal aliases are an error. In a select list with `*` the suffixes are `1`, `2`
// instead, and an alias of a plain column also gets one if `*` contributes a column of its name.
//
// In the PostgreSQL dialect, PostgreSQL's names are used for queries of its catalog and for calls that drivers send,
// such as `version()`.

import { SqlError } from '../../base/errors.js'
import type { Expression, Name } from '../ast/ast.js'
import type { Dialect } from '../dialect.js'
import { expressionText, writtenUnequal } from '../parse/text.js'

export interface NamedItem {
  readonly alias: Name | null
  /** The expression as written; null for a column of `*`, which has `name`. */
  readonly expression: Expression | null
  readonly name: string
}

export interface NamingRules {
  readonly sql: string
  readonly dialect: Pick<Dialect, 'postgresNames'>
  /** The query reads PostgreSQL's catalog, so only its clients send it: casts and calls get PostgreSQL's names. */
  readonly ofCatalog: boolean
  /** The query is not a sub-query. Within sub-queries count(*) keeps the name of the native dialect. */
  readonly outermost: boolean
}

interface Spelling extends NamingRules {
  /** The text of the statement may differ from the normalised text (`::float`, `<>`). */
  readonly respelt: boolean
  /** The list contains `*`. */
  readonly starred: boolean
}

export function outputNames(written: readonly NamedItem[], rules: NamingRules): string[] {
  const items = rules.ofCatalog ? written.map(asFolded) : written
  const respelt = /::\s*float\b|<>/i.test(rules.sql)
  const starred = items.some(({ expression }) => expression === null)
  const explicit = explicitNames(items, rules.sql)
  const taken = starred ? new Set<string>() : explicit
  const counts = new Map<string, number>()
  const spelling: Spelling = { ...rules, respelt, starred }
  return items.map((item) => {
    const name = uniqueName(item, taken, counts, spelling)
    taken.add(name.toLowerCase())
    return name
  })
}

/**
 * Unquoted aliases of catalog queries are folded: clients such as jOOQ's code generator look for `key_seq` after `AS
 * KEY_SEQ`.
 */
function asFolded(item: NamedItem): NamedItem {
  const { alias } = item
  return alias === null || alias.quoted ? item : { ...item, alias: { ...alias, name: alias.name.toLowerCase() } }
}

function explicitNames(items: readonly NamedItem[], sql: string): Set<string> {
  const names = new Set<string>()
  for (const { alias } of items) {
    if (alias === null) continue
    if (names.has(alias.name.toLowerCase())) throw duplicate(alias, sql)
    names.add(alias.name.toLowerCase())
  }
  return names
}

function duplicate({ name, position }: NonNullable<NamedItem['alias']>, sql: string): SqlError {
  return new SqlError(`Duplicate column [name=${name}]`, aliasStart(position, sql))
}

function uniqueName(item: NamedItem, taken: ReadonlySet<string>, counts: Map<string, number>, rules: Spelling): string {
  if (item.alias !== null && !rules.starred) return item.alias.name
  const base = item.alias?.name ?? (item.expression === null ? item.name : writtenName(item.expression, rules))
  if (!taken.has(base.toLowerCase())) return base
  if (item.alias !== null && item.expression?.kind !== 'column') throw duplicate(item.alias, rules.sql)
  // Continue with the last suffix that was used for this name.
  const key = base.toLowerCase()
  for (let count = counts.get(key) ?? (rules.starred ? 1 : 2); ; count++) {
    const name = numberedName(base, rules.starred ? `${count}` : `_${count}`)
    counts.set(key, count + 1)
    if (!taken.has(name.toLowerCase())) return name
  }
}

/** The suffix goes inside the quotes of a quoted name. */
function numberedName(base: string, number: string): string {
  return base.startsWith('"') && base.endsWith('"') ? `${base.slice(0, -1)}${number}"` : `${base}${number}`
}

/** The position of the alias, which includes the word AS. */
function aliasStart(position: number, sql: string): number {
  const word = /\bas\s+$/i.exec(sql.slice(0, position))
  return word === null ? position : word.index
}

/** Maximum length of the name of an expression without alias. */
const shownCharactersMax = 64

function writtenName(expression: Expression, rules: Spelling): string {
  const { sql, respelt } = rules
  if (expression.kind === 'column') {
    const name = expression.path.at(-1) ?? ''
    return rules.ofCatalog && !expression.quoted ? name.toLowerCase() : name
  }
  if (rules.dialect.postgresNames) {
    const name = driversName(expression, rules)
    if (name !== null) return name
  }
  return shownName(expressionText(respelt ? asWritten(expression, sql) : expression))
}

/** The text of an expression as a column name, quoted if it contains a dot and truncated. */
export function shownName(text: string): string {
  return text.includes('.') ? `"${text.slice(0, shownCharactersMax - 3)}"` : text.slice(0, shownCharactersMax).trimEnd()
}

/**
 * The name that PostgreSQL gives to an expression in catalog queries: that of the sub-query's column, of the cast's
 * operand, and so on.
 */
function driversName(expression: Expression, rules: Spelling): string | null {
  if (expression.kind === 'exists') return 'exists'
  if (expression.kind === 'list') return 'row'
  if (expression.kind === 'cast') {
    const { operand } = expression
    return rules.ofCatalog && operand.kind === 'column' ? writtenName(operand, rules) : driversName(operand, rules)
  }
  if (expression.kind === 'call') {
    return rules.ofCatalog || isOfDrivers(expression, rules.outermost) ? expression.name.toLowerCase() : null
  }
  if (expression.kind !== 'subquery' || expression.query.body.kind !== 'select') return null
  const [item] = expression.query.body.items
  if (item === undefined || item.expression.kind === 'star') return null
  return item.alias?.name ?? writtenName(item.expression, rules)
}

/** Calls that drivers send, such as `version()` and `count(*)`: the result column is named after the function. */
function isOfDrivers({ name, args, over }: Extract<Expression, { kind: 'call' }>, outermost: boolean): boolean {
  const [only] = args
  if (name.toLowerCase() === 'count') return outermost && over === null && args.length === 1 && only?.kind === 'star'
  return /^(pg_\w+|version|current_\w+|set_config|(session_)?user|obj_description|format_type|to_reg\w+)$/i.test(name)
}

/**
 * Restores spelling that parsing normalises: `x::float` is a cast to DOUBLE and shown so, and `<>` is shown as written.
 */
function asWritten(expression: Expression, sql: string): Expression {
  return JSON.parse(JSON.stringify(expression), (_key, value: unknown) => {
    if (isUnequal(value) && sql.startsWith('<>', value.position)) return { ...value, operator: writtenUnequal }
    if (!isCast(value) || value.type.name !== 'float' || !sql.startsWith('::', value.position)) return value
    return { ...value, type: { ...value.type, name: 'DOUBLE' } }
  }) as Expression
}

function isUnequal(value: unknown): value is Extract<Expression, { kind: 'binary' }> {
  return typeof value === 'object' && value !== null && 'operator' in value && value.operator === '<>'
}

function isCast(value: unknown): value is Extract<Expression, { kind: 'cast' }> {
  return typeof value === 'object' && value !== null && 'kind' in value && value.kind === 'cast'
}
