// Goal: a materialized view whose query groups by date_trunc(), time_bucket() or a similar function, which the server
// stores as a SAMPLE BY, has the rows of its query. Method: random timestamps, many of them near the hours at which UTC
// offsets change; views with many such calls, in UTC and in two time zones, are compared with their queries.

import { afterAll, beforeAll, expect, test } from 'vitest'
import { type EngineClient, engineClient } from '../../sql/clients.js'
import { createRandom } from '../../support/random.js'

const zones = ['America/Sao_Paulo', 'Australia/Lord_Howe']
const units = ['hour', 'day', 'week', 'quarter']
const widths = ['5 hours', '3 weeks']
const intervals = ['7h', '2w', '5M']

const calls = [
  ...zones.flatMap((zone) => units.map((unit) => `date_trunc('${unit}', ts, '${zone}')`)),
  ...units.map((unit) => `date_trunc('${unit}', ts)`),
  ...widths.flatMap((width) => [`time_bucket('${width}', ts)`, `date_bin('${width}', ts, '2001-01-01T03:00:30')`]),
  ...intervals.flatMap((interval) => [
    `timestamp_floor('${interval}', ts)`,
    `timestamp_floor('${interval}', ts, null, '01:20', null)`,
  ]),
]

let client: EngineClient

beforeAll(async () => {
  client = await engineClient(true, 'off')
})

afterAll(() => client.close())

test.each(['timestamp', 'timestamp_ns'])(
  'views by GROUP BY are their queries: %s',
  async (type) => {
    const random = createRandom(type.length)
    await client.rows(`create table ticks (ts ${type}, v long) timestamp(ts) partition by year`)
    const time = (): string => {
      const year = 1995 + random.below(35)
      const day = random.chance(0.5) ? random.below(31) : 24 + random.below(7)
      const ms = Date.UTC(
        year,
        random.pick([1, 2, 3, 8, 9, 10, random.below(12)]),
        day,
        random.below(48),
        random.below(60),
      )
      return new Date(ms + random.below(2) * random.below(60_000)).toISOString()
    }
    for (let batch = 0; batch < 3; batch++) {
      const rows = Array.from({ length: 500 }, () => `('${time()}', ${random.below(100)})`)
      await client.rows(`insert into ticks values ${rows.join(', ')}`)
    }
    const refused: string[] = []
    for (const call of calls) {
      const query = `select ${call} bucket, sum(v) s, count() n from ticks group by bucket`
      try {
        await client.rows(`create materialized view rounded refresh manual deferred as (${query})`)
      } catch (error) {
        expect(String(error)).toContain('counts its buckets from another time than SAMPLE BY does')
        refused.push(call)
        continue
      }
      expect(await client.rows('select * from rounded order by bucket'), call).toBe(
        await client.rows(`${query} order by bucket`),
      )
      await client.rows('drop materialized view rounded')
    }
    expect(refused).toEqual(["date_bin('3 weeks', ts, '2001-01-01T03:00:30')"])
    await client.rows('drop table ticks')
  },
  120_000,
)
