// Generates random queries for the comparison with DuckDB that change the shape of rows: PIVOT, UNPIVOT, UNNEST, buckets
// of time_bucket(), grouping sets, FILTER, DISTINCT ON, and the aggregates that users of other systems know.

import { type Pair, type PairType, pair, same } from '../pair.js'
import type { Random } from '../random.js'
import { randomExpression } from './expressions.js'
import { columnsOf, type DuckQuery, named, randomAggregate, tableNames, tail, where } from './queries.js'

type Query = Omit<DuckQuery, 'kind'>

/** The rows of a table as a sub-query of named columns. */
function source(random: Random, parts: readonly Pair[]): Pair {
  const table = random.pick(tableNames)
  const condition = where({ random, columns: columnsOf('') })
  const list = named(parts)
  const build = (side: 'ours' | 'duck'): string => `(select ${list[side]} from ${table}${condition[side]})`
  return { type: 'truth', ours: build('ours'), duck: build('duck') }
}

export function randomPivot(random: Random): Query {
  const all = { random, columns: columnsOf('') }
  const from = source(random, [same('text', 'sym'), same('text', 'host'), randomExpression(all, 'int', 1)])
  const aggregates = ['sum(x2)', 'max(x2)', 'min(x2)', 'count(x2)', 'avg(x2)']
  const some = Array.from({ length: random.between(1, 2) }, (_, index) => `${random.pick(aggregates)} as v${index}`)
  const values = random.pick(["('s0', 's1')", "('s1' as one, 's2' as two, 's4' as four)", "('s3', 'none')"])
  const key = random.chance(0.7)
  const text = `pivot (${some.join(', ')} for x0 in ${values}${key ? ' group by x1' : ''})`
  // DuckDB also returns groups without any of the values. Without a key, it groups by the other columns.
  const listed = values.replaceAll(/ as \w+/g, '')
  const duck = `(select x0, x2${key ? ', x1' : ''} from ${from.duck} where x0 in ${listed})`
  return { ours: `select * from ${from.ours} ${text}`, duck: `select * from ${duck} ${text}`, ordered: false }
}

export function randomUnpivot(random: Random): Query {
  const all = { random, columns: columnsOf('') }
  const type = random.pick(['int', 'double', 'text', 'time'] as const satisfies readonly PairType[])
  const from = source(random, [same('time', 'ts'), ...Array.from({ length: 3 }, () => randomExpression(all, type, 1))])
  const nulls = random.pick(['', ' include nulls', ' exclude nulls'])
  const columns = random.pick(['x1, x2, x3', 'x3, x1, x2'])
  const text = `unpivot${nulls} (v for name in (${columns}))`
  return {
    ours: `select x0, name, v from ${from.ours} ${text}`,
    duck: `select x0, name, v from ${from.duck} ${text}`,
    ordered: false,
  }
}

export function randomUnnest(random: Random): Query {
  const table = random.pick(tableNames)
  const all = { random, columns: columnsOf('p') }
  const elements = Array.from({ length: random.between(1, 4) }, () => {
    const element = randomExpression(all, 'double', 1)
    return pair('double', [element], 'coalesce($1, -1.5)')
  })
  const list = (side: 'ours' | 'duck'): string => elements.map((element) => element[side]).join(', ')
  const condition = where(all)
  const counted = random.chance(0.5)
  const shown = counted ? 'p.ts, u.v, u.n' : 'p.ts, u.v'
  const names = counted ? ' with ordinality u(v, n)' : ' u(v)'
  return {
    ours: `select ${shown} from ${table} p cross join unnest(array[${list('ours')}])${names}${condition.ours}`,
    duck: `select ${shown} from ${table} p cross join unnest([${list('duck')}]::double[])${names}${condition.duck}`,
    ordered: false,
  }
}

const widths = [
  '30 seconds',
  '7 minutes',
  '1 hour',
  '6 hours',
  '1 day',
  '3 days',
  '1 week',
  '1 month',
  '3 months',
  '1 year',
]

