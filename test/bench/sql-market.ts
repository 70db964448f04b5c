// The benchmark queries of suite-sql.ts over generated market data (orders and quotes; 20 million orders are ten days).
// In most queries a constant varies from run to run, so that no cached result can be reused.

import type { SqlQuery } from './suite-sql.js'

const day = "timestamp >= '2024-01-03' and timestamp < '2024-01-04'"
/** Two digits of a minute. */
const digits = (minute: number): string => String(minute).padStart(2, '0')
const hour = "timestamp >= '2024-01-03T10:00:00' and timestamp < '2024-01-03T11:00:00'"

export const marketQueries: readonly SqlQuery[] = [
  { name: 'count()', sql: () => 'select count(*) from market' },
  { name: 'filtered count', sql: (n) => `select count(*) from market where price > ${500 + n} and side = 'buy'` },
  {
    name: 'five aggregates',
    sql: (n) => `select count(*), sum(price), avg(amount), min(price), max(qty) + ${n} from market`,
  },
  { name: 'one symbol', sql: (n) => `select avg(price), sum(amount) from market where symbol = 'S${n + 7}'` },
  { name: 'group by symbol', sql: (n) => `select symbol, avg(price) + ${n}, count(*) from market group by symbol` },
  {
    name: 'group by three keys',
    sql: (n) => `select symbol, side, venue, sum(amount) + ${n} from market group by symbol, side, venue`,
  },
  {
    name: 'group by users, top 10',
    sql: (n) => `select user_id, sum(amount) + ${n} s from market group by user_id order by s desc limit 10`,
  },
  {
    name: 'distinct users',
    sql: (n) => `select count_distinct(user_id) + ${n} from market`,
    duckdb: (n) => `select count(distinct user_id) + ${n} from market`,
  },
  {
    name: 'OHLC 1m of a day',
    sql: (n) =>
      `select timestamp, first(price) o, max(price) h, min(price) l, last(price) c, sum(amount) + ${n} v from market where symbol = 'S5' and ${day} sample by 1m`,
    duckdb: (n) =>
      `select time_bucket(interval '1 minute', timestamp) b, first(price order by timestamp) o, max(price) h, min(price) l, last(price order by timestamp) c, sum(amount) + ${n} v from market where symbol = 'S5' and ${day} group by b order by b`,
  },
  {
    name: 'SAMPLE BY 1h',
    sql: (n) => `select timestamp, avg(price) + ${n}, sum(amount) from market sample by 1h`,
    duckdb: (n) =>
      `select time_bucket(interval '1 hour', timestamp) b, avg(price) + ${n}, sum(amount) from market group by b order by b`,
  },
  {
    name: 'LATEST ON',
    sql: () => 'select * from market latest on timestamp partition by symbol',
    duckdb: () => 'select * from market qualify row_number() over (partition by symbol order by timestamp desc) = 1',
  },
  {
    name: 'ASOF JOIN of a day',
    sql: (n) => `select avg(m.price - q.bid) + ${n} from (market where ${day}) m asof join quotes q on (symbol)`,
    duckdb: (n) =>
      `select avg(m.price - q.bid) + ${n} from (select * from market where ${day}) m asof join quotes q on m.symbol = q.symbol and m.timestamp >= q.timestamp`,
  },
  {
    name: 'top 100 by price',
    sql: (n) => `select timestamp, symbol, price + ${n} p from market order by p desc, order_id limit 100`,
  },
  { name: 'LIKE', sql: (n) => `select count(*) + ${n} from market where note like '%iceberg%'` },
  {
    name: 'group by text',
    sql: (n) => `select note, count(*) + ${n} c from market group by note order by c desc, note limit 10`,
  },
  {
    name: 'moving average, one hour',
    sql: (n) =>
      `select timestamp, price + ${n}, avg(price) over (order by timestamp rows between 20 preceding and current row) from market where symbol = 'S3' and ${hour}`,
  },
  {
    name: 'row_number, one hour',
    sql: (n) =>
      `select symbol, price + ${n}, row_number() over (partition by symbol order by timestamp) from market where ${hour}`,
  },
  {
    name: 'one minute',
    sql: (n) =>
      `select * from market where timestamp >= '2024-01-03T10:${digits(n % 59)}:00' and timestamp < '2024-01-03T10:${digits((n % 59) + 1)}:00'`,
  },
  {
    name: 'last 100 rows',
    sql: () => 'select * from market limit -100',
    duckdb: () => 'select * from (select * from market order by timestamp desc limit 100) order by timestamp',
  },
  { name: 'rows of one user', sql: (n) => `select * from market where user_id = ${(n * 7919) % 1_000_000}` },
  { name: 'point look-up', sql: (n) => `select * from market where order_id = ${123_456 + n} limit 5` },
  {
    name: 'SAMPLE BY 10s FILL',
    sql: (n) =>
      `select timestamp, avg(price) + ${n} from market where symbol = 'S3' and ${hour} sample by 10s fill(prev)`,
    duckdb: (n) =>
      `select time_bucket(interval '10 seconds', timestamp) b, avg(price) + ${n} from market where symbol = 'S3' and ${hour} group by b order by b`,
  },
  { name: 'hour of day', sql: (n) => `select hour(timestamp) h, avg(price) + ${n} from market group by h order by h` },
  {
    name: 'IN list',
    sql: (n) => `select count(*), sum(amount) + ${n} from market where symbol in ('S1', 'S20', 'S33', 'S77')`,
  },
  {
    name: 'VWAP of a day',
    sql: (n) => `select symbol, sum(price * amount) / sum(amount) + ${n} from market where ${day} group by symbol`,
  },
  {
    name: 'min, max of the timestamp',
    sql: () => 'select min(timestamp), max(timestamp) from market',
  },
]
