// Generates random queries for the comparison with DuckDB, with clauses that both support, as one text for each
// dialect. The order of rows is compared only if a query orders by all its columns.

import { compared, listed, type Pair, type PairType, pair, same } from '../pair.js'
import type { Random } from '../random.js'
import { type ExpressionSource, randomExpression } from './expressions.js'
import { randomNearest } from './nearest.js'
import { randomLateral, randomProduct, randomWindowJoin } from './rows.js'
import { randomSample } from './series.js'
import {
  randomBuckets,
  randomDistinctOn,
  randomGroupingSets,
  randomPivot,
  randomUnnest,
  randomUnpivot,
} from './shapes.js'
import { duckColumns } from './tables.js'
import { randomWindow } from './windows.js'

export interface DuckQuery {
  readonly kind: string
  readonly ours: string
  readonly duck: string
  readonly ordered: boolean
}

export const tableNames = ['a', 'b', 'c'] as const

/** Kinds with their weights. */
const kinds: readonly (readonly [string, number, (random: Random) => Omit<DuckQuery, 'kind'>])[] = [
  ['select', 5, randomSelect],
  ['group', 5, randomGroup],
  ['join', 5, randomJoin],
  ['time join', 2, randomTimeJoin],
  ['nearest', 2, randomNearest],
  ['window', 5, randomWindow],
  ['set', 2, randomSet],
  ['sub-query', 4, randomSubquery],
  ['sample', 3, randomSample],
  ['lateral', 1, randomLateral],
  ['window join', 1, randomWindowJoin],
  ['product', 1, randomProduct],
  ['latest', 1, randomLatest],
  ['distinct', 1, randomDistinct],
  ['pivot', 2, randomPivot],
  ['unpivot', 1, randomUnpivot],
  ['unnest', 1, randomUnnest],
  ['buckets', 3, randomBuckets],
  ['grouping sets', 2, randomGroupingSets],
  ['distinct on', 1, randomDistinctOn],
]

const weights = kinds.flatMap((kind) => Array.from({ length: kind[1] }, () => kind))

export function randomQuery(random: Random): DuckQuery {
  const [kind, , make] = random.pick(weights)
  return { kind, ...make(random) }
}

/** Columns of a table under an alias. */
export function columnsOf(alias: string): Pair[] {
  return duckColumns.map(({ name, type }) => same(type, alias === '' ? name : `${alias}.${name}`))
}

const types: readonly PairType[] = ['int', 'long', 'double', 'text', 'time', 'truth']
const keyTypes: readonly PairType[] = ['int', 'text', 'long']

function items(source: ExpressionSource, count: number, depth: number): Pair[] {
  return Array.from({ length: count }, () => randomExpression(source, source.random.pick(types), depth))
}

/** `x0, x1 ..` behind the expressions. */
export function named(parts: readonly Pair[]): { ours: string; duck: string } {
  return listed(parts.map(({ ours, duck }, index) => ({ ours: `${ours} x${index}`, duck: `${duck} x${index}` })))
}

export function where(source: ExpressionSource): Pair {
  if (source.random.chance(0.25)) return same('truth', '')
  return pair('truth', [randomExpression(source, 'truth', 3)], ' where $1')
}

/** ORDER BY all columns, doubles last (their last digits may differ), mostly with a LIMIT. */
export function tail(random: Random, shown: readonly Pair[]): { text: string; ordered: boolean } {
  if (random.chance(0.5)) return { text: '', ordered: false }
  const places = shown.map((_, index) => index)
  const exact = places.filter((index) => shown[index]?.type !== 'double')
  const first = random.below(exact.length + 1)
  const order = [...exact.slice(first), ...exact.slice(0, first), ...places.filter((index) => !exact.includes(index))]
  const keys = order.map((index) => {
    const descending = random.chance(0.4) ? ' desc' : ''
    return `${index + 1}${descending} nulls ${random.chance(0.5) ? 'first' : 'last'}`
  })
  const limit = random.pick(['', ' limit 10', ' limit 3', ' limit 7 offset 2', ' offset 5'])
  return { text: ` order by ${keys.join(', ')}${limit}`, ordered: true }
}

