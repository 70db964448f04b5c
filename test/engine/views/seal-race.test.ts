// Goal: DROP PARTITION changes no row of a live view, not even if a row that is in the frames of frozen ones comes in
// while it runs. Method: the whole engine runs on one thread. In each round a partition is dropped, and a late row is
// inserted after one more turn of the threads than in the round before. What the views show once the row is
// acknowledged, they also show when the partition is gone.

import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { emptyEngine, type InlineEngine } from '../../support/inline-engine.js'
import { executeOptions } from '../../support/test-engine.js'

const roundsMax = 500

// The refresher's timer is real time: refreshes run by statements only.
beforeEach(() => void vi.useFakeTimers({ toFake: ['setInterval'] }))
afterEach(() => void vi.useRealTimers())

const columns = {
  lags: 'lag(x) over (partition by k order by ts)',
  sums: 'sum(x) over (partition by k order by ts range 2 day preceding)',
}

test('a row before the frozen ones comes in while a partition is dropped', async () => {
  const host = await emptyEngine({ noCompactions: true, jit: false })
  let [round, isDropped] = [0, false]
  for (; !isDropped && round < roundsMax; round++) {
    await host.run('create table base (ts timestamp, k symbol, x long) timestamp(ts) partition by day')
    for (const [view, column] of Object.entries(columns))
      await host.run(
        `create live view ${view} flush every 60m start from beginning as select ts, k, x, ${column} y from base`,
      )
    await host.run("insert into base values ('2024-01-01T09', 'P', 1)")
    for (const view of Object.keys(columns)) await host.run(`refresh live view ${view}`)
    await host.run("insert into base values ('2024-01-02T09', 'Q', 2), ('2024-01-03T09', 'P', 3)")
    const drop = started(host, "alter table base drop partition list '2024-01-02'")
    await turns(host, round)
    isDropped = drop.isDone()
    await host.run("insert into base values ('2024-01-01T08', 'Q', 9)")
    const before = await rowsOf(host)
    // It pauses before it tries again.
    while (!drop.isDone()) {
      await turns(host, 10)
      await new Promise((resolve) => setImmediate(resolve))
    }
    await drop.ended
    expect(await rowsOf(host), `row after ${round} turns`).toEqual(before)
    const frozen = await host.rows('select count() from live_views() where frozen_ranges is not null')
    expect(frozen).toEqual([[2n]])
    await host.run('drop table base cascade')
  }
  expect(isDropped).toBe(true)
  expect(round).toBeGreaterThan(10)
  await host.close()
}, 120_000)

async function rowsOf(host: InlineEngine): Promise<unknown[]> {
  const all: unknown[] = []
  for (const view of Object.keys(columns)) all.push(await host.rows(`select * from ${view}`))
  return all
}

function started(host: InlineEngine, sql: string): { ended: Promise<unknown>; isDone: () => boolean } {
  let done = false
  const ended = host.engine.execute(sql, executeOptions).then(() => {
    done = true
  })
  return { ended, isDone: () => done }
}

async function turns(host: InlineEngine, count: number): Promise<void> {
  for (let turn = 0; turn < count; turn++) {
    host.turn()
    for (let tick = 0; tick < 4; tick++) await Promise.resolve()
  }
}
