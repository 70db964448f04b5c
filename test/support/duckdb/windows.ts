// Generates random window functions for the comparison with DuckDB, with every kind of frame. The order within a
// window is always total, so that there is one valid result.

import { type Pair, type PairType, pair, same } from '../pair.js'
import type { Random } from '../random.js'
import { columnsOf, type DuckQuery, named, tableNames, tail, where } from './queries.js'

/** Functions that read the frame. */
const framed: readonly (readonly [PairType, string, string?])[] = [
  ['double', 'sum(d)'],
  ['double', 'avg(d)'],
  ['double', 'sum(i)', 'sum(i::double)'],
  ['double', 'avg(l)', 'avg(l::double)'],
  ['double', 'stddev_samp(d)'],
  ['double', 'var_pop(d)'],
  ['long', 'count(*)'],
  ['long', 'count(d)'],
  ['double', 'min(d)'],
  ['double', 'max(d)'],
  ['int', 'first_value(i)'],
  ['double', 'last_value(d)'],
  ['int', 'nth_value(i, 2)'],
  ['int', 'first_value(i) ignore nulls', 'first_value(i ignore nulls)'],
  ['double', 'last_value(d) ignore nulls', 'last_value(d ignore nulls)'],
]

const unframed: readonly (readonly [PairType, string, string?])[] = [
  ['long', 'row_number()'],
  ['long', 'rank()'],
  ['long', 'dense_rank()'],
  ['double', 'percent_rank()'],
  ['double', 'cume_dist()'],
  ['long', 'ntile(3)'],
  ['int', 'lag(i)'],
  ['double', 'lead(d, 2)'],
  ['long', 'lag(l, 1, -1)', 'lag(l, 1, -1::bigint)'],
  ['double', 'lag(d) ignore nulls', 'lag(d ignore nulls)'],
]

export function randomWindow(random: Random): Omit<DuckQuery, 'kind'> {
  const table = random.pick(tableNames)
  const source = { random, columns: columnsOf('') }
  const calls = Array.from({ length: random.between(1, 3) }, () => randomCall(random))
  const shown = [same('time', 'ts'), same('text', 'sym'), ...calls]
  const condition = where(source)
  const { text, ordered } = tail(random, shown)
  const list = named(shown)
  const qualify = random.chance(0.3) ? random.pick(qualifying) : ''
  return {
    ours: `select ${list.ours} from ${table}${condition.ours}${qualify}${text}`,
    duck: `select ${list.duck} from ${table}${condition.duck}${qualify}${text}`,
    ordered,
  }
}

const qualifying = [
  ' qualify row_number() over (partition by sym order by ts desc) <= 2',
  ' qualify count(*) over (partition by host) > 3',
  ' qualify coalesce(max(d) over (partition by sym order by ts rows 3 preceding), -999) = coalesce(d, -998)',
]

function randomCall(random: Random): Pair {
  const partition = random.pick(['', 'partition by sym ', 'partition by host ', 'partition by sym, i % 2 '])
  const [type, ours, duck] = random.pick(random.chance(0.6) ? framed : unframed)
  const withFrame = framed.some(([, name]) => name === ours)
  const frame = withFrame ? randomFrame(random, !ours.includes('_value')) : same('truth', '')
  const order = !withFrame || !frame.ours.startsWith('range') ? random.pick(orders) : orderOfRange(frame.ours)
  return pair(
    type,
    [frame],
    `${ours} over (${partition}${order}$1)`,
    `${duck ?? ours} over (${partition}${order
      .replaceAll(/(sym|i)( desc)?,/g, '$1$2 nulls first,')

      .replace('desc nulls first', 'desc nulls last')}$1)`,
  )
}

/** Distances without a unit are those of numbers. */
function orderOfRange(frame: string): string {
  return /hour|minute|day/.test(frame) ? 'order by ts ' : 'order by d '
}

const orders = ['order by ts ', 'order by ts desc ', 'order by i, ts ', 'order by i desc, ts ', 'order by sym, ts ']

/** `byNumber`: rows of equal numbers may come in any order. */
function randomFrame(random: Random, byNumber: boolean): Pair {
  const exclude = random.pick(['', '', '', ' exclude current row'])
  if (random.chance(0.2)) return same('truth', '')
  if (byNumber && random.chance(0.15)) {
    const low = random.pick(['unbounded preceding', '2.5 preceding', '10 preceding', 'current row'])
    const high = random.pick(['current row', '0.25 following', '3 following', 'unbounded following'])
    return same('truth', `range between ${low} and ${high}`)
  }
  if (random.chance(0.3)) {
    const [ours, duck] = random.pick([
      ['2 hour', "interval '2 hours'"],
      ['30 minute', "interval '30 minutes'"],
      ['1 day', "interval '1 day'"],
    ] as const)
    const high = random.pick(['current row', 'following'])
    const end = (text: string) => (high === 'following' ? `${text} following` : high)
    return pair(
      'truth',
      [],
      `range between ${ours} preceding and ${end(ours)}${exclude}`,
      `range between ${duck} preceding and ${end(duck)}${exclude}`,
    )
  }
  const unit = random.chance(0.3) ? 'groups' : 'rows'
  const low = random.pick(['unbounded preceding', '3 preceding', '1 preceding', 'current row'])
  const high = random.pick(['current row', '1 following', '4 following', 'unbounded following'])
  return same('truth', `${unit} between ${low} and ${high}${exclude}`)
}
