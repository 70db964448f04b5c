// Planner rule: evaluates filters and joins over constant rows while planning, and drops rows that cannot contribute to
// the result. This speeds up queries of pg_catalog, whose rows are constants of the plan: a driver that asks for the
// columns of one table selects it by name in pg_class and joins pg_attribute, which has the columns of all tables.
//
// Filters directly above constant rows are evaluated here. Of a join, the key values that remain on one side then
// restrict the other side, if the join type drops rows without a match. An inner join with an empty side is empty.
//
// Invariant: the remaining rows are the same objects in the same order, and the result of the query does not change.

import { assert } from '../../base/assert.js'
import { type DataType, dataType } from '../../types/column-types.js'
import { intMin } from '../../types/number.js'
import type { Value } from '../../types/value.js'
import type { EvaluationContext } from '../functions/function-types.js'
import { compileExpression, scalarOf } from '../functions/registry/evaluate.js'
import { RowIndex, type RowsByValue } from '../relations/row-index.js'
import { isOfParameters } from '../typing/deferred-values.js'
import { allOf, columnsOf, conjuncts, visitExpression } from '../typing/walk-expression.js'
import type { Expression, Plan } from './plan.js'
import { inputsOf, mapInputs } from './walk-plan.js'

type Join = Extract<Plan, { kind: 'join' }>
type Values = Extract<Plan, { kind: 'values' }>
type Row = Values['rows'][number]

/** Only rows whose column has one of these values can contribute. */
interface Restriction {
  readonly index: number
  readonly values: KnownValues
}

/** A set, or a map with the values as keys. */
type KnownValues = Pick<ReadonlySet<Value>, 'has' | 'size' | 'keys'>

/** Fewer rows are not worth narrowing. */
const rowsMin = 16
/** Filters over more rows than this are evaluated in a second pass, when joins have dropped rows. */
const rowsMaxFirst = 1024
/** With fewer rows, parameters are not read, so that the plan stays valid for their other values. */
const rowsMinDeferred = 256
const rowsMaxLast = 16_384

export function pruneConstantRows(plan: Plan, evaluation: EvaluationContext): Plan {
  if (!isWorthIt(plan)) return plan
  const first = new Narrowing(rowsMaxFirst, evaluation).narrow(plan, [])
  return new Narrowing(rowsMaxLast, evaluation).narrow(first, [])
}

function isWorthIt(plan: Plan): boolean {
  return plan.kind === 'values' ? plan.rows.length >= rowsMin : inputsOf(plan).some(isWorthIt)
}

/**
 * Join types that drop rows of the other side without a partner: the keys of the left (right) side restrict the right
 * (left) one.
 */
const leftNeeds: ReadonlySet<Join['join']> = new Set(['inner', 'right'])
const rightNeeds: ReadonlySet<Join['join']> = new Set(['inner', 'left'])
/**
 * Join types that pass rows of the left (right) side on unchanged, so a restriction of the result applies to that side.
 */
const leftPasses: ReadonlySet<Join['join']> = new Set(['inner', 'cross', 'left'])
const rightPasses: ReadonlySet<Join['join']> = new Set(['inner', 'cross', 'right'])

class Narrowing {
  readonly #rowsMax: number
  readonly #evaluation: EvaluationContext
  /** Of lists that have no index of their own. */
  readonly #indexes = new Map<Values['rows'], RowIndex>()

  constructor(rowsMax: number, evaluation: EvaluationContext) {
    this.#rowsMax = rowsMax
    this.#evaluation = evaluation
  }

  narrow(plan: Plan, restrictions: readonly Restriction[]): Plan {
    switch (plan.kind) {
      case 'values':
        return this.#restricted(plan, restrictions)
      case 'filter': {
        const input = this.narrow(plan.input, restrictions)
        const filter = input === plan.input ? plan : { ...plan, input }
        return input.kind === 'values' ? this.#filtered(filter, input) : filter
      }
      case 'project':
        return this.#over(plan, through(plan.expressions, restrictions))
      case 'aggregate':
        return this.#over(plan, plan.keys.length === 0 ? [] : through(plan.keys, restrictions))
      case 'sort':
        return this.#over(plan, plan.limit === null ? restrictions : [])
      case 'distinct':
        return this.#over(plan, restrictions)
      case 'join':
        return this.#join(plan, restrictions)
      default:
        return this.#over(plan, [])
    }
  }