/** Aggregates whose names other systems have. */
const newcomers: readonly (readonly [PairType, readonly PairType[], string, string?])[] = [
  ['long', ['truth'], 'count_if($1)', 'coalesce(count_if($1), 0)'],
  // Without rows, they are NULL in DuckDB.
  ['truth', ['truth'], 'bool_or($1)', 'coalesce(bool_or($1), false)'],
  ['truth', ['truth'], 'bool_and($1)', 'coalesce(bool_and($1), false)'],
  ['double', [], 'median(d)'],
  ['int', [], 'arg_max(i, ts)', 'arg_max_null(i, ts)'],
  ['long', [], 'arg_min(l, ts)', 'arg_min_null(l, ts)'],
  ['int', [], 'any_value(i % 1)'],
  ['double', ['truth'], 'sum(d) filter (where $1)'],
  ['long', ['truth'], 'count(*) filter (where $1)'],
  ['long', ['truth'], 'count(distinct host) filter (where $1)'],
]

function newcomer(random: Random): Pair {
  const all = { random, columns: columnsOf('') }
  if (random.chance(0.3)) return randomAggregate(all)
  const [type, parts, ours, duck] = random.pick(newcomers)
  return pair(
    type,
    parts.map((part) => randomExpression(all, part, 2)),
    ours,
    duck ?? ours,
  )
}

export function randomBuckets(random: Random): Query {
  const table = random.pick(tableNames)
  const condition = where({ random, columns: columnsOf('') })
  const width = random.pick(widths)
  // Months are counted from the first of a month in DuckDB.
  const from = random.chance(0.3) && !/month|year/.test(width) ? ", '2024-01-01T00:00:07'::timestamp" : ''
  const bucket = pair(
    'time',
    [],
    `time_bucket('${width}', ts${from})`,
    `time_bucket(interval '${width}', ts${from})::timestamp`,
  )
  const keys = [bucket, ...(random.chance(0.4) ? [same('text', random.pick(['sym', 'host']))] : [])]
  const shown = [...keys, ...Array.from({ length: random.between(1, 3) }, () => newcomer(random))]
  const { text, ordered } = tail(random, shown)
  const list = named(shown)
  return {
    ours: `select ${list.ours} from ${table}${condition.ours} group by all${text}`,
    duck: `select ${list.duck} from ${table}${condition.duck} group by all${text}`,
    ordered,
  }
}

export function randomGroupingSets(random: Random): Query {
  const table = random.pick(tableNames)
  const condition = where({ random, columns: columnsOf('') })
  const groups = random.pick([
    ...['rollup (sym, host)', 'cube (sym, i)', 'grouping sets ((sym), (host), ())', 'grouping sets ((sym, i), (i))'],
    ...['rollup (sym, i, host)', 'grouping sets ((sym, host), (sym))'],
  ])
  const keys = ['sym', 'host', 'i'].filter((key) => groups.includes(key)).map((key) => same('text', key))
  const shown = [...keys, ...Array.from({ length: random.between(1, 3) }, () => newcomer(random))]
  const list = named(shown)
  return {
    ours: `select ${list.ours} from ${table}${condition.ours} group by ${groups}`,
    duck: `select ${list.duck} from ${table}${condition.duck} group by ${groups}`,
    ordered: false,
  }
}

export function randomDistinctOn(random: Random): Query {
  const table = random.pick(tableNames)
  const condition = where({ random, columns: columnsOf('') })
  const key = random.pick(['sym', 'host', 'sym, host', 'i'])
  const order = key.split(', ').map((name) => `${name} nulls first`)
  const direction = random.pick(['', ' desc'])
  const text = `select distinct on (${key}) ts, sym, i, l from ${table}`
  const end = ` order by ${order.join(', ')}, ts${direction}`
  return { ours: `${text}${condition.ours}${end}`, duck: `${text}${condition.duck}${end}`, ordered: false }
}
