// Statements whose state outgrows a small memory: each operator that spills, over keys of each type, for the tests that
// compare results with little and with ample memory. They read two tables, `t` and `r`:
//
//   ts  designated timestamp     l  LONG     i  INT     d  DOUBLE     v  VARCHAR     y  SYMBOL     u  UUID
//   p   DECIMAL                  few  SYMBOL of four values           one  INT, always 1
//
// Keys of the two tables match for about half of the rows. No result depends on the order of additions of doubles.

const keys = ['l', 'i', 'd', 'v', 'y', 'u', 'p', 'l, v', 'y, i', 'few, d, u']
const aggregates = 'count() n, sum(l) a, min(v) b, last(i) c'

const joined = (key: string): string =>
  key
    .split(', ')
    .map((name) => `t.${name} = r.${name}`)
    .join(' and ')

const joins = ['join', 'left join', 'right join', 'full join']
const joinKeys = ['l', 'i', 'v', 'y', 'u', 'l, v', 'y, few']
const windows = [
  ['row_number()', 'order by v'],
  ['sum(l)', 'order by i, ts rows between 3 preceding and 2 following'],
  ['lag(v)', 'order by ts'],
  ['rank()', 'order by i'],
  ['max(d)', 'order by i, ts'],
]

export interface MatrixStatement {
  readonly name: string
  readonly sql: string
}

const named = (name: string, statements: readonly string[]): MatrixStatement[] =>
  statements.map((sql) => ({ name, sql }))

export const spillMatrix: readonly MatrixStatement[] = [
  ...named(
    'GROUP BY',
    keys.map((key) => `select ${key}, ${aggregates} from t group by ${key}`),
  ),
  ...named(
    'DISTINCT',
    keys.map((key) => `select distinct ${key}, v w, p o, one from t`),
  ),
  ...named(
    'sets',
    ['union', 'except', 'intersect', 'except all', 'intersect all'].flatMap((operation) =>
      ['l, y', 'v'].map((key) => `select ${key} from t ${operation} select ${key} from r`),
    ),
  ),
  ...named(
    'joins',
    joins.flatMap((kind) =>
      joinKeys.map((key) => `select t.ts, t.l, t.v, r.ts, r.i, r.v w from t ${kind} r on ${joined(key)}`),
    ),
  ),
  ...named(
    'joins without keys',
    ['few left join r', 'few join r', 'r right join few', 'few full join r'].map(
      (sides) =>
        `select few.ts, few.v, r.ts, r.i, r.v w, r.u, r.p from ${sides.replace('few', '(select * from t limit 40) few')} on few.l < r.l and r.l < few.l + 50000000000`,
    ),
  ),
  ...named(
    'windows with PARTITION BY',
    windows.flatMap(([call, order], index) =>
      keys
        .filter((_, at) => at % windows.length === index)
        .map((key) => `select ts, ${call} over (partition by ${key} ${order}) w from t`),
    ),
  ),
  ...named(
    'windows without PARTITION BY',
    windows.map(([call, order]) => `select ts, v, u, p, ${call} over (${order}) w from t`),
  ),
  ...named(
    'LATEST ON',
    keys.map((key) => `select ts, i, v from t latest on ts partition by ${key}`),
  ),
  ...named(
    'joins by time',
    ['asof', 'lt', 'splice'].flatMap((kind) =>
      ['l', 'v', 'y'].map((key) => `select t.ts, t.i, r.ts, r.v from t ${kind} join r on (${key})`),
    ),
  ),
  ...named(
    'FILL',
    ['null', 'prev', 'linear', '0, 1'].map(
      (fill, index) => `select ts, ${keys[index + 1]}, sum(l) a, count() b from t sample by 10m fill(${fill})`,
    ),
  ),
  ...named(
    'ORDER BY',
    keys.map((key) => `select ts, l, v from t order by ${key}, ts desc`),
  ),
]
