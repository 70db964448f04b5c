// Goal: the Grafana dashboards over the PostgreSQL data source show data without configuration. Method: the SQL of each
// panel and variable runs over the PostgreSQL protocol, on the tables of `penstock demo`, with Grafana's macros
// replaced as Grafana replaces them.

import { execFileSync } from 'node:child_process'
import type pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { dashboardOf, instant } from '../support/grafana.js'
import { command, TestServer } from '../support/server.js'

const server = new TestServer(['memory.bytes=512m', 'query.threads=1'])
let client: pg.Client

beforeAll(async () => {
  await server.start()
  execFileSync(process.execPath, [command, 'demo', '--url', `http://${server.address('http')}`])
  client = await server.connect()
  // A line that cannot be stored is one of the things that the dashboards show.
  expect((await server.write('sensors_seen value=1i')).status).toBe(204)
  expect((await server.write('sensors_seen value="x"')).status).toBe(400)
})

afterAll(() => server.remove())

test.each(['rooms', 'activity'])('%s', async (name) => {
  const { time, templating, panels } = dashboardOf(`grafana/${name}.json`)
  const [from, to] = [instant(time.from), instant(time.to)]
  const variables = new Map<string, string>()
  for (const { name, type, query } of templating.list) {
    if (type !== 'query') continue
    const { rows } = await client.query({ text: query, rowMode: 'array' })
    variables.set(name, rows.map(([value]) => `'${value}'`).join(','))
  }
  const empty: string[] = []
  for (const { title, targets } of panels) {
    for (const { rawSql, format } of targets) {
      const sql = rawSql
        .replace(/\$__timeFilter\(([^)]+)\)/g, `$1 BETWEEN '${from}' AND '${to}'`)
        .replaceAll('$__interval', '30m')
        .replace(/\$(\w+)/g, (whole, name: string) => variables.get(name) ?? whole)
      const { rows, fields } = await client.query<Record<string, unknown>>(sql).catch((error: Error) => {
        throw new Error(`${title}: ${error.message}\n${sql}`)
      })
      if (rows.length === 0) empty.push(title)
      if (format === 'time_series') expect(fields[0]?.name, title).toBe('time')
      const times = rows.map(({ time }) => Number(time))
      expect(times, `${title}: Grafana wants time in ascending order`).toEqual(
        format === 'time_series' ? times.toSorted((a, b) => a - b) : times,
      )
    }
  }
  expect(empty, 'panels without data').toEqual([])
})