function randomSelect(random: Random): Omit<DuckQuery, 'kind'> {
  const table = random.pick(tableNames)
  const source = { random, columns: columnsOf('') }
  const shown = items(source, random.between(1, 4), 3)
  const condition = where(source)
  const { text, ordered } = tail(random, shown)
  return {
    ours: `select ${named(shown).ours} from ${table}${condition.ours}${text}`,
    duck: `select ${named(shown).duck} from ${table}${condition.duck}${text}`,
    ordered,
  }
}

// Groups ------------------------------------------------------------------------------------------------------------

const aggregates: readonly (readonly [PairType, readonly PairType[], string, string?])[] = [
  ['long', [], 'count()', 'count(*)'],
  ['long', ['text'], 'count($1)'],
  ['long', ['int'], 'count(distinct $1)'],
  ['long', ['text'], 'count_distinct($1)', 'count(distinct $1)'],
  ['long', ['int'], 'sum($1)'],
  ['long', ['long'], 'sum($1)'],
  ['double', ['double'], 'sum($1)'],
  ['double', ['double'], 'avg($1)'],
  ['double', ['int'], 'avg($1)'],
  ['int', ['int'], 'min($1)'],
  ['int', ['int'], 'max($1)'],
  ['double', ['double'], 'min($1)'],
  ['double', ['double'], 'max($1)'],
  ['time', ['time'], 'min($1)'],
  ['time', ['time'], 'max($1)'],
  ['long', ['long'], 'max($1)'],
  ['text', ['text'], 'min($1)'],
  ['text', ['text'], 'max($1)'],
  ['double', ['double'], 'stddev_samp($1)'],
  ['double', ['double'], 'var_pop($1)'],
  ['double', ['double', 'double'], 'covar_pop($1, $2)'],
]

export function randomAggregate(source: ExpressionSource): Pair {
  const [type, parts, ours, duck] = source.random.pick(aggregates)
  return pair(
    type,
    parts.map((part) => randomExpression(source, part, 2)),
    ours,
    duck ?? ours,
  )
}

function randomGroup(random: Random): Omit<DuckQuery, 'kind'> {
  const table = random.pick(tableNames)
  const source = { random, columns: columnsOf('') }
  const keys = Array.from({ length: random.below(3) }, () => randomExpression(source, random.pick(keyTypes), 2))
  const values = Array.from({ length: random.between(1, 4) }, () => randomAggregate(source))
  const condition = where(source)
  const listedKeys = random.chance(0.3) ? 'all' : keys.map((_, index) => index + 1).join(', ')
  const group = keys.length === 0 ? '' : ` group by ${listedKeys}`
  const having =
    keys.length > 0 && random.chance(0.3)
      ? pair('truth', [compared('>', same('long', 'count(*)'), same('long', '3'))], ' having $1')
      : same('truth', '')
  const { text, ordered } = tail(random, [...keys, ...values])
  const list = named([...keys, ...values])
  return {
    ours: `select ${list.ours} from ${table}${condition.ours}${group}${having.ours}${text}`,
    duck: `select ${list.duck} from ${table}${condition.duck}${group}${having.duck}${text}`,
    ordered,
  }
}

function randomDistinct(random: Random): Omit<DuckQuery, 'kind'> {
  const table = random.pick(tableNames)
  const source = { random, columns: columnsOf('') }
  const shown = Array.from({ length: random.between(1, 3) }, () => randomExpression(source, random.pick(keyTypes), 1))
  const condition = where(source)
  const { text, ordered } = tail(random, shown)
  return {
    ours: `select distinct ${named(shown).ours} from ${table}${condition.ours}${text}`,
    duck: `select distinct ${named(shown).duck} from ${table}${condition.duck}${text}`,
    ordered,
  }
}

// Joins -------------------------------------------------------------------------------------------------------------

/** Booleans have no NULL here, so the side that a join may leave empty shows none. */
const nullable: readonly PairType[] = ['int', 'long', 'double', 'text', 'time']

