// Names of result columns. Explicit names must differ; others get `_2`, `_3` (unnamed expressions and repeated columns,
// also those before the name) or, in a list with `*`, `1`, `2`: there a column whose explicit name is one of
// `*` gets a number as well. An expression's name is its normalised text, in double quotes when it holds a dot.

import { SqlError } from '../../base/errors.js'
import type { Expression, Name } from '../ast/ast.js'
import type { Dialect } from '../dialect.js'
import { expressionText, writtenUnequal } from '../parse/text.js'

export interface NamedItem {
  readonly alias: Name | null
  /** Written expression; null for a column of `*`, which has `name`. */
  readonly expression: Expression | null
  readonly name: string
}

export interface NamingRules {
  readonly sql: string
  readonly dialect: Pick<Dialect, 'postgresNames'>
  /** Rows of PostgreSQL's catalog, which its clients alone ask for: casts and calls have its names as well. */
  readonly ofCatalog: boolean
  /** Within a sub-query counts have the names that this dialect knows. */
  readonly outermost: boolean
}

interface Spelling extends NamingRules {
  /** The statement has what is named as it is written. */
  readonly respelt: boolean
  /** The list has columns of `*`. */
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

/** `AS KEY_SEQ` of the catalog is `key_seq`, by which its clients (jOOQ's code generator) look for it. */
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
  // Where the numbers behind this name have come to.
  const key = base.toLowerCase()
  for (let count = counts.get(key) ?? (rules.starred ? 1 : 2); ; count++) {
    const name = numberedName(base, rules.starred ? `${count}` : `_${count}`)
    counts.set(key, count + 1)
    if (!taken.has(name.toLowerCase())) return name
  }
}

/** The number stands within the quotes of a name that has them. */
function numberedName(base: string, number: string): string {
  return base.startsWith('"') && base.endsWith('"') ? `${base.slice(0, -1)}${number}"` : `${base}${number}`
}

/** The word AS belongs to it. */
function aliasStart(position: number, sql: string): number {
  const word = /\bas\s+$/i.exec(sql.slice(0, position))
  return word === null ? position : word.index
}

/** Of an expression without alias. */
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

/** The text of an expression as a name. */
export function shownName(text: string): string {
  return text.includes('.') ? `"${text.slice(0, shownCharactersMax - 3)}"` : text.slice(0, shownCharactersMax).trimEnd()
}

/** As PostgreSQL names what only its clients ask: a sub-query by its column, a cast by what is cast. */
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

/** `version()`, `pg_backend_pid()`, `count(*)`: drivers read the column by the function's name. */
function isOfDrivers({ name, args, over }: Extract<Expression, { kind: 'call' }>, outermost: boolean): boolean {
  const [only] = args
  if (name.toLowerCase() === 'count') return outermost && over === null && args.length === 1 && only?.kind === 'star'
  return /^(pg_\w+|version|current_\w+|set_config|(session_)?user|obj_description|format_type|to_reg\w+)$/i.test(name)
}

/** `x::float` is a cast to DOUBLE and is named so; `<>` is named as it is written. */
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
