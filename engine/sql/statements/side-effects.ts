// Plans a SELECT that calls a function with a side effect for each of its rows: `select setval('s', max(id)) from t`,
// `select nextval('s') from generate_series(1, 9)`, `select pg_terminate_backend(pid) from pg_stat_activity where ..`.
// Query threads run queries but have no access to sequences and sessions. So the plan returns the arguments instead of
// the calls, and the main thread then makes the call for each row of the result (session/side-effects.ts). A call with
// constant arguments in a SELECT without FROM is made while binding (bind/catalog-calls.ts).

import type { Session } from '../../api/session.js'
import { SqlError } from '../../base/errors.js'
import { type DataType, dataType } from '../../types/column-types.js'
import type { Value } from '../../types/value.js'
import type * as ast from '../ast/ast.js'
import { holdsQuery } from '../bind/correlated-conditions.js'
import { bindQuery, plainRelation } from '../bind/query.js'
import { type Counters, sequenceMissing } from '../relations/counters.js'
import type { BindContext } from '../scope/bind-context.js'
import { type NamedItem, outputNames } from '../scope/output-names.js'
import type { PlannedStatement, SideEffects } from './planned.js'
import { planRelation } from './query-statement.js'

export interface SideEffectServices {
  readonly counters: Counters | undefined
  readonly session: Pick<Session, 'signal' | 'notify' | 'numbers'>
}

interface Action {
  /** Accepted numbers of arguments. */
  readonly counts: readonly number[]
  readonly gives: DataType
  readonly writes: boolean
  readonly act: (args: readonly Value[], actors: SideEffectServices, position: number) => Value
}

const long = dataType('LONG')
const boolean = dataType('BOOLEAN')

const actions: Readonly<Record<string, Action>> = {
  setval: {
    ...{ counts: [2, 3], gives: long, writes: true },
    act: ([name = null, value = null, isCalled = true], { counters }, position) => {
      if (name === null || value === null || isCalled === null) return null
      if (!/^-?\d{1,18}$/.test(String(value))) throw new SqlError('setval takes an integer', position)
      return known(counters?.set(String(name), BigInt(String(value)), isCalled === true), name, position)
    },
  },
  nextval: {
    ...{ counts: [1], gives: long, writes: true },
    act: ([name = null], { counters, session }, position) => {
      if (name === null) return null
      const next = known(counters?.next(String(name)), name, position)
      if (session.numbers !== undefined) session.numbers.last = next
      return next
    },
  },
  pg_notify: {
    ...{ counts: [2], gives: dataType('STRING'), writes: false },
    act: ([channel = null, payload = null], { session }, position) => {
      if (session.notify === undefined)
        throw new SqlError('notifications need a session of the PostgreSQL wire protocol', position)
      session.notify(String(channel ?? ''), String(payload ?? ''))
      return ''
    },
  },
  pg_cancel_backend: { counts: [1], gives: boolean, writes: false, act: signal(false) },
  pg_terminate_backend: { counts: [1, 2], gives: boolean, writes: false, act: signal(true) },
}

function known(number: bigint | undefined, name: Value, position: number): bigint {
  if (number === undefined) throw sequenceMissing(String(name), position)
  return number
}

function signal(ends: boolean): Action['act'] {
  return ([process = null], { session }) =>
    process === null ? null : (session.signal?.(Number(process), ends) ?? false)
}

export function execute(
  { name, position }: SideEffects['items'][number],
  args: readonly Value[],
  actors: SideEffectServices,
): Value {
  return name === null ? (args[0] ?? null) : (actions[name]?.act(args, actors, position) ?? null)
}

/** The plan; null if no item has side effects, or the query is more than a plain list. */
export function planSideEffects(query: ast.Query, context: BindContext): PlannedStatement | null {
  const { body, orderBy } = query
  if (body.kind !== 'select' || !body.items.some(({ expression }) => isAct(expression, body))) return null
  const byPlace = [...orderBy.map(({ expression }) => expression), ...body.groupBy].some(
    ({ kind }) => kind === 'integer',
  )
  const isPlain = !byPlace && !body.distinct && body.distinctOn.length === 0 && body.pivot === null
  if (!isPlain || body.items.some(({ expression }) => expression.kind === 'star')) return null
  const items = body.items.map(({ expression }): SideEffects['items'][number] => {
    const action = isAct(expression, body) ? expression : null
    if (action === null) return { name: null, width: 1, position: expression.position }
    const name = action.name.toLowerCase()
    if (actions[name]?.writes === true) context.requireWrite()
    return { name, width: action.args.length, position: action.position }
  })
  const inner = planRelation(bindQuery({ ...query, body: { ...body, items: withArguments(body) } }, context), context)
  const names = outputNames(
    body.items.map(({ alias, expression }): NamedItem => ({ alias, expression, name: '' })),
    { sql: context.sql, dialect: context.dialect, outermost: true, ofCatalog: false },
  )
  let place = 0
  const columns = items.map(({ name, width }, index) => {
    const own = inner.columns[place]?.type ?? long
    place += width
    return { name: names[index] ?? '', type: name === null ? own : (actions[name]?.gives ?? own) }
  })
  context.cacheable = false
  const shown = planRelation(plainRelation({ kind: 'values', columns, rows: [] }), context)
  return { ...shown, acts: { query: inner.query, columns, items } }
}

function isAct(expression: ast.Expression, { from }: ast.Select): expression is ast.Call {
  if (expression.kind !== 'call' || expression.over !== null || expression.distinct) return false
  const action = actions[expression.name.toLowerCase()]
  return action?.counts.includes(expression.args.length) === true && (from !== null || holdsQuery(expression.args))
}

/** The select list with the arguments in place of calls with side effects. */
function withArguments(body: ast.Select): ast.SelectItem[] {
  return body.items.flatMap((item) =>
    isAct(item.expression, body)
      ? item.expression.args.map((expression) => ({ position: expression.position, expression, alias: null }))
      : [item],
  )
}
