// Generates random expressions of a given type over the columns in scope, as one text in our dialect and one in
// DuckDB's.

import { compared, comparisonOperators, type Pair, type PairType, pair, same } from '../pair.js'
import type { Random } from '../random.js'

export interface ExpressionSource {
  readonly random: Random
  readonly columns: readonly Pair[]
}

type Maker = (source: ExpressionSource, depth: number) => Pair

export function randomExpression(source: ExpressionSource, type: PairType, depth: number): Pair {
  const { random } = source
  if (depth <= 0 || random.chance(0.3)) return leaf(source, type)
  return random.pick(makers[type])(source, depth - 1)
}

/** A column of the type, or a constant. */
function leaf({ random, columns }: ExpressionSource, type: PairType): Pair {
  const own = columns.filter((column) => column.type === type)
  if (own.length > 0 && random.chance(0.8)) return random.pick(own)
  return constants[type](random)
}

const constants: Readonly<Record<PairType, (random: Random) => Pair>> = {
  int: (random) => same('int', String(random.between(0, 9))),
  long: (random) => same('long', `${random.between(0, 2000)}::long`),
  double: (random) => same('double', `${random.between(0, 50)}.25::double`),
  text: (random) => same('text', random.pick(["'s1'", "'s3'", "'alpha'", "'Zed'", "'a%'"])),
  time: (random) => same('time', `'2024-03-${10 + random.below(15)}T06:00:00.000000'::timestamp`),
  truth: (random) => same('truth', random.chance(0.5) ? 'true' : 'false'),
}

const make = (source: ExpressionSource, depth: number, ...types: PairType[]): Pair[] =>
  types.map((type) => randomExpression(source, type, depth))

/** A maker from its parts' types and the two texts. */
function of(type: PairType, parts: readonly PairType[], ours: string, duck = ours): Maker {
  return (source, depth) => pair(type, make(source, depth, ...parts), ours, duck)
}

const comparable: readonly PairType[] = ['int', 'long', 'double', 'text', 'time']

const caseOf =
  (type: PairType): Maker =>
  (source, depth) =>
    pair(type, make(source, depth, 'truth', type, type), '(case when $1 then $2 else $3 end)')

const coalesced =
  (type: PairType): Maker =>
  (source, depth) =>
    pair(type, make(source, depth, type, type), 'coalesce($1, $2)')

