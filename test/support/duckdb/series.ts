// Generates random SAMPLE BY queries for the comparison with DuckDB, each with an equivalent GROUP BY time_bucket for
// DuckDB.

import { type Pair, same } from '../pair.js'
import type { Random } from '../random.js'
import { columnsOf, type DuckQuery, named, randomAggregate, tableNames, tail, where } from './queries.js'

const intervals: readonly (readonly [string, string])[] = [
  ['30s', '30 seconds'],
  ['7m', '7 minutes'],
  ['1h', '1 hour'],
  ['6h', '6 hours'],
  ['1d', '1 day'],
  ['1w', '7 days'],
  ['1M', '1 month'],
  ['1y', '1 year'],
]

export function randomSample(random: Random): Omit<DuckQuery, 'kind'> {
  const table = random.pick(tableNames)
  const source = { random, columns: columnsOf('') }
  const [interval, words] = random.pick(intervals)
  const sourcePosition = interval === '1w' ? '1970-01-05' : '1970-01-01'
  const bucket: Pair = {
    type: 'time',
    ours: 'ts',
    duck: `time_bucket(interval '${words}', ts, timestamp '${sourcePosition}')`,
  }
  const keys = random.chance(0.5) ? [same('text', random.pick(['sym', 'host']))] : []
  const values = Array.from({ length: random.between(1, 3) }, () => randomAggregate(source))
  const condition = where(source)
  const list = named([bucket, ...keys, ...values])
  const { text, ordered } = tail(random, [bucket, ...keys, ...values])
  const group = ` group by ${[bucket, ...keys].map((_, index) => index + 1).join(', ')}`
  return {
    ours: `select ${list.ours} from ${table}${condition.ours} sample by ${interval}${text}`,
    duck: `select ${list.duck} from ${table}${condition.duck}${group}${text}`,
    ordered,
  }
}
