// Goal: upserts of one table run one after the other. Upserts that wait are combined into one run if they are of the
// same kind and have different keys; if the combined run fails, each runs alone. Method: fake upserts that only record
// what runs.

import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { type UpsertResult, UpsertTurns } from '../../../engine/threads/upsert-turns.js'

interface Wish {
  readonly kind: string | null
  readonly keys: readonly string[]
  readonly cancelled?: boolean
}

/** What is run, in order, and the outcomes: row counts or errors. */
async function runAll(
  wishes: readonly Wish[],
  outcome: 'rows' | 'refused' | 'failed' = 'rows',
): Promise<{ readonly runs: string[]; readonly outcomes: string[] }> {
  const turns = new UpsertTurns()
  const runs: string[] = []
  let running = 0
  const working = async <T>(what: string, result: () => T): Promise<T> => {
    expect(++running, 'one runs at a time').toBe(1)
    runs.push(what)
    await new Promise((resolve) => setTimeout(resolve, 1))
    running--
    return result()
  }
  const outcomes = wishes.map(({ kind, keys, cancelled = false }) => {
    const alone = (): Promise<UpsertResult> =>
      working(`alone ${keys}`, () => {
        if (keys.includes('bad')) throw new Error('bad key')
        return { packed: [], rows: keys.length }
      })
    const together = (group: readonly { readonly keys: readonly string[] }[]): Promise<UpsertResult[] | null> =>
      working(`together ${group.map((one) => one.keys)}`, () => {
        if (outcome === 'failed') throw new Error('one of them fails')
        return outcome === 'refused' ? null : group.map((one) => ({ packed: [], rows: one.keys.length * 10 }))
      })
    const shared = kind === null ? null : { kind, rows: [], keys, isCancelled: () => cancelled, together }
    return turns.run(1, { alone, shared }).then(
      ({ rows }) => String(rows),
      (error: unknown) => (error instanceof Error ? error.message : ''),
    )
  })
  return { runs, outcomes: await Promise.all(outcomes) }
}

test('those that wait run together, unless their keys meet or their kinds differ', async () => {
  const { runs, outcomes } = await runAll([
    { kind: 'a', keys: ['1'] },
    { kind: 'a', keys: ['2', '3'] },
    { kind: 'b', keys: ['4'] },
    { kind: 'a', keys: ['2'] },
    { kind: null, keys: ['5'] },
    { kind: 'a', keys: ['6'], cancelled: true },
    { kind: 'a', keys: ['7'] },
    { kind: 'b', keys: ['8'] },
  ])
  expect(runs).toEqual(['together 1,2,3,7', 'together 4,8', 'alone 2', 'alone 5', 'alone 6'])
  expect(outcomes).toEqual(['10', '20', '10', '1', '1', '1', '10', '10'])
})

test.each(['refused', 'failed'] as const)('each runs alone when it is %s together', async (outcome) => {
  const { runs, outcomes } = await runAll(
    [
      { kind: 'a', keys: ['1'] },
      { kind: 'a', keys: ['bad'] },
      { kind: 'a', keys: ['2'] },
    ],
    outcome,
  )
  expect(runs).toEqual(['together 1,bad,2', 'alone 1', 'alone bad', 'alone 2'])
  expect(outcomes).toEqual(['1', 'bad key', '1'])
})

test('few rows run together', async () => {
  const { runs } = await runAll(Array.from({ length: 80 }, (_, index) => ({ kind: 'a', keys: [`k${index}`] })))
  expect(runs.map((run) => run.split(',').length)).toEqual([32, 32, 16])
})

test('sessions that come at different times run together after the first statements', async () => {
  const turns = new UpsertTurns()
  const sizes: number[] = []
  const slow = async <Result>(size: number, result: Result): Promise<Result> => {
    sizes.push(size)
    await new Promise((resolve) => setTimeout(resolve, 5))
    return result
  }
  const none: UpsertResult = { packed: [], rows: 1 }
  const session = async (name: string, statements: number): Promise<void> => {
    for (let number = 0; number < statements; number++) {
      const together = (group: readonly unknown[]): Promise<UpsertResult[]> =>
        slow(
          group.length,
          group.map(() => none),
        )
      const shared = { kind: 'a', rows: [], keys: [name], isCancelled: () => false, together }
      await turns.run(1, { alone: () => slow(1, none), shared })
      // The answer and the next statement take a while.
      for (let turn = 0; turn < 3; turn++) await nextTurn()
    }
  }
  const first = session('1', 20)
  await new Promise((resolve) => setTimeout(resolve, 2))
  await Promise.all([first, session('2', 20), session('3', 20)])
  // Without a wait, the first session and the others would take turns.
  expect(sizes.filter((size) => size === 3).length).toBeGreaterThan(10)
  expect(sizes.reduce((sum, size) => sum + size)).toBe(60)
})
