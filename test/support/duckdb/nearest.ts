// Generates random ASOF and LT JOINs with further conditions, a direction and a tolerance for the comparison with
// DuckDB, which runs them as a LATERAL sub-query that orders the right rows by their distance.

import { type Pair, same } from '../pair.js'
import type { Random } from '../random.js'
import { randomExpression } from './expressions.js'
import { columnsOf, type DuckQuery, tableNames, timeKey, where } from './queries.js'

const directions = {
  backward: { written: '', comparison: '<', distance: 'epoch_us(p.ts) - epoch_us(q.ts)' },
  forward: { written: ' direction forward', comparison: '>', distance: 'epoch_us(q.ts) - epoch_us(p.ts)' },
  nearest: { written: ' direction nearest', comparison: '', distance: 'abs(epoch_us(q.ts) - epoch_us(p.ts))' },
} as const

const tolerances = { '30m': 1800, '2h': 7200, '1d': 86_400 } as const

export function randomNearest(random: Random): Omit<DuckQuery, 'kind'> {
  const [left, right] = [random.pick(tableNames), random.pick(tableNames)]
  const lt = random.chance(0.3)
  const towards = random.pick(['backward', 'forward', 'nearest'] as const)
  const { written, comparison, distance } = directions[towards]
  const source = { random, columns: [...columnsOf('p'), ...columnsOf('q')] }
  const keys = random.pick([[], ['sym'], ['sym', 'host'], ['i']]).map(timeKey)
  const conditions = Array.from({ length: random.below(3) }, () => randomExpression(source, 'truth', random.below(2)))
  const on: Pair[] = [...keys, ...conditions]
  // A comparison of the timestamps says the direction too.
  const compares = towards === 'forward' && random.chance(0.5)
  if (compares) on.push(same('truth', `p.ts ${lt ? '<' : '<='} q.ts`))
  const tolerance = random.chance(0.4) ? random.pick(['30m', '2h', '1d'] as const) : null
  const condition = where({ random, columns: columnsOf('p') })
  const text = on.map(({ ours }) => `(${ours})`).join(' and ')
  const within = [
    ...on.map(({ duck }) => `(${duck})`),
    comparison === '' ? (lt ? 'q.ts <> p.ts' : 'true') : `q.ts ${comparison}${lt ? '' : '='} p.ts`,
    tolerance === null ? 'true' : `${distance} <= ${tolerances[tolerance]}000000`,
  ].join(' and ')
  const tail = `${compares ? '' : written}${tolerance === null ? '' : ` tolerance ${tolerance}`}`
  return {
    ours: `select p.ts, p.l, q.ts, q.l, q.d, q.host from ${left} p ${lt ? 'lt' : 'asof'} join ${right} q${on.length === 0 ? '' : ` on ${text}`}${tail}${condition.ours}`,
    duck: `select p.ts, p.l, z.ts, z.l, z.d, z.host from ${left} p left join lateral (select q.ts, q.l, q.d, q.host from ${right} q where ${within} order by ${distance}, q.ts limit 1) z on true${condition.duck}`,
    ordered: false,
  }
}
