// The query types of TSBS cpu-only, after its public description: ten integer metrics for each of 4,000 hosts every ten
// seconds. Most queries cover one, eight or twelve hours, and one, eight or all hosts; their hosts and time ranges vary
// from run to run. Two others read the newest row of each host, and five minutes before a given time.

import type { SqlQuery } from './suite-sql.js'

const metrics = ['user', 'system', 'idle', 'nice', 'iowait', 'irq', 'softirq', 'steal', 'guest', 'guest_nice']
const usages = metrics.map((name) => `usage_${name}`)
const start = Date.UTC(2024, 0, 1)
const minute = 60_000

function range(hours: number, n: number): string {
  const from = start + (3 + 7 * n) * minute
  const text = (at: number): string => new Date(at).toISOString().slice(0, 19)
  return `timestamp >= '${text(from)}' and timestamp < '${text(from + hours * 60 * minute)}'`
}

function hosts(count: number, n: number): string {
  const names = Array.from({ length: count }, (_, index) => `'host_${(count * 97 + index * 211 + n * 131) % 4000}'`)
  return count === 1 ? `hostname = ${names[0]}` : `hostname in (${names.join(', ')})`
}

function each(name: string, count: number): string {
  return usages
    .slice(0, count)
    .map((usage) => `${name}(${usage}) ${name}_${usage}`)
    .join(', ')
}

/** Maximum of so many measurements of so many hosts, by the minute. */
function singleGroupBy(count: number, hostCount: number, hours: number): SqlQuery {
  const where = (n: number): string => `from cpu where ${hosts(hostCount, n)} and ${range(hours, n)}`
  return {
    name: `single-groupby-${count}-${hostCount}-${hours}`,
    sql: (n) => `select timestamp, ${each('max', count)} ${where(n)} sample by 1m`,
    duckdb: (n) =>
      `select time_bucket(interval '1 minute', timestamp) b, ${each('max', count)} ${where(n)} group by b order by b`,
  }
}

/** Maximum of all measurements by the hour, over eight hours. */
function cpuMaxAll(hostCount: number): SqlQuery {
  const where = (n: number): string => `from cpu where ${hosts(hostCount, n)} and ${range(8, n)}`
  return {
    name: `cpu-max-all-${hostCount}`,
    sql: (n) => `select timestamp, ${each('max', 10)} ${where(n)} sample by 1h`,
    duckdb: (n) =>
      `select time_bucket(interval '1 hour', timestamp) b, ${each('max', 10)} ${where(n)} group by b order by b`,
  }
}

/** Mean of so many measurements by host and hour, over twelve hours. */
function doubleGroupBy(name: string, count: number): SqlQuery {
  return {
    name: `double-groupby-${name}`,
    sql: (n) => `select timestamp, hostname, ${each('avg', count)} from cpu where ${range(12, n)} sample by 1h`,
    duckdb: (n) =>
      `select time_bucket(interval '1 hour', timestamp) b, hostname, ${each('avg', count)} from cpu where ${range(12, n)} group by b, hostname order by b, hostname`,
  }
}

/** All rows above a threshold, over twelve hours. */
function highCpu(name: string, hostCount: number): SqlQuery {
  const some = (n: number): string => (hostCount === 0 ? '' : ` and ${hosts(hostCount, n)}`)
  return {
    name: `high-cpu-${name}`,
    sql: (n) => `select * from cpu where usage_user > 90 and ${range(12, n)}${some(n)}`,
  }
}

export const tsbsQueries: readonly SqlQuery[] = [
  singleGroupBy(1, 1, 1),
  singleGroupBy(1, 1, 12),
  singleGroupBy(1, 8, 1),
  singleGroupBy(5, 1, 1),
  singleGroupBy(5, 1, 12),
  singleGroupBy(5, 8, 1),
  cpuMaxAll(1),
  cpuMaxAll(8),
  doubleGroupBy('1', 1),
  doubleGroupBy('5', 5),
  doubleGroupBy('all', 10),
  highCpu('1', 1),
  highCpu('all', 0),
  {
    name: 'lastpoint',
    sql: () => 'select * from cpu latest on timestamp partition by hostname',
    duckdb: () => 'select distinct on (hostname) * from cpu order by hostname, timestamp desc',
  },
  {
    name: 'groupby-orderby-limit',
    sql: (n) =>
      `select timestamp, max(usage_user) from cpu where timestamp < '2024-01-01T11:${30 + (n % 30)}:00' sample by 1m order by timestamp desc limit 5`,
    duckdb: (n) =>
      `select time_bucket(interval '1 minute', timestamp) b, max(usage_user) from cpu where timestamp < '2024-01-01T11:${30 + (n % 30)}:00' group by b order by b desc limit 5`,
  },
]
