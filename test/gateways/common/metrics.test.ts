// Goal: every specified metric is exposed with its labels and type in the text format of Prometheus, names are unique
// and have descriptions, histograms are cumulative, and a prefix of the settings replaces `svc_`.

import { expect, test } from 'vitest'
import { Durations } from '../../../gateways/common/metric.js'
import { metricsSource } from '../../../gateways/common/metrics-source.js'
import { allMetrics } from '../../support/docs/metric-names.js'

/** Name, type, and the values of its label. */
const specified: readonly (readonly [string, string, (readonly [string, readonly string[]])?])[] = [
  ['svc_memory_tag_NATIVE_DEFAULT', 'gauge'],
  ['svc_memory_tag_NATIVE_O3', 'gauge'],
  ['svc_memory_tag_NATIVE_MMAP', 'gauge'],
  ['svc_memory_jvm_heap_used', 'gauge'],
  ['svc_memory_jvm_heap_committed', 'gauge'],
  ['svc_memory_malloc_count', 'gauge'],
  ['svc_memory_free_count', 'gauge'],
  ['svc_connections_active', 'gauge', ['protocol', ['http', 'pg', 'ilp']]],
  ['svc_connections_opened_total', 'counter'],
  ['svc_connections_closed_total', 'counter'],
  ['svc_queries_total', 'counter', ['type', ['select', 'insert', 'update']]],
  ['svc_query_error_counter', 'counter'],
  ['svc_query_cache_hits', 'counter'],
  ['svc_query_cache_misses', 'counter'],
  ['svc_rows_written_total', 'counter'],
  ['svc_wal_segments_total', 'counter'],
  ['svc_wal_apply_lag_seconds', 'gauge'],
  ['svc_commits_total', 'counter'],
  ['svc_commit_duration_seconds', 'histogram'],
  ['svc_table_readers_active', 'gauge'],
  ['svc_table_writers_active', 'gauge'],
  ['svc_reader_leak_counter', 'counter'],
  ['svc_unhandled_errors', 'counter'],
]

async function textOf(prefix = 'svc_'): Promise<string> {
  return (await metricsSource(allMetrics(), prefix).text()).text
}

test.each(specified)('%s is a %s', async (name, type, label) => {
  const text = await textOf()
  expect(text).toMatch(new RegExp(`^# HELP ${name} \\S+`, 'm'))
  expect(text).toMatch(new RegExp(`^# TYPE ${name} ${type}$`, 'm'))
  for (const value of label?.[1] ?? []) expect(text).toContain(`\n${name}{${label?.[0]}="${value}"} `)
  if (label === undefined && type !== 'histogram') expect(text).toMatch(new RegExp(`^${name}(\\{.*\\})? \\S+$`, 'm'))
})

test('names are unique and have descriptions', () => {
  const metrics = allMetrics()
  expect(new Set(metrics.map(({ name }) => name)).size).toBe(metrics.length)
  for (const { description } of metrics) expect(description).toMatch(/^[A-Z].*\.$/)
})

test('process and event loop are there', async () => {
  const text = await textOf()
  for (const name of ['process_cpu_seconds_total', 'process_resident_memory_bytes', 'nodejs_eventloop_lag_seconds']) {
    expect(text).toContain(`# TYPE svc_${name} `)
  }
})

test('the prefix is a setting', async () => {
  const text = await textOf('my_')
  expect(text).toContain('\nmy_unhandled_errors 0')
  expect(text).not.toContain('svc_')
})

test('a histogram is cumulative and ends with +Inf, sum and count', async () => {
  const durations = new Durations()
  for (const seconds of [0.0001, 0.002, 0.002, 3, 100]) durations.observe('/exec', seconds)
  const read = () => durations.histograms('endpoint')
  const metric = { name: 'svc_test_seconds', type: 'histogram', description: 'A test.', read } as const
  const lines = (await metricsSource([metric], 'svc_').text()).text.split('\n')
  const value = (label: string) =>
    lines
      .find((line) => line.startsWith(`svc_test_seconds_${label}`))
      ?.split(' ')
      .at(-1)
  expect(value('bucket{le="0.0005",endpoint="/exec"}')).toBe('1')
  expect(value('bucket{le="0.0025",endpoint="/exec"}')).toBe('3')
  expect(value('bucket{le="5",endpoint="/exec"}')).toBe('4')
  expect(value('bucket{le="+Inf",endpoint="/exec"}')).toBe('5')
  expect(value('count{endpoint="/exec"}')).toBe('5')
  expect(Number(value('sum{endpoint="/exec"}'))).toBeCloseTo(103.0041)
})
