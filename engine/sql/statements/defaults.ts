// DEFAULT of columns: checks the expression, which may not contain columns and is stored in the schema as text, and
// fills the columns that a statement omits. INSERT and COPY evaluate it for each row that omits the column or says
// DEFAULT. Rows from other sources (line protocol, files) get NULL.

import { SqlError } from '../../base/errors.js'
import { type ColumnSchema, liveColumns, type TableVersion } from '../../storage/schema/schema.js'
import { type DataType, isDay } from '../../types/column-types.js'
import { isFraction } from '../../types/convert.js'
import type * as ast from '../ast/ast.js'
import { bindExpression, rowlessScope } from '../bind/expression.js'
import { nativeDialect } from '../dialect.js'
import { parseStatement } from '../parse/parse.js'
import type { Expression, Plan } from '../plan/plan.js'
import { counterName, nextText } from '../relations/counters.js'
import type { BindContext } from '../scope/bind-context.js'
import { decimalOfDigits } from '../typing/exact-numbers.js'
import { castTo } from '../typing/types.js'
import { checkConflict } from './conflict.js'
import type { ColumnDefault, TargetColumn } from './planned.js'
import { convertedTo, convertTo, insertValue, targetColumns, targetOf } from './target.js'

/** The columns that a statement fills: those that it names, then those that have a default. */
export interface FilledColumns {
  readonly targets: readonly TargetColumn[]
  /** Number of columns that the statement names. */
  readonly named: number
  /** The default of each target; null without one. */
  readonly defaults: readonly (ast.Expression | null)[]
}

export function filledColumns(statement: ast.Insert, version: TableVersion): FilledColumns {
  const named = targetColumns(statement, version)
  checkConflict(statement, version, named)
  const others = unnamedDefaults(version, new Set(named.map(({ columnId }) => columnId)))
  const targets = [...named, ...others.map(({ target }) => target)]
  return { targets, named: named.length, defaults: targets.map(({ columnId }) => defaultOf(version, columnId)) }
}

/** Defaults of the columns that are not in the set. */
export function unnamedDefaults(version: TableVersion, named: ReadonlySet<number>): ColumnDefault[] {
  return liveColumns(version.schema).flatMap((column) => {
    const written = named.has(column.id) ? null : defaultOf(version, column.id)
    return written === null ? [] : [{ target: targetOf(column), written }]
  })
}

/** Whether the default is the next number of a counter. */
export function isCounted({ written }: ColumnDefault): boolean {
  return written.kind === 'call' && written.name === 'nextval'
}

/** The expression for a target: the value in the row, or the default in place of DEFAULT. */
export function writtenValue(
  { values, position }: ast.ValueRow,
  index: number,
  { defaults }: Pick<FilledColumns, 'defaults'>,
): ast.Expression {
  const written = values[index]
  if (written !== undefined && !isByDefault(written)) return written
  return defaults[index] ?? { kind: 'null', position: written?.position ?? position }
}

/** Whether the value is the keyword DEFAULT. */
export function isByDefault(written: ast.Expression): boolean {
  return written.kind === 'null' && written.byDefault === true
}

const parsed = new WeakMap<ColumnSchema, ast.Expression>()

export function defaultOf({ schema }: TableVersion, columnId: number): ast.Expression | null {
  const column = schema.columns[columnId]
  if (column?.default === undefined) return null
  const known = parsed.get(column) ?? defaultFor(column.type, parsedDefault(column.default))
  parsed.set(column, known)
  return known
}

/** A literal for a DECIMAL column keeps the digits that were written, in either dialect. */
function defaultFor(type: DataType, written: ast.Expression): ast.Expression {
  if (type.name !== 'DECIMAL') return written
  if (written.kind === 'unary') return { ...written, operand: defaultFor(type, written.operand) }
  if (written.kind !== 'float' && written.kind !== 'integer') return written
  const { digits, text, position } = written
  return decimalOfDigits(digits, position) === null ? written : { kind: 'decimal', digits, text, position }
}

function parsedDefault(text: string): ast.Expression {
  const statement = parseStatement(`select ${text}`)
  const item = statement.kind === 'query' && statement.body.kind === 'select' ? statement.body.items[0] : undefined
  if (item === undefined) throw new SqlError(`invalid default [text=${text}]`, 0)
  return item.expression
}

/**
 * The text to store; undefined without a default or for NULL. Throws SqlError if it is no value of the column's type.
 */
export function checkedDefault(
  written: ast.ColumnDefault | null,
  column: Omit<ColumnSchema, 'id' | 'dropped'>,
  context: BindContext,
): string | undefined {
  const { name, type } = column
  if (written === null) return undefined
  const counter = counterCalled(written.expression)
  if (counter !== null && context.catalog.sequence?.(counter) !== undefined) {
    if (['SHORT', 'INT', 'LONG'].includes(type.name)) return nextText(counter)
    throw new SqlError(`a column numbered by a sequence must be SHORT, INT or LONG [column=${name}]`, 0)
  }
  const scope = rowlessScope(context)
  // Object mappers write it so. INSERT itself accepts a DECIMAL for a DOUBLE only with a cast.
  const isDecimal = isFraction(type) && bindExpression(written.expression, scope).type.name === 'DECIMAL'
  if (isDecimal) return `cast(${written.text} as double)`
  // Rows of both dialects use the default, so it must satisfy the stricter rules.
  const strict = { ...scope, context: { ...context, dialect: nativeDialect } }
  const value = insertValue(written.expression, targetOf({ ...column, id: -1 }), 0, strict)
  return value === null && written.expression.kind === 'null' ? undefined : written.text
}

/** The counter in `nextval('s')` or `nextval('s'::regclass)`; null for any other expression. */
export function counterCalled(written: ast.Expression): string | null {
  if (written.kind !== 'call' || written.name.toLowerCase() !== 'nextval') return null
  const [argument] = written.args
  const name = argument?.kind === 'cast' && argument.type.name === 'regclass' ? argument.operand : argument
  return name?.kind === 'string' ? counterName(name.value) : null
}

/** The rows of a query with default values appended. */
export function withDefaults(plan: Plan, defaults: readonly ColumnDefault[], context: BindContext): Plan {
  if (defaults.length === 0) return plan
  const columns = plan.columns.map(({ type }, index): Expression => ({ kind: 'column', index, type, position: 0 }))
  const values = defaults.map(({ target, written }) => {
    const bound = bindExpression(written, rowlessScope(context))
    const type = target.wanted ?? target.type
    if (isDay(type)) return convertedTo(bound, target, nativeDialect)
    return bound.type.name === type.name ? castTo(bound, type) : convertTo(bound, type, nativeDialect)
  })
  return {
    kind: 'project',
    columns: [...plan.columns, ...defaults.map(({ target: { name, type } }) => ({ name, type }))],
    input: plan,
    expressions: [...columns, ...values],
  }
}
