// Goal: a fragment (the part of a query plan that several threads run in parallel) returns the same bits with any
// number of threads, whenever worker threads join, die, pause or fail, and all memory is freed. Method: the code of
// several query threads in one thread, run by a seeded scheduler; the result of a single thread is the reference.

import { describe, expect, test, vi } from 'vitest'
import { RowPartitions } from '../../../../engine/exec/aggregate/row-partitions.js'
import type { Encoding } from '../../../../engine/exec/run/messages.js'
import { QueryLoop } from '../../../../engine/exec/run/query-loop.js'
import { createAllocator } from '../../../../engine/memory/allocator.js'
import { type Allocator, budgets } from '../../../../engine/memory/budgets.js'
import { Ledger, ledgerBytes, recorded } from '../../../../engine/memory/ledger.js'
import type { FromQueryHost, ToQueryHost } from '../../../../engine/threads/messages.js'
import { QueryPool } from '../../../../engine/threads/query-pool.js'
import type { Value } from '../../../../engine/types/value.js'
import { readArrow } from '../../../support/arrow.js'
import { createRandom, type Random } from '../../../support/random.js'
import { runs } from '../../../support/runs.js'
import { createBench, noParts, type RunOptions, runMessage, runQuery } from '../exec-support.js'
import { makeDatabase, queryOfText, tablesOf } from '../statement-support.js'
import { columns, randomRows, statements } from './shared-statements.js'

/** .ci/run takes more. */
const seeds = Number(process.env['SHARE_SEEDS'] ?? 1)
/** All of them with TEST_RUNS=all; otherwise statements take them in turn. */
function inTurn<Item>(index: number, all: readonly Item[]): readonly Item[] {
  const from = index % all.length
  return runs(1, 0) === 1 ? all : all.slice(from, from + 1)
}

const bench = createBench(256)
const database = makeDatabase(bench, [
  { name: 't', columns, memtables: randomRows(createRandom(11), 45_000), timestampId: 0 },
  { name: 'untimed', columns, memtables: randomRows(createRandom(12), 9_000), timestampId: -1 },
  { name: 'calm', columns, memtables: randomRows(createRandom(13), 24_000, 1), timestampId: 0 },
])

const parquet: Encoding = {
  ...{ kind: 'parquet', codec: 'SNAPPY', level: 0, rowGroupRows: 700, pageBytes: 4096 },
  ...{ statistics: true, version: 1, rawArrays: false, bloom: { columns: ['v', 'sym', 'd'], falseShare: 0.01 } },
}

/** Ledgers that no thread uses. */
const ledgers = Array.from({ length: 8 }, newLedger)

function newLedger(): number {
  const address = bench.allocator.allocateOrThrow(ledgerBytes, budgets.queries)
  new Ledger(bench.memory, address).clear()
  return address
}

/** Threads in one process: each has an inbox, and does something only when the scheduler lets it. */
class Threads {
  ms = 0
  readonly pool: QueryPool
  readonly random: Random
  readonly #inboxes = new Map<number, ToQueryHost[]>()
  readonly #loops = new Map<number, QueryLoop>()
  readonly #outbox: { readonly threadId: number; readonly message: FromQueryHost }[] = []
  /** Lists of what each thread has allocated, to free it when the thread has died. */
  readonly #ledgers = new Map<number, number>()
  readonly #count: number
  readonly #allocatorOf: (threadId: number) => Allocator
  joined = 0

  constructor(count: number, random: Random, allocatorOf: (threadId: number) => Allocator) {
    this.#count = count
    this.random = random
    this.#allocatorOf = allocatorOf
    const threadSettled = (_: number, ledger: number) => ledgers.push(ledger)
    this.pool = new QueryPool({ memory: bench.memory, jobDone: () => {}, jobFailed: () => {}, threadSettled })
    for (let index = 0; index < count; index++) this.start(3 + index)
  }

  /** Time passes whenever somebody looks, so that a step does a little only. */
  tick(): number {
    this.ms += this.random.next()
    return this.ms
  }