function randomJoin(random: Random): Omit<DuckQuery, 'kind'> {
  const [left, right, third] = [random.pick(tableNames), random.pick(tableNames), random.pick(tableNames)]
  const kind = random.pick(['join', 'inner join', 'left join', 'right join', 'full join', 'cross join'])
  const source = { random, columns: [...columnsOf('p'), ...columnsOf('q')] }
  const on = kind === 'cross join' ? same('truth', '') : joinCondition(random, source, 'p', 'q')
  const more = kind !== 'cross join' && random.chance(0.25)
  const all = more ? { random, columns: [...source.columns, ...columnsOf('r')] } : source
  const chained = more ? joinCondition(random, all, 'q', 'r') : same('truth', '')
  const tailJoin = (side: 'ours' | 'duck') => (more ? ` left join ${third} r${chained[side]}` : '')
  const condition = where(all)
  const shown = Array.from({ length: random.between(1, 4) }, () =>
    randomExpression(all, random.pick(nullable), random.chance(0.3) ? 1 : 0),
  )
  const grouped = kind === 'cross join' || random.chance(0.4)
  const list = grouped ? [same('long', 'count(*)'), randomAggregate(all)] : shown
  const { text, ordered } = tail(random, list)
  const from = (side: 'ours' | 'duck') => `from ${left} p ${kind} ${right} q${on[side]}${tailJoin(side)}`
  return {
    ours: `select ${named(list).ours} ${from('ours')}${condition.ours}${text}`,
    duck: `select ${named(list).duck} ${from('duck')}${condition.duck}${text}`,
    ordered,
  }
}

function joinCondition(random: Random, source: ExpressionSource, left: string, right: string): Pair {
  const keys = random.pick([['sym'], ['i'], ['sym', 'i'], ['host'], ['sym', 'host'], ['l']])
  const equal = keys.map((key) => compared('=', same('text', `${left}.${key}`), same('text', `${right}.${key}`)))
  const parts = random.chance(0.3) ? [...equal, randomExpression(source, 'truth', 1)] : equal
  const text = parts.map((_, index) => `($${index + 1})`).join(' and ')
  return pair('truth', parts, ` on ${text}`)
}

function randomTimeJoin(random: Random): Omit<DuckQuery, 'kind'> {
  const [left, right] = [random.pick(tableNames), random.pick(tableNames)]
  const lt = random.chance(0.3)
  const keys = random.pick([[], ['sym'], ['sym', 'host'], ['i']])
  const equal = keys.map((key) => timeKey(key))
  const on = equal.length === 0 ? '' : ` on ${equal.map(({ ours }) => ours).join(' and ')}`
  const duckOn = [...equal.map(({ duck }) => duck), `p.ts ${lt ? '>' : '>='} q.ts`].join(' and ')
  const tolerance = random.chance(0.4) ? random.pick(['30m', '2h', '90s', '1d']) : ''
  const source = { random, columns: columnsOf('p') }
  const condition = where(source)
  const within = ['q.ts', 'q.l', 'q.d', 'q.host'].map((column) => {
    if (tolerance === '') return column
    const interval = { '30m': '30 minutes', '2h': '2 hours', '90s': '90 seconds', '1d': '1 day' }[tolerance]
    return `case when q.ts >= p.ts - interval ${interval} then ${column} end`
  })
  const oursTail = tolerance === '' ? '' : ` tolerance ${tolerance}`
  return {
    ours: `select p.ts, p.l, q.ts, q.l, q.d, q.host from ${left} p ${lt ? 'lt' : 'asof'} join ${right} q${on}${oursTail}${condition.ours}`,
    duck: `select p.ts, p.l, ${within.join(', ')} from ${left} p asof left join ${right} q on ${duckOn}${condition.duck}`,
    ordered: false,
  }
}

/** DuckDB's ASOF finds no NULL keys, so they get a value. */
export function timeKey(key: string): Pair {
  const none = key === 'i' ? '-999' : "'~'"
  return pair('truth', [], `p.${key} = q.${key}`, `coalesce(p.${key}, ${none}) = coalesce(q.${key}, ${none})`)
}

// Others ------------------------------------------------------------------------------------------------------------

