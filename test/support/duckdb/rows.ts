// Generates random queries for the comparison with DuckDB that are evaluated row by row: LATERAL, WINDOW JOIN, and
// cross products with conditions in WHERE.

import { compared, type Pair, pair, same } from '../pair.js'
import type { Random } from '../random.js'
import { randomExpression } from './expressions.js'
import { columnsOf, type DuckQuery, named, randomAggregate, tableNames, tail, where } from './queries.js'

const keysOf = (random: Random): readonly string[] => random.pick([['sym'], ['sym', 'host'], ['i'], ['host']])

function equal(keys: readonly string[]): Pair {
  const parts = keys.map((key) => compared('=', same('text', `q.${key}`), same('text', `p.${key}`)))
  return pair('truth', parts, parts.map((_, index) => `$${index + 1}`).join(' and '))
}

export function randomLateral(random: Random): Omit<DuckQuery, 'kind'> {
  const [left, right] = [random.pick(tableNames), random.pick(tableNames)]
  const key = equal(keysOf(random))
  const inside = { random, columns: columnsOf('q') }
  const more = random.chance(0.5) ? compared('<=', same('time', 'q.ts'), same('time', 'p.ts')) : same('truth', 'true')
  const condition = pair('truth', [key, more], '$1 and $2')
  const values = [randomAggregate(inside), randomAggregate(inside)]
  const rest = random.pick([
    { items: named(values), tail: '', join: 'cross join lateral', on: '' },
    { items: named([same('long', 'q.l'), same('time', 'q.ts')]), tail: '', join: 'join lateral', on: ' on true' },
    {
      items: named([same('long', 'q.l'), same('time', 'q.ts')]),
      tail: ' order by q.ts desc limit 2',
      join: 'left join lateral',
      on: ' on true',
    },
  ])
  const outer = where({ random, columns: columnsOf('p') })
  const build = (side: 'ours' | 'duck') =>
    `select p.ts, p.sym, z.x0, z.x1 from ${left} p ${rest.join} (select ${rest.items[side]} from ${right} q where ${condition[side]}${rest.tail}) z${rest.on}${outer[side]}`
  return { ours: build('ours'), duck: build('duck'), ordered: false }
}

export function randomWindowJoin(random: Random): Omit<DuckQuery, 'kind'> {
  const [left, right] = [random.pick(tableNames), random.pick(tableNames)]
  const keys = random.pick([[], ['sym'], ['i', 'sym']])
  const key = keys.length === 0 ? same('truth', 'true') : equal(keys)
  const [low, high] = [random.pick([0, 10, 120]), random.pick([0, 7, 300])]
  const values = [randomAggregate(source(random)), randomAggregate(source(random))]
  const begin = `p.ts - interval ${low} minute`
  const span = `q.ts between ${begin} and p.ts + interval ${high} minute`
  const prevailing = random.chance(0.5)
  const before = `q.ts = (select max(y.ts) from ${right} y where ${key.duck.replaceAll('q.', 'y.')} and y.ts <= ${begin})`
  const inside = prevailing ? `(${span} or ${before})` : span
  const results = values.map(({ duck }) => `(select ${duck} from ${right} q where ${key.duck} and ${inside})`)
  const on = keys.length === 0 ? '' : ` on ${key.ours}`
  const bound = (minutes: number, word: string) => (minutes === 0 ? 'current row' : `${minutes} minute ${word}`)
  const range = `range between ${bound(low, 'preceding')} and ${bound(high, 'following')}`
  const include = prevailing ? random.pick(['', ' include prevailing']) : ' exclude prevailing'
  return {
    ours: `select p.ts, p.l, ${values.map(({ ours }, index) => `${ours} v${index}`).join(', ')} from ${left} p window join ${right} q${on} ${range}${include}`,
    duck: `select p.ts, p.l, ${results.join(', ')} from ${left} p`,
    ordered: false,
  }
}

const source = (random: Random) => ({ random, columns: columnsOf('q') })

/** `from a p, b q where ..`: the conditions are the join. */
export function randomProduct(random: Random): Omit<DuckQuery, 'kind'> {
  const [left, right] = [random.pick(tableNames), random.pick(tableNames)]
  const both = { random, columns: [...columnsOf('p'), ...columnsOf('q')] }
  const upper = compared('=', same('text', 'upper(p.host)'), same('text', 'upper(q.host)'))
  const key = random.chance(0.3) ? upper : equal(keysOf(random))
  const condition = random.chance(0.5) ? pair('truth', [key, randomExpression(both, 'truth', 1)], '$1 and ($2)') : key
  const shown = [same('time', 'p.ts'), same('time', 'q.ts'), same('long', 'q.l'), same('text', 'p.host')]
  const { text, ordered } = tail(random, shown)
  const build = (side: 'ours' | 'duck') =>
    `select ${named(shown)[side]} from ${left} p, ${right} q where ${condition[side]}${text}`
  return { ours: build('ours'), duck: build('duck'), ordered }
}
