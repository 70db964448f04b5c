// Goal: the console's charts show missing intervals as gaps and connect all other points of a series; zooming requests
// the visible time range with a fitting SAMPLE BY interval; the live view parses metrics as the server writes them.

import { describe, expect, test } from 'vitest'
import {
  chartData,
  firstChoice,
  gapsOf,
  largest,
  rightColumns,
  stacked,
} from '../../../../gateways/console/app/chart-data.js'
import { byLabel, parseMetrics, quantile, rate, total } from '../../../../gateways/console/app/metrics-text.js'
import { intervalFor, intervalMs, narrowed, refine, sampleInterval } from '../../../../gateways/console/app/refine.js'

const columns = [
  { name: 'ts', type: 'TIMESTAMP' },
  { name: 'room', type: 'SYMBOL' },
  { name: 'v', type: 'DOUBLE' },
]
const at = (minute: number): string => new Date(Date.UTC(2026, 2, 2, 0, minute)).toISOString()

describe('series', () => {
  test('a hole in regular times is a gap', () => {
    const rows = [0, 5, 10, 30, 35].map((minute) => [at(minute), 'a', minute])
    const { series } = chartData(columns, rows, { x: 0, by: 1, values: [2] })
    expect(series[0]?.points).toEqual([0, 5, 10, null, 30, 35])
  })

  test('points of other series do not cut a line', () => {
    const rows = [0, 5, 10].flatMap((minute) => [
      [at(minute), 'a', 1],
      [at(minute + 2), 'b', 2],
    ])
    const { series, x } = chartData(columns, rows, { x: 0, by: 1, values: [2] })
    expect(x).toHaveLength(6)
    expect(series.map(({ label }) => label)).toEqual(['a', 'b'])
    expect(series[0]?.points).toEqual([1, undefined, 1, undefined, 1, undefined])
  })

  test('NULL is a gap, and so is the silence of one series alone', () => {
    const rows = [
      ...[0, 5, 10, 15, 20, 25].map((minute) => [at(minute), 'a', minute === 10 ? null : 1]),
      ...[0, 5, 20, 25].map((minute) => [at(minute), 'b', 2]),
    ]
    const { series } = chartData(columns, rows, { x: 0, by: 1, values: [2] })
    expect(series[0]?.points).toEqual([1, 1, null, null, 1, 1, 1])
    expect(series[1]?.points).toEqual([2, 2, null, null, null, 2, 2])
  })

  test('irregular times have a gap only where it is long', () => {
    expect(gapsOf([0, 1, 5, 6, 9, 14, 15])).toEqual([])
    expect(gapsOf([0, 1, 5, 6, 9, 14, 15, 500, 503])).toHaveLength(1)
    expect(gapsOf([0, 1])).toEqual([])
  })

  test('rows in any order give lines in order', () => {
    const rows = [10, 0, 5].map((minute) => [at(minute), 'a', minute])
    expect(chartData(columns, rows, { x: 0, by: 1, values: [2] }).series[0]?.points).toEqual([0, 5, 10])
  })

  test('what is drawn at first', () => {
    expect(firstChoice(columns)).toEqual({ x: 0, by: 1, values: [2] })
    expect(firstChoice([{ name: 'a', type: 'INT' }])).toBeNull()
    expect(firstChoice([{ name: 'a', type: 'SYMBOL' }])).toBeNull()
  })

  test('sums of stacked series, the largest ones, and the axes', () => {
    const series = [
      { label: 'a', column: 1, points: [1, 2, null], min: 1, max: 2, count: 2 },
      { label: 'b', column: 2, points: [10, undefined, 30], min: 10, max: 30, count: 2 },
    ]
    expect(stacked(series, 3)).toEqual([
      [1, 2, null],
      [11, 12, 30],
    ])
    const ended = { label: 'c', column: 1, points: [undefined, 5, undefined], min: 5, max: 5, count: 1 }
    expect(stacked([ended], 3)).toEqual([[null, 5, null]])
    expect([...largest(series, 1)]).toEqual(['b'])
    expect([...rightColumns(series)]).toEqual([2])
  })
})

