// Code that has hardly run is slow: parser, planner, operators, encoders and kernels need some dozen queries of a kind
// until V8 has compiled them, and then take half the time; the way of an HTTP request needs a thousand, and then takes a
// sixth. So the usual queries are asked (warm-up-statements.ts) before anybody does: once a table has rows enough that
// somebody is going to ask for them, at the start or later.
//
// Whoever works goes first: statements run one at a time, with long rests while the process is busy, and none while queries of
// others run or have just run or rows are stored, not even those that look for a table. Where rows come without end they
// are waited for only so long; then the rests are long. It ends after some rounds or when its time is used up.

import { setTimeout as pause, setImmediate as turn } from 'node:timers/promises'
import {
  type Encoding,
  type Engine,
  type EngineObserver,
  internalSession,
  parquetDefaults,
  type Session,
} from '../engine/engine.js'
import { ask } from './ask.js'
import { type WarmHttp, warmRights } from './warm-up-http.js'
import {
  exportsOf,
  pageStatementsOf,
  sharedStatementsOf,
  smallStatementsOf,
  statementsOf,
  tablelessStatements,
  traitsOf,
  type WarmColumns,
  type WarmStatement,
  type WarmTable,
  warmColumns,
} from './warm-up-statements.js'

/** What it asks. */
export type WarmEngine = Pick<Engine, 'execute' | 'validate' | 'figures' | 'table' | 'tableNames' | 'actFullCache'>

const session: Session = { ...internalSession('system'), readOnly: true }
const timeoutMs = 2000
const csv: Encoding = { kind: 'csv', delimiter: 0x2c, header: true }
const json: Encoding = { kind: 'json', quoteLargeNumbers: false, geohashAsText: true }
const pg: Encoding = { kind: 'pg', binary: [] }
const values: Encoding = { kind: 'values' }
/** Of small row groups, which take little memory. */
const parquet: Encoding = { ...parquetDefaults, rowGroupRows: 65_536 }
/** Of the rounds, in turn; JSON and CSV come over HTTP where that is there. */
const encodings: readonly Encoding[] = [json, csv, json, pg]
/** Of the tableless statements, before there is a table: the library of Parquet's structures is loaded. */
const firstEncodings: readonly Encoding[] = [csv, json, parquet]
/** Whole pages are exported in one round of so many. */
const exportRounds = 4
/** Each query thread has its own compiled code: what they run is asked in one round of so many, of two at once. */
const sharedRounds = 4
/** Long scans read a thousand pages, in a cache that is full of others: these statements come so often in a round. */
const pageScans = 8
/** Behind each statement: it is planned so often with other constants, and so many small ones come, in turn. */
const plansMore = 4
const smallRequests = 6

/** Behind the start, before anybody has typed a query. */
const startMs = 200
/** How often is looked for a table: seldom when there has been none for long. */
const lookMs = 250
const lookMaxMs = 20_000
/** So many rows are asked for; a table of fewer is answered in no time. */
const rowsWanted = 20_000
/** Of more rows than the main thread looks at, of fewer than take long. */
const sharedRowsWanted = 800_000
/** Statements about whole pages ask for so many: two dozen pages, which stay in the cache if it has room. */
const pageRowsWanted = 24 * 65_536
const symbolsWanted = 8
const tablesLookedAt = 20
/** So many of different kinds take turns. */
const tablesAsked = 3
const rounds = 20
/** Of work in all. */
const workMsMax = 24_000
/** Behind a statement of somebody else nothing is asked for so long, nor behind rows that were stored. */
const othersMs = 400
/** Whoever stores without end is waited for so long in all: then what is asked comes between the rows, with long rests. */
const storingMsMax = 10_000
const restMsMin = 2
const restMsMax = 1000
/** Rests while the process is busy are so many times as long as what was done. */
const busyRests = 8

interface WarmStatements {
  readonly usual: readonly WarmStatement[]
  /** Come behind each of the others, over HTTP where that is there. */
  readonly small: readonly WarmStatement[]
  /** For query threads. */
  readonly shared: readonly WarmStatement[]
  /** Over whole pages. */
  readonly pages: readonly WarmStatement[]
  /** Exported as files. */
  readonly whole: readonly WarmStatement[]
}

export class WarmUp {
  /** To be told what the engine does. */
  readonly observer: EngineObserver
  readonly #isOwn: (table: string) => boolean
  readonly #ending = new AbortController()
  #othersMs = Number.NEGATIVE_INFINITY
  /** Commits at the last look, when they became so many, and how long that was waited for. */
  #commits = 0
  #storedMs = Number.NEGATIVE_INFINITY
  #waitedMs = 0
  #workMs = 0
  /** Small statements that were asked. */
  #small = 0

