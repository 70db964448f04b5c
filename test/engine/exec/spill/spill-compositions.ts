// Statements of two operators, one over the result of the other, for each pair of operators that keep rows or groups:
// what one of them keeps leaves less memory to the other, and the input of the outer one cannot be read twice. They read
// the tables of spill-matrix.ts. A seed chooses among the forms of each operator.
//
// Every inner query has the columns ts, l LONG, v VARCHAR, y SYMBOL and n LONG, of which (ts, l, v, n) are no key. The
// outer ones depend on no order of equal rows, and on no order of additions of doubles.

import type { Random } from '../../../support/random.js'
import { createRandom } from '../../../support/random.js'
import type { MatrixStatement } from './spill-matrix.js'

type Forms = Readonly<Record<string, readonly string[]>>

const inner: Forms = {
  aggregate: [
    'select max(ts) ts, l, v, last(y) y, count() n from t group by l, v',
    'select max(ts) ts, l, min(v) v, last(y) y, count(distinct i) n from t group by l',
  ],
  distinct: [
    'select distinct ts, l, v, y, l % 1000 n from t',
    'select distinct ts, l, v, y, l % 7 n from (select max(ts) over (partition by l) ts, l, v, y from t)',
  ],
  set: [
    'select ts, l, v, y, i::long n from t union select ts, l, v, y, i::long n from r',
    'select ts, l, v, y, i::long n from t except select ts, l, v, y, i::long n from r',
    'select ts, l, v, y, i::long n from t intersect all select ts, l, v, y, i::long n from t',
  ],
  join: [
    'select t.ts ts, t.l l, r.v v, t.y y, r.i::long n from t left join r on t.l = r.l',
    'select t.ts ts, t.l l, t.v v, r.y y, r.i::long n from t join r on t.v = r.v',
  ],
  window: [
    'select ts, l, v, y, rank() over (order by v) n from t',
    'select ts, l, v, y, row_number() over (partition by l order by ts) n from t',
    'select ts, l, v, y, lag(l, 3) over (order by v, ts) n from t',
  ],
  latest: ['select ts, l, v, y, i::long n from t latest on ts partition by l'],
  asof: [
    'select t.ts ts, t.l l, r.v v, t.y y, r.i::long n from t asof join r on (l)',
    'select t.ts ts, t.l l, r.v v, t.y y, r.i::long n from t lt join r on (y)',
  ],
  'order and limit': [
    'select ts, l, v, y, i::long n from t order by v desc, ts limit 20000',
    'select ts, l, v, y, i::long n from t limit -20000',
    'select ts, l, v, y, i::long n from (select * from t order by l, ts) limit -20000, -10',
  ],
  sample: ['select ts, l, last(v) v, last(y) y, count() n from t sample by 10m'],
  pivot: [
    "select ts, l, v, y, a n from (select * from (select ts, l, v, y, few from t) pivot (count() for few in ('few 1' a, 'few 2' b) group by ts, l, v, y))",
  ],
  'WITH used twice': [
    'with c as (select l, count() n from t group by l) select t.ts ts, a.l l, t.v v, t.y y, b.n n from c a join c b on a.l = b.l + 1000000007 join t on t.l = a.l',
  ],
  filter: ['select ts, l, v, y, i::long n from (select * from t where l % 5 <> 0)'],
}

/** `x` stands for the inner query, `xt` for it in the order of time. */
const outer: Forms = {
  aggregate: [
    'select count(), count(distinct n), max(v), sum(l % 1000) from x',
    'select count(distinct v), count(distinct l), sum(distinct n % 100000) from x',
    'select v, count() c, count(distinct n) d, max(l) e from x group by v',
    'select n % 3 k, count(distinct v) c, count(distinct l) d, min(v) e from x group by n % 3',
    'select l % 4 k, mode(n % 5000) c, count() d from (x order by l, n) group by l % 4',
  ],
  distinct: [
    'select distinct v, n from x',
    'select distinct y, l from x',
    'select distinct on (l) l, n from x order by l, n',
  ],
  set: [
    'select l, v from x union select l, v from r',
    'select l, y from x except select l, y from r',
    'select l, n from r2 intersect all select l, n from x',
  ],
  join: [
    'select x.ts, x.v, r.ts, r.i from x left join r on x.l = r.l',
    'select t.ts, t.v, x.n from t full join x on t.l = x.l and t.ts = x.ts',
    'select x.l, x.n, r.v w from x join r on x.y = r.y',
    'select t.ts, t.l from t where t.l in (select l from x where n % 3 <> 1)',
  ],
  window: [
    'select ts, l, n, sum(n) over (partition by l order by ts, v, n rows 2 preceding) s from x',
    'select l, v, n, rank() over (order by n, v) s from x',
    'select l, n, lead(v) over (order by ts, l, v, n) s, count() over (partition by v) c from x',
  ],
  latest: ['select ts, l, n from (x order by ts, l, v, n) latest on ts partition by l'],
  asof: [
    'select xt.ts, xt.l, xt.n, r.v from xt asof join r on (l)',
    'select t.ts, t.l, xt.n from t asof join xt on (l)',
  ],
  'order and limit': [
    'select * from x order by n desc, v, l, ts limit 20000',
    'select ts, l, v, n from x order by ts, l, v, n limit 5, -5',
    'select ts, l, v, n from (x order by v, n, l, ts) limit -10000',
  ],
  sample: [
    'select ts, y, count() c, max(v) m, count(distinct n) d from xt sample by 10m',
    'select ts, count() c, count(distinct l) d, max(n) e from xt sample by 1d',
    'select ts, l, max(n) m from xt sample by 10m fill(prev)',
  ],
  pivot: ['select * from (select l % 4 k, v, n from x) pivot (count() c, max(n) m for k in (0, 1, 2) group by v)'],
  'WITH used twice': [
    'with c as (x) select a.l, a.n, b.v from c a join c b on a.l = b.l and a.ts = b.ts',
    'with c as (x) select count(), max(l), max(v) from c where n >= (select max(n) / 2 from c)',
  ],
  subquery: [
    'select q.l, q.w, q.m from (select l, v w, n + 1 m from (select * from x where l % 2 = 0)) q where q.l > 1000 order by w, m, l',
  ],
}

const pairsOf = (random: Random): MatrixStatement[] =>
  Object.entries(outer).flatMap(([name, forms]) =>
    Object.entries(inner).map(([under, queries]) => ({
      name: `${name} over ${under}`,
      sql: composed(random.pick(forms), random.pick(queries)),
    })),
  )

function composed(statement: string, query: string): string {
  const sorted = `((select * from (${query}) order by ts, l, v, n) timestamp(ts))`
  return statement
    .replaceAll('r2', '(select l, i::long n from r)')
    .replaceAll(/\b(from|join) xt\b/g, `$1 ${sorted} xt`)
    .replaceAll(/\b(from|join) x\b/g, `$1 (${query}) x`)
    .replaceAll(/\(x\)/g, `(${query})`)
    .replaceAll(/\(x order/g, `(select * from (${query}) order`)
}

/** A statement for each pair of operators. */
export function spillCompositions(seed: number): readonly MatrixStatement[] {
  return pairsOf(createRandom(seed))
}