describe('a zoom', () => {
  const range = { fromMs: Date.UTC(2026, 2, 5), toMs: Date.UTC(2026, 2, 5, 1) }
  const condition = "ts >= '2026-03-05T00:00:00.000000Z' AND ts < '2026-03-05T01:00:00.000000Z'"

  test('takes the interval that gives enough points, and not more', () => {
    expect(intervalFor(range, 400)).toBe('10s')
    expect(intervalFor({ fromMs: 0, toMs: 365 * 86_400_000 }, 400)).toBe('1d')
    expect(intervalFor({ fromMs: 0, toMs: 10 }, 1000)).toBe('1T')
    expect([intervalMs('15m'), intervalMs('h'), intervalMs('x')]).toEqual([900_000, 3_600_000, null])
  })

  test('adds a condition before SAMPLE BY', () => {
    const sql = 'SELECT ts, avg(v) FROM t SAMPLE BY 1h FILL(NULL)'
    expect(refine(sql, 'ts', range, 400)).toBe(`SELECT ts, avg(v) FROM t WHERE ${condition} SAMPLE BY 10s FILL(NULL)`)
  })

  test('keeps the conditions of the query', () => {
    const sql = "SELECT ts, avg(v) FROM t WHERE a = 1 OR b = 'where' SAMPLE BY 1h"
    expect(refine(sql, 'ts', range, 400)).toBe(
      `SELECT ts, avg(v) FROM t WHERE (a = 1 OR b = 'where') AND ${condition} SAMPLE BY 10s`,
    )
  })

  test('finds the column behind an alias, and the query within a query', () => {
    expect(refine('SELECT t.ts AS time, v FROM t SAMPLE BY 1h', 'time', range, 400)).toContain('WHERE t.ts >= ')
    expect(refine('SELECT * FROM (SELECT ts, max(v) FROM t SAMPLE BY 1h) WHERE x > 1', 'ts', range, 400)).toBe(
      `SELECT * FROM (SELECT ts, max(v) FROM t WHERE ${condition} SAMPLE BY 10s) WHERE x > 1`,
    )
    expect(refine("SELECT date_trunc('hour', ts) AS time, v FROM t SAMPLE BY 1h", 'time', range, 400)).toBeNull()
  })

  test('replaces the range of FROM and TO, and never makes the interval coarser', () => {
    const sql = "SELECT ts, avg(v) FROM t SAMPLE BY 1s FROM '2026-01-01' TO '2027-01-01' FILL(NULL)"
    expect(refine(sql, 'ts', range, 100)).toBe(`SELECT ts, avg(v) FROM t WHERE ${condition} SAMPLE BY 1s FILL(NULL)`)
  })

  test('narrows a query without SAMPLE BY', () => {
    expect(sampleInterval('SELECT * FROM t')).toBeNull()
    expect(sampleInterval('select * from t sample by 5m')).toBe('5m')
    expect(refine('SELECT * FROM t', 'ts', range, 400)).toBeNull()
    expect(narrowed('SELECT * FROM t', 'ts', range)).toBe(`SELECT * FROM (SELECT * FROM t\n) WHERE ${condition}`)
  })
})

describe('metrics', () => {
  const text = (rows: number): string => `# HELP a b
# TYPE svc_rows_total counter
svc_rows_total{protocol="http",note="a\\"b"} ${rows}
svc_rows_total{protocol="pg"} 5
svc_seconds_bucket{le="0.1"} ${rows}
svc_seconds_bucket{le="1"} ${rows + 1}
svc_seconds_bucket{le="+Inf"} ${rows + 1}
svc_plain 1.5e3
`
  const before = { atMs: 1000, samples: parseMetrics(text(10)) }
  const now = { atMs: 3000, samples: parseMetrics(text(30)) }

  test('have values by label, and rates', () => {
    expect(total(now.samples, 'svc_rows_total')).toBe(35)
    expect(total(now.samples, 'svc_plain')).toBe(1500)
    expect(now.samples[0]?.labels).toEqual({ protocol: 'http', note: 'a"b' })
    expect([...byLabel(now.samples, 'svc_rows_total', 'protocol')]).toEqual([
      ['http', 30],
      ['pg', 5],
    ])
    expect(rate(before, now, 'svc_rows_total')).toBe(10)
    expect(rate(undefined, now, 'svc_rows_total')).toBe(0)
    expect(rate(now, { atMs: 5000, samples: before.samples }, 'svc_rows_total')).toBe(0)
  })

  test('have quantiles since the last reading', () => {
    expect(quantile(before, now, 'svc_seconds', 0.99)).toBe(0.1)
    expect(quantile(undefined, now, 'svc_seconds', 0.99)).toBe(1)
    expect(quantile(now, now, 'svc_seconds', 0.99)).toBeNull()
  })
})