  /** `isOwn`: whether a table is the server's own; `observer` hears what it would hear without this. */
  constructor(isOwn: (table: string) => boolean, observer: EngineObserver) {
    this.#isOwn = isOwn
    this.observer = {
      tableCreated: observer.tableCreated,
      statementEnded: (...statement) => {
        if (statement[0].rights === warmRights) return
        this.#othersMs = performance.now()
        observer.statementEnded(...statement)
      },
    }
  }

  /** `http`: opens the way of HTTP; null: there is none. */
  start(engine: WarmEngine, http: (() => Promise<WarmHttp>) | null): void {
    // Whatever ends it, nothing is lost.
    void this.#run(engine, http).catch(() => {})
  }

  close(): void {
    this.#ending.abort()
  }

  async #run(engine: WarmEngine, http: (() => Promise<WarmHttp>) | null): Promise<void> {
    await this.#rest(startMs)
    if (this.#tables(engine).length > 0) await this.#askTableless(engine)
    for (let rest = lookMs; ; rest = Math.min(lookMaxMs, rest * 1.2)) {
      await this.#othersRest(engine)
      const tables = await this.#find(engine)
      if (tables.length > 0) return this.#askAbout(tables, engine, http)
      await this.#rest(rest)
    }
  }

  async #askAbout(
    tables: readonly WarmTable[],
    engine: WarmEngine,
    openHttp: (() => Promise<WarmHttp>) | null,
  ): Promise<void> {
    const http = openHttp === null ? null : await openHttp()
    const all = tables.map((table) => ({
      usual: [...tablelessStatements, ...statementsOf(table)],
      small: smallStatementsOf(table),
      shared: sharedStatementsOf(table),
      pages: pageStatementsOf(table),
      whole: exportsOf(table),
    }))
    try {
      for (let round = 0; round < rounds; round++)
        for (const statements of all) if (!(await this.#ask(engine, http, statements, round))) return
    } finally {
      await http?.close()
    }
  }

  /** Two at once, for two query threads. */
  async #askTableless(engine: WarmEngine): Promise<void> {
    for (const encoding of firstEncodings) {
      for (let round = 0; round < 2; round++) {
        const asked = (statement: WarmStatement): Promise<unknown> => execute(engine, statement(round), encoding)
        await this.#work(engine, () => Promise.all(tablelessStatements.map(asked)))
      }
    }
  }

  #tables(engine: WarmEngine): string[] {
    return engine.tableNames().filter((name) => !this.#isOwn(name))
  }

  /** Of different kinds. */
  async #find(engine: WarmEngine): Promise<WarmTable[]> {
    const found: WarmTable[] = []
    const isAsked = (table: WarmTable): boolean =>
      found.some((other) => traitsOf(table).every((trait) => traitsOf(other).includes(trait)))
    for (const name of this.#tables(engine).slice(0, tablesLookedAt)) {
      const table = await look(engine, name)
      if (table === null || isAsked(table)) continue
      if (found.push(table) === tablesAsked) break
    }
    return found
  }

  /** One round; false: its time is used up. */
  async #ask(
    engine: WarmEngine,
    http: WarmHttp | null,
    { usual, small, shared, pages, whole }: WarmStatements,
    round: number,
  ): Promise<boolean> {
    const encoding = encodings[round % encodings.length] as Encoding
    for (const statement of round % exportRounds === 0 ? whole : [])
      if (!(await this.#work(engine, () => execute(engine, statement(round), parquet)))) return false
    for (const statement of round % sharedRounds === 0 ? shared : []) {
      const asked = (n: number): Promise<unknown> => execute(engine, statement(n), encodings[n % 2] as Encoding)
      if (!(await this.#work(engine, () => Promise.all([asked(round), asked(round + 1)])))) return false
    }
    for (const statement of pages) {
      const asked = (n: number): Promise<unknown> => execute(engine, statement(n), json)
      for (let scan = 0; scan < pageScans; scan++) {
        const n = round * pageScans + scan
        const two = (): Promise<unknown> => Promise.all([asked(n), asked(n + rounds * pageScans)])
        if (!(await this.#work(engine, () => withFullCache(engine, two)))) return false
      }
    }
    for (const statement of usual) {
      const sql = statement(round)
      const asked = async (): Promise<void> => {
        for (let plan = 1; plan <= plansMore; plan++) {
          engine.validate(statement(round + plan * rounds), session)
          // Who asks meanwhile waits for one plan at most.
          await turn()
          if (this.#othersWork(engine)) return
        }
        await askOne(engine, http, sql, encoding)
        for (let request = 0; request < smallRequests; request++)
          await askOne(engine, http, this.#smallOf(small), http === null ? pg : json)
      }
      if (!(await this.#work(engine, asked))) return false
    }
    return true
  }

  /** No text comes twice: all of its way gets warm, not only what is behind a cache of known texts. */
  #smallOf(small: readonly WarmStatement[]): string {
    const n = this.#small++
    return (small[n % small.length] as WarmStatement)(n)
  }

  /** False: its time is used up. */
  async #work(engine: WarmEngine, work: () => Promise<unknown>): Promise<boolean> {
    await this.#othersRest(engine)
    const begun = performance.now()
    const stored = engine.figures().counts.commits
    // The table may be gone, or what it holds is no sum.
    await work().catch(() => {})
    const took = performance.now() - begun
    this.#workMs += took
    if (this.#workMs > workMsMax) return false
    await this.#restFrom(took, () => engine.figures().counts.commits > stored)
    return true
  }

  async #othersRest(engine: WarmEngine): Promise<void> {
    while (this.#othersWork(engine)) {
      if (this.#storedLately) this.#waitedMs += othersMs
      await this.#rest(othersMs)
    }
  }

  #othersWork(engine: WarmEngine): boolean {
    const { queries, counts } = engine.figures()
    if (counts.commits !== this.#commits) this.#storedMs = performance.now()
    this.#commits = counts.commits
    if (performance.now() - this.#othersMs < othersMs || queries > 0) return true
    return this.#storedLately && this.#waitedMs < storingMsMax
  }

  get #storedLately(): boolean {
    return performance.now() - this.#storedMs < othersMs
  }

  /**
   * Longer where others work: what the process uses within the rest is theirs, and so is what was stored. Who waits for each
   * commit leaves the process idle meanwhile, and has the answer late when it is not.
   */
  async #restFrom(took: number, othersStore: () => boolean): Promise<void> {
    const rest = Math.max(restMsMin, took / 2)
    const before = process.cpuUsage()
    await this.#rest(rest)
    const { user, system } = process.cpuUsage(before)
    if ((user + system) / 1000 > rest / 2 || othersStore()) await this.#rest(Math.min(restMsMax, took * busyRests))
  }

  async #rest(ms: number): Promise<void> {
    await pause(ms, undefined, { ref: false, signal: this.#ending.signal })
  }
}

/** Over HTTP where that is there and speaks so. */
async function askOne(engine: WarmEngine, http: WarmHttp | null, sql: string, encoding: Encoding): Promise<void> {
  const path = pathOf(sql, encoding)
  if (http === null || path === null) await execute(engine, sql, encoding)
  else await http.ask(path)
}

/** Of HTTP; null: nobody asks for that by HTTP. */
function pathOf(sql: string, encoding: Encoding): string | null {
  const endpoint = encoding === json ? 'exec' : encoding === csv ? 'exp' : null
  return endpoint === null ? null : `/${endpoint}?query=${encodeURIComponent(sql)}`
}

/** Null: it has too few rows, or is of no usual kind. */
async function look(engine: WarmEngine, name: string): Promise<WarmTable | null> {
  const shape = engine.table(name)
  const columns = shape === undefined ? null : warmColumns(shape)
  if (columns === null) return null
  const { timestamp } = columns
  const known = await execute(
    engine,
    `select min(${timestamp}), max(${timestamp}), count(*) from ${columns.name}`,
    values,
  )
  const [oldest, newest, count] = (known[0] ?? []).map(Number)
  if (oldest === undefined || newest === undefined || count === undefined || count < rowsWanted) return null
  const newestOf = (rows: number): number => newest - (newest - oldest) * (rows / count)
  const fromOf = (rows: number): number | null => (count < rows ? null : newestOf(rows))
  const from = newestOf(rowsWanted)
  const froms = { from, sharedFrom: fromOf(sharedRowsWanted), pagesFrom: fromOf(pageRowsWanted) }
  return { ...columns, symbolValues: await symbolsOf(engine, columns, from), to: newest, ...froms }
}

/** One at least, if only the empty one. */
async function symbolsOf(engine: WarmEngine, columns: WarmColumns, from: number): Promise<string[]> {
  const { name, timestamp, symbol } = columns
  if (symbol === null) return ['']
  const newest = `${timestamp} >= cast(${Math.floor(from)} as timestamp)`
  const found = await execute(
    engine,
    `select distinct ${symbol} from ${name} where ${newest} limit ${symbolsWanted}`,
    values,
  )
  return found.length === 0 ? [''] : found.map(([symbol]) => String(symbol ?? ''))
}

async function withFullCache(engine: WarmEngine, work: () => Promise<unknown>): Promise<void> {
  engine.actFullCache(true)
  try {
    await work()
  } finally {
    engine.actFullCache(false)
  }
}

function execute(engine: WarmEngine, sql: string, encoding: Encoding): ReturnType<typeof ask> {
  return ask(engine, sql, { session, encoding, timeoutMs })
}