const makers: Readonly<Record<PairType, readonly Maker[]>> = {
  int: [
    of('int', ['int', 'int'], '($1 + $2)'),
    of('int', ['int', 'int'], '($1 - $2)'),
    (source) => pair('int', [leaf(source, 'int'), leaf(source, 'int')], '($1 * $2)'),
    (source) => pair('int', [leaf(source, 'int')], '($1 % 7)'),
    (source) => pair('int', [leaf(source, 'int')], '($1 / 3)', '($1 // 3)'),
    of('int', ['int'], '(-$1)'),
    of('int', ['int'], 'abs($1)'),
    of('int', ['text'], 'length($1)', 'coalesce(length($1), -1)'),
    of('int', ['text'], "strpos($1, 'a')"),
    of('int', ['time'], 'hour($1)'),
    of('int', ['time'], 'day($1)'),
    of('int', ['time'], 'month($1)'),
    of('int', ['time'], 'year($1)'),
    of('int', ['time'], 'minute($1)'),
    of('int', ['time'], 'day_of_week($1)', 'isodow($1)'),
    of('int', ['time'], 'week_of_year($1)', 'week($1)'),
    of('int', ['time'], 'extract(quarter from $1)'),
    of('int', ['double'], 'cast($1 as int)', 'try_cast(trunc($1) as int)'),
    of('int', ['int', 'int'], '($1 & $2)'),
    of('int', ['int', 'int'], '($1 | $2)'),
    of('int', ['int'], 'sign($1)'),
    of('int', ['time'], 'second($1)'),
    of('int', ['time'], 'micros($1)', '(microsecond($1) % 1000)'),
    of('int', ['time'], 'millis($1)', '(millisecond($1) % 1000)'),
    of('int', ['time'], 'days_in_month($1)', 'day(last_day($1))'),
    of('int', ['text'], "cast((case when $1 = '42' then '42' else '7' end) as int)"),
    (source) => pair('int', [leaf(source, 'int')], '(case $1 when 1 then 10 when 2 then 20 else -1 end)'),
    of('int', ['int', 'int'], 'nullif($1, $2)'),
    of('int', ['int', 'int'], 'greatest($1, $2)'),
    of('int', ['int', 'int'], 'least($1, $2)'),
    caseOf('int'),
    coalesced('int'),
  ],
  long: [
    of('long', ['long', 'int'], '($1 + $2)'),
    of('long', ['long', 'long'], '($1 - $2)'),
    (source) => pair('long', [leaf(source, 'long')], '($1 % 11)'),
    (source) => pair('long', [leaf(source, 'long')], '($1 / 7)', '($1 // 7)'),
    of('long', ['int'], 'cast($1 as long)'),
    of('long', ['time'], 'cast($1 as long)', 'epoch_us($1)'),
    of('long', ['time', 'time'], "datediff('h', $1, $2)", "abs(datesub('hour', $1, $2))"),
    of('long', ['double'], 'cast($1 as long)', 'try_cast(trunc($1) as bigint)'),
    of('long', ['long'], 'abs($1)'),
    caseOf('long'),
    coalesced('long'),
  ],
  double: [
    of('double', ['double', 'double'], '($1 + $2)'),
    of('double', ['double', 'int'], '($1 - $2)'),
    (source) => pair('double', [leaf(source, 'double'), leaf(source, 'double')], '($1 * $2)'),
    of('double', ['double'], '($1 / 4)'),
    of('double', ['int'], 'cast($1 as double)'),
    of('double', ['double'], 'floor($1)'),
    of('double', ['double'], 'ceil($1)'),
    of('double', ['double'], 'abs($1)'),
    of('double', ['double'], 'round($1)', 'floor($1 + 0.5)'),
    of('double', ['double'], 'sqrt(abs($1))'),
    of('double', ['double'], 'atan($1)'),
    of('double', ['double'], 'sin($1)'),
    // Bounded: of a single infinite value DuckDB says that its variance is 0.
    of('double', ['double'], 'exp(atan($1))'),
    of('double', ['double'], 'ln(abs($1) + 1)'),
    of('double', ['double'], 'power($1, 2)'),
    of('double', ['double'], 'radians($1)'),
    of('double', ['double', 'double'], 'greatest($1, $2)'),
    of('double', ['long'], '$1::double'),
    (source) => pair('double', [leaf(source, 'double')], '($1 % 3)'),
    of('double', ['double', 'double'], 'nullif($1, $2)'),
    caseOf('double'),
    coalesced('double'),
  ],
  text: [
    of('text', ['text'], 'upper($1)'),
    of('text', ['text'], 'lower($1)'),
    of('text', ['text'], 'trim($1)'),
    of('text', ['text'], 'left($1, 3)'),
    of('text', ['text'], 'right($1, 2)'),
    of('text', ['text'], 'substring($1, 2, 3)'),
    of('text', ['text'], "replace($1, 'a', 'xy')"),
    of('text', ['text', 'text'], "concat($1, '-', $2)"),
    of('text', ['text', 'text'], '($1 || $2)', 'concat($1, $2)'),
    of('text', ['int'], 'cast($1 as varchar)'),
    of('text', ['long'], '$1::string', '$1::varchar'),
    of('text', ['text'], 'reverse($1)'),
    of('text', ['text'], 'ltrim($1)'),
    of('text', ['text'], "regexp_replace($1, '[aeiou]', '_')", "regexp_replace($1, '[aeiou]', '_', 'g')"),
    of('text', ['text'], 'to_uppercase($1)', 'upper($1)'),
    of('text', ['text', 'text'], 'nullif($1, $2)'),
    of('text', ['truth'], "(case when $1 then 'yes' else 'no' end)"),
    of('text', ['time'], 'cast($1 as varchar)', "strftime($1, '%Y-%m-%dT%H:%M:%S.%fZ')"),
    of('text', ['text'], "split_part($1, ' ', 1)"),
    of('text', ['text'], "lpad($1, 8, '*')"),
    of('text', ['text'], "rpad($1, 5, '.')"),
    of('text', ['time'], "to_str($1, 'yyyy-MM-dd HH:mm')", "strftime($1, '%Y-%m-%d %H:%M')"),
    caseOf('text'),
    coalesced('text'),
  ],
  time: [
    of('time', ['time', 'int'], "dateadd('d', $2, $1)", '($1 + to_days($2))'),
    of('time', ['time'], "dateadd('M', 1, $1)", '($1 + interval 1 month)'),
    of('time', ['time'], "dateadd('h', -5, $1)", '($1 - interval 5 hour)'),
    of('time', ['time'], "date_trunc('hour', $1)"),
    of('time', ['time'], "date_trunc('month', $1)"),
    of('time', ['time'], "date_trunc('week', $1)"),
    of(
      'time',
      ['time'],
      "timestamp_floor('15m', $1)",
      "time_bucket(interval '15 minutes', $1, timestamp '1970-01-01')",
    ),
    of('time', ['time'], "timestamp_floor('3d', $1)", "time_bucket(interval '3 days', $1, timestamp '1970-01-01')"),
    of('time', ['time'], "date_trunc('day', $1)"),
    of('time', ['time'], "date_trunc('year', $1)"),
    of('time', ['time'], "date_trunc('quarter', $1)"),
    of(
      'time',
      ['time'],
      "timestamp_ceil('h', $1)",
      "(case when date_trunc('hour', $1) = $1 then $1 else date_trunc('hour', $1) + interval 1 hour end)",
    ),
    of('time', ['time'], "dateadd('s', 90, $1)", '($1 + interval 90 second)'),
    of('time', ['time'], "dateadd('y', -1, $1)", '($1 - interval 1 year)'),
    of('time', ['time'], "dateadd('w', 2, $1)", '($1 + interval 14 day)'),
    of('time', ['time', 'time'], 'greatest($1, $2)'),
    of('time', ['time', 'time'], 'least($1, $2)'),
    caseOf('time'),
    coalesced('time'),
  ],
  truth: [
    (source, depth) => {
      const type = source.random.pick(comparable)
      const [left, right] = make(source, depth, type, type) as [Pair, Pair]
      return compared(source.random.pick(comparisonOperators), left, right)
    },
    (source, depth) => {
      const [left, right] = make(source, depth, 'int', source.random.pick(['long', 'double'])) as [Pair, Pair]
      return compared(source.random.pick(comparisonOperators), left, right)
    },
    of('truth', ['truth', 'truth'], '($1 and $2)'),
    of('truth', ['truth', 'truth'], '($1 or $2)'),
    // As a condition it would turn the comparisons within it round: see test/sql/dialect/conditions.slt.
    of('truth', ['truth'], '((not ($1)) = true)', '(not ($1))'),
    (source) => pair('truth', [leaf(source, source.random.pick(comparable))], '$1 is null'),
    (source) => pair('truth', [leaf(source, source.random.pick(comparable))], '$1 is not null'),
    of('truth', ['int'], '$1 in (1, 3, 5, -7)', 'coalesce($1 in (1, 3, 5, -7), false)'),
    of('truth', ['int'], '$1 not in (2, 4, 6)', '(not coalesce($1 in (2, 4, 6), false))'),
    of('truth', ['text'], "$1 in ('s1', 's2', 'alpha')", "coalesce($1 in ('s1', 's2', 'alpha'), false)"),
    of('truth', ['text'], "$1 like '%a%'", "coalesce($1 like '%a%', false)"),
    of('truth', ['text'], "$1 like '_l%'", "coalesce($1 like '_l%', false)"),
    of('truth', ['text'], "$1 ilike 'b%'", "coalesce($1 ilike 'b%', false)"),
    of('truth', ['text'], "$1 ~ '^[a-s][0-9l]'", "coalesce(regexp_matches($1, '^[a-s][0-9l]'), false)"),
    of('truth', ['text'], "starts_with($1, 's')", "coalesce(starts_with($1, 's'), false)"),
    (source) => pair('truth', [leaf(source, 'int')], '$1 between -5 and 8', 'coalesce($1 between -5 and 8, false)'),
    (source) =>
      pair(
        'truth',
        [leaf(source, 'double')],
        '$1 between symmetric 20 and -10.5',
        'coalesce($1 between -10.5 and 20, false)',
      ),
    (source) =>
      pair(
        'truth',
        [source.columns.find(({ type }) => type === 'time') ?? leaf(source, 'time')],
        "$1 in '2024-03'",
        "coalesce($1 >= '2024-03-01'::timestamp and $1 < '2024-04-01'::timestamp, false)",
      ),
  ],
}
