// Goal: many queries share one query thread. A client that reads slowly suspends only its own query, cancellation and
// deadlines end a query at once, an error or an exhausted budget fails only the query that caused it, and all memory is
// freed in every case.

import { describe, expect, test } from 'vitest'
import { initialWindowBytes } from '../../../../engine/base/limits.js'
import type { FromQueryThread } from '../../../../engine/exec/run/messages.js'
import { QueryLoop } from '../../../../engine/exec/run/query-loop.js'
import { budgets } from '../../../../engine/memory/budgets.js'
import type { Plan } from '../../../../engine/sql/plan/plan.js'
import { dataType } from '../../../../engine/types/column-types.js'
import { callOf, columnOf, constantOf, createBench, json, noParts, queryOf, runMessage } from '../exec-support.js'

const bench = createBench(64)
const columns = [{ name: 'x', type: dataType('LONG') }]

function sequence(count: bigint): Plan {
  return { kind: 'sequence', columns, count, seed: null }
}

function createHost(clock = { ms: 0 }, heapIsFull = (): boolean => false) {
  const messages: FromQueryThread[] = []
  const loop = new QueryLoop({
    memory: bench.memory,
    allocator: bench.allocator,
    kernels: bench.kernels,
    partAccess: noParts,
    clock: { nowMicros: () => 0, monotonicMs: () => clock.ms },
    post: (message) => messages.push(message),
    heapState: () => (heapIsFull() ? 'full' : 'free'),
  })
  const start = (queryId: number, plan: Plan, timeoutMs = 0): void => {
    loop.receive({ ...runMessage(queryOf(plan), [], { encoding: json, timeoutMs }), queryId, snapshots: [] })
  }
  const ended = (queryId: number): FromQueryThread | undefined =>
    messages.find((message) => message.queryId === queryId && (message.kind === 'end' || message.kind === 'error'))
  const release = (queryId: number): void => {
    for (const message of messages.filter((candidate) => candidate.queryId === queryId)) {
      if (message.kind === 'block') loop.receive({ kind: 'release', queryId, address: message.address })
    }
  }
  const untilIdle = (stepsMax = 100_000): void => {
    for (let step = 0; step < stepsMax && loop.step() === 'worked'; step++);
  }
  return { loop, messages, start, ended, release, untilIdle }
}

const used = (): number => bench.allocator.used(budgets.queries)

describe('queries share a thread', () => {
  test('a short result comes with the end, and nothing has to be given back', () => {
    const before = used()
    const { messages, start, untilIdle } = createHost()
    start(1, sequence(3n))
    untilIdle()
    expect(messages.map(({ kind }) => kind)).toEqual(['end'])
    const [end] = messages
    expect(end?.kind === 'end' && Buffer.from(end.tail ?? []).toString()).toBe('[1],[2],[3]')
    expect(used()).toBe(before)
  })

  test('a slow reader parks its own query only', () => {
    const before = used()
    const { loop, messages, start, ended, release, untilIdle } = createHost()
    start(1, sequence(2_000_000n))
    start(2, sequence(10n))
    untilIdle()
    expect(ended(1)).toBeUndefined()
    expect(ended(2)?.kind).toBe('end')
    const waiting = messages.filter((message) => message.kind === 'block' && message.queryId === 1)
    const bytes = waiting.reduce((sum, message) => sum + (message.kind === 'block' ? message.bytes : 0), 0)
    expect(bytes).toBeGreaterThanOrEqual(initialWindowBytes)
    expect(bytes).toBeLessThan(2 * initialWindowBytes)
    release(2)
    for (let round = 0; round < 200 && ended(1) === undefined; round++) {
      release(1)
      untilIdle()
    }
    expect(ended(1)).toMatchObject({ kind: 'end', rows: 2_000_000 })
    release(1)
    expect(loop.size).toBe(0)
    expect(used()).toBe(before)
  })

  test('a parked query is cancelled', () => {
    const before = used()
    const { loop, start, ended, release, untilIdle } = createHost()
    start(1, sequence(2_000_000n))
    untilIdle()
    loop.receive({ kind: 'cancel', queryId: 1, reason: 'the client disconnected' })
    untilIdle()
    expect(ended(1)).toMatchObject({
      kind: 'error',
      error: { name: 'CancelledError', message: 'the client disconnected' },
    })
    release(1)
    expect(used()).toBe(before)
  })

  test('a deadline ends a query', () => {
    const before = used()
    const clock = { ms: 0 }
    const { start, ended, untilIdle } = createHost(clock)
    const never = callOf('<', [columnOf(columns, 0), constantOf(0n, dataType('LONG'))])
    start(1, { kind: 'filter', columns, input: sequence(1_000_000_000n), predicate: never }, 50)
    clock.ms = 51
    untilIdle()
    expect(ended(1)).toMatchObject({ kind: 'error', error: { name: 'TimeoutError' } })
    expect(used()).toBe(before)
  })

  test('a full heap ends the query that has run for the longest time', () => {
    const before = used()
    let ticks = 0
    const clock = {
      get ms() {
        return ticks++ / 10
      },
    }
    let isFull = false
    const { loop, start, ended, untilIdle } = createHost(clock, () => isFull)
    const never = callOf('<', [columnOf(columns, 0), constantOf(0n, dataType('LONG'))])
    const long: Plan = { kind: 'filter', columns, input: sequence(50_000_000n), predicate: never }
    start(1, long)
    untilIdle(20)
    start(2, long)
    isFull = true
    loop.step()
    isFull = false
    expect(ended(1)).toMatchObject({ kind: 'error', error: { name: 'ResourceError' } })
    untilIdle()
    expect(ended(2)?.kind).toBe('end')
    expect(loop.size).toBe(0)
    expect(used()).toBe(before)
  })

  test('a query that wants more than its budget fails alone', () => {
    const before = used()
    const { start, ended, release, untilIdle } = createHost()
    const sorted: Plan = {
      kind: 'sort',
      columns,
      input: sequence(100_000_000n),
      keys: [{ index: 0, descending: true, nullsFirst: false }],
      limit: null,
    }
    start(1, sorted)
    start(2, sequence(10n))
    untilIdle()
    expect(ended(1)).toMatchObject({ kind: 'error', error: { name: 'ResourceError' } })
    expect(ended(2)).toMatchObject({ kind: 'end', rows: 10 })
    release(2)
    expect(used()).toBe(before)
  })
})