  #over(plan: Plan, restrictions: readonly Restriction[]): Plan {
    return mapInputs(plan, (input) => this.narrow(input, restrictions))
  }

  // Conditions --------------------------------------------------------------------------------------------------------

  #filtered(plan: Extract<Plan, { kind: 'filter' }>, input: Values): Plan {
    if (input.rows.length > this.#rowsMax) return plan
    const parts = conjuncts(plan.predicate)
    const known = parts.filter((part) => isKnown(part, input.rows.length >= rowsMinDeferred))
    if (known.length === 0) return plan
    const rows = this.#rowsOf(input, known)
    if (rows === null) return plan
    const predicate = allOf(parts.filter((part) => !known.includes(part)))
    const left: Values = { ...input, rows }
    return predicate === null ? left : { ...plan, input: left, predicate }
  }

  /**
   * The rows that pass; null if a condition fails with an error. Whether the error is reported is decided when the
   * query runs.
   */
  #rowsOf({ rows, columns }: Values, conditions: readonly Expression[]): readonly Row[] | null {
    const read = [...new Set(conditions.flatMap((condition) => [...columnsOf(condition)]))]
    const types = columns.map(({ type }) => type)
    try {
      const evaluation = { ...this.#evaluation, subqueries: [] }
      const tests = conditions.map((condition) => compileExpression(condition, evaluation))
      return rows.filter((row) => {
        const seen = asRead(row, read, types)
        return tests.every((test) => test(seen) === true)
      })
    } catch {
      return null
    }
  }

  // Joins -------------------------------------------------------------------------------------------------------------

  #join(plan: Join, restrictions: readonly Restriction[]): Plan {
    const width = plan.left.columns.length
    const ofLeft = leftPasses.has(plan.join) ? restrictions.filter(({ index }) => index < width) : []
    const ofRight = rightPasses.has(plan.join)
      ? restrictions.flatMap(({ index, values }) => (index < width ? [] : [{ index: index - width, values }]))
      : []
    let left = this.narrow(plan.left, ofLeft)
    const { leftKeys, rightKeys } = plan
    if (rightNeeds.has(plan.join)) ofRight.push(...this.#byKeys(left, leftKeys, plan.right, rightKeys))
    const right = this.narrow(plan.right, ofRight)
    const byRight = leftNeeds.has(plan.join) ? this.#byKeys(right, rightKeys, left, leftKeys) : []
    if (byRight.length > 0) left = this.narrow(left, byRight)
    const joined = left === plan.left && right === plan.right ? plan : { ...plan, left, right }
    return hasNoRows(joined) ? { kind: 'values', columns: plan.columns, rows: [] } : joined
  }

  /** The restriction that the keys of one side put on the other, if they have fewer values. */
  #byKeys(side: Plan, keys: readonly number[], other: Plan, otherKeys: readonly number[]): Restriction[] {
    return keys.flatMap((key, at) => {
      const index = otherKeys[at] as number
      if (!areAlike(side.columns[key]?.type, other.columns[index]?.type)) return []
      const before = this.#valuesOf(other, index)
      const values = before === null ? null : this.#valuesOf(side, key)
      return before === null || values === null || values.size >= before.size ? [] : [{ index, values }]
    })
  }

  /** A superset of the values of a column; null if unknown. */
  #valuesOf(plan: Plan, index: number): KnownValues | null {
    switch (plan.kind) {
      case 'values':
        return plan.rows.length > rowsMaxLast * 4 ? null : this.#placesOf(plan, index)
      case 'filter':
      case 'sort':
      case 'limit':
      case 'distinct':
        return this.#valuesOf(plan.input, index)
      case 'project':
        return this.#valuesOfMade(plan.input, plan.expressions[index])
      case 'aggregate':
        return index < plan.keys.length ? this.#valuesOfMade(plan.input, plan.keys[index]) : null
      case 'join': {
        const width = plan.left.columns.length
        if (index < width) return leftPasses.has(plan.join) ? this.#valuesOf(plan.left, index) : null
        return this.#valuesOfRight(plan, index - width)
      }
      default:
        return null
    }
  }

  /** A left join adds NULL for rows without a partner. */
  #valuesOfRight({ join, right }: Join, index: number): KnownValues | null {
    if (rightPasses.has(join)) return this.#valuesOf(right, index)
    const type = right.columns[index]?.type
    const values = join === 'left' && type !== undefined ? this.#valuesOf(right, index) : null
    return values === null || type === undefined ? null : new Set([...values.keys(), plain(null, type)])
  }

  #valuesOfMade(input: Plan, made: Expression | undefined): KnownValues | null {
    return made?.kind === 'column' ? this.#valuesOf(input, made.index) : null
  }

  // Rows ------------------------------------------------------------------------------------------------------------

  #placesOf({ rows, columns, index }: Values, column: number): RowsByValue | null {
    const type = columns[column]?.type
    if (type === undefined || !plainTypes.has(type.name)) return null
    // A rule may have replaced the rows and kept the index.
    const known = index?.rows === rows ? index : this.#indexes.get(rows)
    const own = known ?? new RowIndex(rows)
    if (known === undefined) this.#indexes.set(rows, own)
    return own.rowsOf(column, (value) => plain(value, type))
  }

  #restricted(plan: Values, restrictions: readonly Restriction[]): Plan {
    const [first, ...others] = restrictions
      .filter(({ index }) => plainTypes.has(plan.columns[index]?.type.name ?? ''))
      .toSorted((x, y) => x.values.size - y.values.size)
    if (first === undefined) return plan
    const types = plan.columns.map(({ type }) => type)
    const rows = this.#rowsWith(plan, first).filter((row) =>
      others.every(({ index, values }) => values.has(plain(row[index], types[index] ?? textType))),
    )
    return rows.length === plan.rows.length ? plan : { ...plan, rows }
  }

  #rowsWith(plan: Values, { index, values }: Restriction): Row[] {
    const { rows } = plan
    const places = this.#placesOf(plan, index)
    assert(places !== null, 'B2: a restriction is of a plain column')
    const found: number[] = []
    for (const value of values.keys()) for (const place of places.get(value) ?? []) found.push(place)
    // Keep the rows in their order.
    return found.sort((x, y) => x - y).map((place) => rows[place] as Row)
  }
}