  get ids(): number[] {
    return [...this.#loops.keys()]
  }

  start(threadId: number): void {
    const { memory, kernels } = bench
    const ledger = ledgers.pop() ?? newLedger()
    this.#ledgers.set(threadId, ledger)
    const inbox: ToQueryHost[] = []
    this.#inboxes.set(threadId, inbox)
    this.#loops.set(
      threadId,
      new QueryLoop({
        memory,
        kernels,
        allocator: recorded(this.#allocatorOf(threadId), new Ledger(memory, ledger)),
        partAccess: noParts,
        clock: { nowMicros: () => 1e15, monotonicMs: () => this.tick() },
        post: (message) => this.#outbox.push({ threadId, message: structuredClone(message) }),
        threads: {
          threadId,
          workers: this.#count - 1,
          chunkRowsMin: 1000,
          spreadRowsMax: 20_000,
          inviteAfterMs: 0,
          inviteForMs: 0,
          wake: () => {},
        },
      }),
    )
    const post = (message: ToQueryHost): number => inbox.push(structuredClone(message))
    this.pool.addThread({ threadId, post, terminate: async () => {} })
  }

  /** Ends without a word, as a thread does that runs out of its heap; another one takes its place. */
  kill(threadId: number): void {
    this.#loops.delete(threadId)
    this.#inboxes.delete(threadId)
    this.pool.threadEnded(threadId, new Error('the thread died'), 0, this.#ledgers.get(threadId))
    this.start(threadId)
  }

  /** Gives the ledgers of the living threads back. */
  end(): void {
    for (const ledger of this.#ledgers.values()) {
      expect(new Ledger(bench.memory, ledger).addresses()).toEqual([])
      ledgers.push(ledger)
    }
  }

  /** One message in, or one step. */
  turn(threadId: number): boolean {
    const message = this.#inboxes.get(threadId)?.[0]
    const loop = this.#loops.get(threadId)
    if (message !== undefined && this.random.chance(0.5)) {
      this.#inboxes.get(threadId)?.shift()
      if (message.kind === 'joinFragment') this.joined++
      loop?.receive(message as never)
      return true
    }
    return loop?.step() === 'worked' || message !== undefined
  }

  /** One message of some thread reaches the main thread. */
  hear(): boolean {
    const next = this.#outbox.shift()
    if (next !== undefined) this.pool.receive(next.threadId, next.message)
    return next !== undefined
  }
}

interface Scenario {
  readonly threads: number
  readonly seed: number
  /** Chances by turn. */
  readonly death?: number
  readonly sleep?: number
  readonly allocatorOf?: (threadId: number) => Allocator
  /** Of the query. */
  readonly options?: RunOptions
}

/** Areas that helpers took: they take some for every result. */
let taken = 0

function plain(threadId: number): Allocator {
  const allocator = createAllocator(bench.memory, threadId)
  const allocateOrThrow: Allocator['allocateOrThrow'] = (bytes, budget) => {
    if (threadId !== 3) taken++
    return allocator.allocateOrThrow(bytes, budget)
  }
  return { ...allocator, allocateOrThrow }
}

/**
 * Memory that was given back is filled with numbers too large for anything: whoever still reads it does harm that
 * shows.
 */
function poisoning(threadId: number): Allocator {
  const allocator = plain(threadId)
  const allocateOrThrow: Allocator['allocateOrThrow'] = (bytes, budget) => {
    const address = allocator.allocateOrThrow(bytes, budget)
    sizes.set(address, bytes)
    return address
  }
  const free = (address: number): void => {
    bench.memory.u8.fill(1, address, address + (sizes.get(address) ?? 0))
    sizes.delete(address)
    allocator.free(address)
  }
  return { ...allocator, allocateOrThrow, free }
}

const sizes = new Map<number, number>()

interface Shared {
  readonly rows: Value[][]
  readonly bytes: Buffer
  readonly joined: number
}

async function runShared(sql: string, scenario: Scenario): Promise<Shared> {
  const random = createRandom(scenario.seed)
  const threads = new Threads(scenario.threads, random, scenario.allocatorOf ?? plain)
  const query = queryOfText(sql, database)
  let released = false
  const message = runMessage(query, tablesOf(query, database), scenario.options ?? {})
  const running = threads.pool.run(message, () => {
    released = true
  })
  const rows: Value[][] = []
  const blocks: Buffer[] = []
  let over = false
  const reading = (async () => {
    if (message.encoding.kind === 'values') for await (const batch of running.values) rows.push(...(batch as Value[][]))
    else for await (const block of running.blocks) blocks.push(Buffer.from(block))
  })().finally(() => {
    over = true
  })
  const sleepers = new Map<number, number>()
  for (let turn = 0; !over || !released; turn++) {
    if (turn > 200_000) throw new Error('the query is stuck')
    await null
    const id = random.pick(threads.ids)
    // The lead is the first thread: its death is another test.
    if (id !== 3 && random.chance(scenario.death ?? 0)) threads.kill(id)
    if (id !== 3 && random.chance(scenario.sleep ?? 0)) sleepers.set(id, turn + random.below(400))
    const asleep = (sleepers.get(id) ?? 0) > turn
    if (asleep || !threads.turn(id)) threads.ms += random.below(3)
    if (random.chance(0.6)) threads.hear()
  }
  await reading
  while (threads.hear() || threads.ids.some((id) => threads.turn(id)));
  threads.end()
  return { rows, bytes: Buffer.concat(blocks), joined: threads.joined }
}

const truths = new Map<string, readonly (readonly Value[])[]>()

/** The truth: nobody helps. */
async function alone(sql: string): Promise<readonly (readonly Value[])[]> {
  const known = truths.get(sql) ?? (await runShared(sql, { threads: 1, seed: 0 })).rows
  truths.set(sql, known)
  return known
}

/** Another path, of one chunk: sums of another order of additions differ in the last digits. */
function unshared(sql: string): unknown[][] {
  const query = queryOfText(sql, database)
  return rounded(runQuery(bench, query, tablesOf(query, database)).rows)
}

function rounded(rows: readonly (readonly Value[])[]): unknown[][] {
  return rows.map((row) => row.map((value) => (typeof value === 'number' ? value.toPrecision(9) : value)))
}

const used = (): number => bench.allocator.used(budgets.queries)

test('as many groups as rows stay with the lead when their symbols are made', async () => {
  const sql = 'select cast(concat(i, v) as symbol) x, sum(d), count() from t limit 20000, 21000'
  const { rows, joined } = await runShared(sql, { threads: 2, seed: 3 })
  expect(joined).toBe(0)
  expect(rounded(rows)).toEqual(unshared(sql))
})

describe.each(statements.map((sql, index) => [sql, index] as const))('%s', (sql, index) => {
  const faults = inTurn(index, ['sleep', 'death', 'no memory'])

  test('another path says the same', async () => {
    const expected = await alone(sql)
    expect(expected.length).toBeGreaterThan(0)
    expect(rounded(expected)).toEqual(unshared(sql))
  })

  test.each(inTurn(index, [4, 2, 1]))('the same bits with %d threads', async (threads) => {
    const expected = await alone(sql)
    const before = used()
    taken = 0
    for (let seed = 1; seed <= seeds; seed++) {
      const { rows, joined } = await runShared(sql, { threads, seed })
      expect(rows, `seed ${seed}`).toEqual(expected)
      expect(joined > 0).toBe(threads > 1)
      expect(used()).toBe(before)
    }
    expect(taken > 2 * seeds).toBe(threads > 1)
  })

  test.runIf(faults.includes('sleep'))('helpers sleep with a chunk in hand', async () => {
    const expected = await alone(sql)
    const before = used()
    for (let seed = 1; seed <= seeds; seed++) {
      const scenario = { threads: 3, seed, sleep: 0.02, allocatorOf: poisoning }
      expect((await runShared(sql, scenario)).rows, `seed ${seed}`).toEqual(expected)
      expect(used()).toBe(before)
    }
  })

  test.runIf(faults.includes('death'))('helpers die', async () => {
    const expected = await alone(sql)
    const before = used()
    for (let seed = 1; seed <= seeds; seed++) {
      expect((await runShared(sql, { threads: 3, seed, death: 0.002 })).rows, `seed ${seed}`).toEqual(expected)
      expect(used()).toBe(before)
    }
  })

  test.runIf(faults.includes('no memory'))('helpers have no memory', async () => {
    const expected = await alone(sql)
    const before = used()
    const random = createRandom(5)
    const allocatorOf = (threadId: number): Allocator => {
      const allocator = plain(threadId)
      if (threadId === 3) return allocator
      const allocateOrThrow = (bytes: number, budget: Parameters<Allocator['allocateOrThrow']>[1]): number => {
        if (random.chance(0.015)) throw new Error('out of memory')
        return allocator.allocateOrThrow(bytes, budget)
      }
      return { ...allocator, allocateOrThrow }
    }
    for (let seed = 1; seed <= seeds; seed++) {
      expect((await runShared(sql, { threads: 3, seed, allocatorOf })).rows, `seed ${seed}`).toEqual(expected)
      expect(used()).toBe(before)
    }
  })
})

describe.each([
  'select d, count(), sum(i), max(ts) from t',
  "select concat(v, ':', i) x, sum(d), min(i), count(d) from t",
  'select count(), sum(i), min(d) from (select distinct d, i from t)',
  'select t.d, count(), max(x.n) m from t join (select i, count() n from untimed group by i) x on t.i = x.i group by t.d',
])('groups that memory has no room for, in passes: %s', (sql) => {
  // Little is said to be left, and nothing refused.
  const narrow =
    (allocator: (threadId: number) => Allocator) =>
    (threadId: number): Allocator => ({ ...allocator(threadId), limit: () => used() + 500_000 })
  const scenarios: readonly Omit<Scenario, 'seed'>[] = [
    { threads: 3, allocatorOf: narrow(poisoning), sleep: 0.01 },
    { threads: 1, allocatorOf: narrow(plain) },
    { threads: 3, allocatorOf: narrow(poisoning) },
    { threads: 3, allocatorOf: narrow(plain), death: 0.001 },
  ]
  test.each(scenarios.slice(0, runs(4, 1)))('by %o', async (scenario) => {
    const inOrder = (rows: readonly (readonly Value[])[]): string[] => rows.map(String).sort()
    const spread = vi.spyOn(RowPartitions.prototype, 'result')
    const expected = inOrder(await alone(sql))
    const once = spread.mock.calls.length
    const before = used()
    for (let seed = 1; seed <= Math.ceil(seeds / 2); seed++) {
      spread.mockClear()
      const { rows } = await runShared(sql, { ...scenario, seed })
      expect(inOrder(rows), `seed ${seed}`).toEqual(expected)
      // Chunks were spread again for later passes.
      expect(spread.mock.calls.length).toBeGreaterThan(once * 1.5)
      expect(used()).toBe(before)
    }
    spread.mockRestore()
  })
})

describe.each(['select * from untimed', 'select v, d, sym from untimed'])('the Parquet file of %s', (sql) => {
  const options = { encoding: parquet }
  const scenarios: Record<string, Omit<Scenario, 'seed'>> = {
    'one thread': { threads: 1 },
    'four threads': { threads: 4 },
    'helpers that sleep': { threads: 3, sleep: 0.02 },
    'helpers that die': { threads: 3, death: 0.002 },
  }
  test.each(Object.keys(scenarios))('by %s', async (name) => {
    // With a limit the rows are encoded as they come.
    const expected = await runShared(sql, { threads: 1, seed: 0, options: { ...options, rowsMax: 1e9 } })
    expect(expected.bytes.subarray(-4).toString()).toBe('PAR1')
    const scenario = scenarios[name] as Omit<Scenario, 'seed'>
    const before = used()
    for (let seed = 1; seed <= Math.ceil(seeds / 2); seed++) {
      const { bytes, joined } = await runShared(sql, { ...scenario, seed, options })
      expect(bytes.equals(expected.bytes), `seed ${seed}`).toBe(true)
      expect(joined > 0).toBe(scenario.threads > 1)
      expect(used()).toBe(before)
    }
  })
})

// What is in such a file is read by DuckDB: test/integration/http-parquet-parts.test.ts.
describe.each([
  'select * from t where i > -300',
  "select ts, d * 2 x, concat(v, '!') y, sym from t order by ts desc",
  'select v, d, i, sym from t order by i, v',
])('the Parquet file of rows that overlap or are sorted, %s', (sql) => {
  const unnamed = { ...parquet, bloom: null }
  test.each([{ threads: 3 }, { threads: 3, sleep: 0.02 }, { threads: 3, death: 0.002 }])('by %o', async (scenario) => {
    const expected = await runShared(sql, { threads: 2, seed: 0, options: { encoding: unnamed } })
    expect(expected.bytes.subarray(-4).toString()).toBe('PAR1')
    const before = used()
    for (let seed = 1; seed <= 2; seed++) {
      const { bytes, joined } = await runShared(sql, { ...scenario, seed, options: { encoding: unnamed } })
      expect(bytes.equals(expected.bytes), `seed ${seed}`).toBe(true)
      expect(joined).toBeGreaterThan(0)
      expect(used()).toBe(before)
    }
  })
})

const textScenarios = [{ threads: 2 }, { threads: 4 }, { threads: 3, sleep: 0.02 }, { threads: 3, death: 0.002 }].slice(
  -runs(4, 2),
)

describe.each([
  ['CSV', { encoding: { kind: 'csv', delimiter: 44, header: true } }],
  ['a window of CSV', { encoding: { kind: 'csv', delimiter: 59, header: true }, skip: 777, rowsMax: 6000 }],
  ['JSON', { encoding: { kind: 'json', quoteLargeNumbers: false, geohashAsText: true }, rowsMax: 8999 }],
  ['lines of JSON', { encoding: { kind: 'ndjson' } }],
] as const)('%s', (_, options) => {
  test.each(textScenarios)('by %o', async (scenario) => {
    await checkText('select v, d, sym, i, ts from untimed', options, scenario)
  })
})

describe.each([
  ['filtered', 'select * from t where i > -300'],
  ['computed', "select ts, d * 2 x, concat(v, '!') y, sym from t where sym <> 's1'"],
  ['backwards', 'select ts, v, d from t order by ts desc'],
  ['a range of time', "select * from t where ts in '2024-03-09T17' or ts between '2024-03-09T19' and '2024-03-09T23'"],
  ['nothing at the beginning', "select ts, v from t where i <> 7 and ts > dateadd('h', 1, (select min(ts) from t))"],
])('CSV of rows that overlap, %s', (_, sql) => {
  const csv = { encoding: { kind: 'csv', delimiter: 44, header: true } } as const
  test.each(textScenarios)('by %o', (scenario) => checkText(sql, csv, scenario))
  test('as JSON', async () => {
    const json = { encoding: { kind: 'json', quoteLargeNumbers: false, geohashAsText: true } } as const
    // Nobody helps where the first rows tell nothing.
    if (sql.includes('dateadd')) expect((await runShared(sql, { threads: 3, seed: 1, options: json })).joined).toBe(0)
    else await checkText(sql, json, { threads: 3 })
  })
})

describe.each([
  ['by a number', 'select * from t order by d'],
  ['by a column that is not told', 'select v, sym as s, i from t order by d desc, v'],
  [
    'by a text, with symbols of two dictionaries',
    "select * from (select sym, v, i from t union all select 'new'::symbol, v, i from t) order by v, i, sym",
  ],
  ['the first of an order', 'select v, i, sym from t order by i, v limit 30000'],
])('sorted rows, %s', (_, sql) => {
  test.each(textScenarios)('CSV by %o', (scenario) =>
    checkText(sql, { encoding: { kind: 'csv', delimiter: 44, header: true } }, scenario),
  )
  test('as JSON, with a cap', async () => {
    const json = { encoding: { kind: 'json', quoteLargeNumbers: false, geohashAsText: true } } as const
    await checkText(sql, { ...json, rowsMax: 1_000_000 }, { threads: 3 })
    const capped = { ...json, rowsMax: 5000 }
    const { bytes } = await runShared(sql, { threads: 3, seed: 1, options: capped })
    expect(bytes.equals((await runShared(sql, { threads: 1, seed: 0, options: capped })).bytes)).toBe(true)
  })
})

describe.each([
  ['a whole table', 'select v, d, sym, i, ts from untimed'],
  ['sorted', 'select v, d, sym, i, ts from t order by i desc, v'],
  ['filtered', 'select v, d, sym, i, ts from t where i > -300'],
])('Arrow batches, %s', (_, sql) => {
  test.each(textScenarios)('by %o', async (scenario) => {
    const { rows } = await runShared(sql, { threads: 1, seed: 0 })
    const before = used()
    for (let seed = 1; seed <= 2; seed++) {
      const { bytes, joined } = await runShared(sql, { ...scenario, seed, options: { encoding: { kind: 'arrow' } } })
      const read = readArrow(bytes, ['text', 'f64', 'text', 'i32', 'i64'])
      expect(read.join('\n') === rows.join('\n'), `seed ${seed}`).toBe(true)
      expect(joined).toBeGreaterThan(0)
      expect(used()).toBe(before)
    }
  })
})

async function checkText(sql: string, options: RunOptions, scenario: Omit<Scenario, 'seed'>): Promise<void> {
  const expected = await runShared(sql, { threads: 1, seed: 0, options })
  expect(expected.bytes.length).toBeGreaterThan(100_000)
  const before = used()
  for (let seed = 1; seed <= Math.ceil(seeds / 2); seed++) {
    const { bytes, joined } = await runShared(sql, { ...scenario, seed, options })
    expect(bytes.equals(expected.bytes), `seed ${seed}`).toBe(true)
    expect(joined).toBeGreaterThan(0)
    if (!('death' in scenario)) expect(used()).toBe(before)
  }
}