function randomSet(random: Random): Omit<DuckQuery, 'kind'> {
  const width = random.between(1, 3)
  const list = Array.from({ length: width }, () => random.pick(nullable))
  const branch = () => {
    const source = { random, columns: columnsOf('') }
    const shown = list.map((type) => randomExpression(source, type, 0))
    const condition = where(source)
    const table = random.pick(tableNames)
    return {
      ours: `select ${named(shown).ours} from ${table}${condition.ours}`,
      duck: `select ${named(shown).duck} from ${table}${condition.duck}`,
    }
  }
  const [first, second] = [branch(), branch()]
  const operation = random.pick(['union', 'union all', 'except', 'except all', 'intersect', 'intersect all'])
  const { text, ordered } = tail(
    random,
    list.map((type) => same(type, '')),
  )
  return {
    ours: `${first.ours} ${operation} ${second.ours}${text}`,
    duck: `${combined(operation, first.duck, second.duck, width)}${text}`,
    ordered,
  }
}

/** EXCEPT ALL and INTERSECT ALL keep or drop all rows of a value here, however many the right side has. */
function combined(operation: string, left: string, right: string, width: number): string {
  if (operation !== 'except all' && operation !== 'intersect all') return `${left} ${operation} ${right}`
  const same = Array.from({ length: width }, (_, index) => `y.x${index} is not distinct from z.x${index}`).join(' and ')
  const not = operation === 'except all' ? 'not ' : ''
  return `select * from (${left}) z where ${not}exists (select 1 from (${right}) y where ${same})`
}

function randomSubquery(random: Random): Omit<DuckQuery, 'kind'> {
  const [outer, inner] = [random.pick(tableNames), random.pick(tableNames)]
  const source = { random, columns: columnsOf('p') }
  const inside = { random, columns: columnsOf('q') }
  const own = randomExpression(inside, 'truth', 2)
  const shown = items(source, random.between(1, 3), 1)
  const list = named(shown)
  const truth = same('truth', '')
  const parts = [own, truth]
  const forms: (readonly [string, string])[] = [
    [
      `p.i in (select q.i from ${inner} q where $1)`,
      `exists (select 1 from ${inner} q where $1 and q.i is not distinct from p.i)`,
    ],
    [
      `exists (select q.i from ${inner} q where q.sym = p.sym and $1)`,
      `exists (select q.i from ${inner} q where q.sym is not distinct from p.sym and $1)`,
    ],
    [
      `not exists (select q.i from ${inner} q where q.sym = p.sym and q.l > p.l)`,
      `not exists (select q.i from ${inner} q where q.sym is not distinct from p.sym and q.l > p.l)`,
    ],
    [
      `p.l > (select avg(q.i) from ${inner} q where $1)`,
      `coalesce(p.l > (select avg(q.i) from ${inner} q where $1), false)`,
    ],
    [
      `p.i = (select max(q.i) from ${inner} q where q.sym = p.sym)`,
      `p.i is not distinct from (select max(q.i) from ${inner} q where q.sym is not distinct from p.sym)`,
    ],
  ]
  const [ours, duck] = random.pick(forms)
  const condition = pair('truth', parts, ours, duck)
  const { text, ordered } = tail(random, shown)
  const wrap = random.below(3)
  const build = (side: 'ours' | 'duck') => {
    const body = `select ${list[side]} from ${outer} p where ${condition[side]}`
    if (wrap === 0) return `${body}${text}`
    if (wrap === 1) return `select * from (${body}) z${text}`
    return `with z as (${body}) select * from z${text}`
  }
  return { ours: build('ours'), duck: build('duck'), ordered }
}

function randomLatest(random: Random): Omit<DuckQuery, 'kind'> {
  const table = random.pick(tableNames)
  const source = { random, columns: columnsOf('') }
  const keys = random.pick(['sym', 'host', 'sym, host', 'i'])
  const condition = where(source)
  return {
    ours: `select * from ${table}${condition.ours} latest on ts partition by ${keys}`,
    duck: `select * from ${table}${condition.duck} qualify row_number() over (partition by ${keys} order by ts desc) = 1`,
    ordered: false,
  }
}