/** Translates restrictions of a node's output to its input, where the node passes columns on. */
function through(made: readonly Expression[], restrictions: readonly Restriction[]): Restriction[] {
  return restrictions.flatMap(({ index, values }) => {
    const expression = made[index]
    return expression?.kind === 'column' ? [{ index: expression.index, values }] : []
  })
}

function hasNoRows(plan: Plan): boolean {
  switch (plan.kind) {
    case 'values':
      return plan.rows.length === 0
    case 'filter':
    case 'project':
    case 'sort':
    case 'limit':
    case 'distinct':
      return hasNoRows(plan.input)
    case 'join': {
      if (plan.join === 'left') return hasNoRows(plan.left)
      if (plan.join === 'right') return hasNoRows(plan.right)
      return (plan.join === 'inner' || plan.join === 'cross') && (hasNoRows(plan.left) || hasNoRows(plan.right))
    }
    default:
      return false
  }
}

// Values ------------------------------------------------------------------------------------------------------------

const textType = dataType('STRING')

/** Types whose values JavaScript sets compare as the executor does. */
const plainTypes: ReadonlySet<string> = new Set([
  'BOOLEAN',
  'BYTE',
  'SHORT',
  'CHAR',
  'INT',
  'LONG',
  'STRING',
  'VARCHAR',
])

function areAlike(type: DataType | undefined, other: DataType | undefined): boolean {
  return type !== undefined && type.name === other?.name
}

/** The value as the executor reads it: some types have no NULL. */
function plain(value: Value | undefined, { name }: DataType): Value {
  if (value === undefined || value === null) {
    if (name === 'BOOLEAN') return false
    return name === 'CHAR' ? '' : name === 'BYTE' || name === 'SHORT' ? 0 : null
  }
  return name === 'INT' && value === intMin ? null : value
}

/** The row with these columns as the executor reads them; usually the row itself. */
function asRead(row: Row, read: readonly number[], types: readonly DataType[]): Row {
  const isOther = (index: number): boolean => plain(row[index], types[index] ?? textType) !== row[index]
  return read.some(isOther) ? row.map((value, index) => plain(value, types[index] ?? textType)) : row
}

/** Whether the condition can be evaluated while planning. `deferred`: parameters may be read. */
function isKnown(condition: Expression, deferred: boolean): boolean {
  let known = columnsOf(condition).size > 0
  visitExpression(condition, (part) => {
    if (part.kind === 'column') known &&= plainTypes.has(part.type.name)
    else if (part.kind === 'constant') known &&= (deferred || !isOfParameters(part)) && part.parameter === undefined
    else if (part.kind === 'call') known &&= (scalarOf(part)?.volatility ?? 'pure') === 'pure'
    else known &&= part.kind === 'constants'
  })
  return known
}
