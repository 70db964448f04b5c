// Refreshes materialized views by their strategies, and on request (REFRESH MATERIALIZED VIEW), one refresh at a time.
// Query results do not depend on refreshes: buckets that are not stored are computed from the base table.
//
//   IMMEDIATE  after a change of the base table, at most once a second, and for at most a fifth of the time
//   EVERY      at the times of its timer, if the base table has changed; first at once, unless DEFERRED
//   MANUAL     once after CREATE, unless DEFERRED; then on request only
//   FLUSH      of a live view: like IMMEDIATE, at most once in the time of FLUSH EVERY
//   PERIOD     does not refresh buckets of a period that has not ended
//
// After an error, the view is refreshed again after a pause of 10 seconds; materialized_views() and live_views() show
// the error. The base table is never affected. Between refreshes, this file also runs what must not run during one:
// DROP PARTITION of tables with views, and the TTL of these tables and of views (seal-views.ts).

import { setTimeout as sleep } from 'node:timers/promises'
import type { StopSignal, VirtualRelation } from '../api/statements.js'
import { ResourceError, SqlError } from '../base/errors.js'
import { createBuckets } from '../exec/aggregate/buckets.js'
import type { TimeRange } from '../sql/plan/plan.js'
import { sampleOf } from '../sql/scope/stored-view.js'
import type { PlannedStatement } from '../sql/statements/planned.js'
import type { Receipt, SchemaChange, TableReplacement } from '../storage/jobs/messages.js'
import {
  addsToSealed,
  liveLengthMicros,
  type MaterializedSchema,
  type RefreshStrategy,
} from '../storage/schema/materialized.js'
import type { TableVersion } from '../storage/schema/schema.js'
import { allOfTime } from '../types/interval.js'
import { ticksPerMicro } from '../types/timestamp-calendar.js'
import { addUnits } from '../types/timestamp-floor.js'
import type { Value } from '../types/value.js'
import { nullAt } from './late-rows.js'
import { liveColumns, liveRow, materializedColumns, materializedRow } from './materialized-views.js'
import { addsLate, queryOf, refreshView } from './refresh-view.js'
import { addAllLateRows, dropPartitions, expireTable, expireView, type SealOperations, viewsOf } from './seal-views.js'
import { addSealedRows } from './sealed-rows.js'
import { inputsOfView } from './view-ranges.js'

const lookMs = 250
const expiryMs = 1000
const pauseMs = 1000
/** Of the time that a refresh takes. */
const pauseFactor = 4
const failedPauseMs = 10_000
const lateRefusalsMax = 5

export interface RefresherOptions extends SealOperations {
  readonly monotonicMs: () => number
  /** The last visible transaction of a table. */
  readonly transaction: (version: TableVersion) => number
}

interface ViewState {
  /** The version of the base that the last automatic refresh has seen. */
  seen: TableVersion | null
  /** No automatic refresh before this monotonic time. */
  pausedUntilMs: number
  /** Of a timer: microseconds since the epoch. */
  nextMicros: number | null
  strategy: RefreshStrategy | null
  failure: string | null
  /** The transaction of the base that the last refresh has seen. */
  transaction: number | null
}

export class ViewRefresher {
  readonly #options: RefresherOptions
  readonly #states = new Map<number, ViewState>()
  readonly #timer: NodeJS.Timeout
  /** Stops the automatic refresh that is running. */
  #stop = new AbortController()
  #closed = false
  /** The refresh that is running, and those that wait for it. */
  #last: Promise<unknown> = Promise.resolve()
  #running: number | null = null
  #looking = false
  readonly #expiry: { nextMs: number; failure: string | null } = { nextMs: 0, failure: null }

  constructor(options: RefresherOptions) {
    this.#options = options
    this.#timer = setInterval(() => void this.#look(), lookMs).unref()
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    this.#closed = true
    this.#stop.abort('the server is closing')
    await this.#last
  }

  /** REFRESH MATERIALIZED VIEW; rows in memtables are flushed first, so that they are stored, too. */
  async refresh({ viewId, mode, range }: Planned, signal: StopSignal | null): Promise<void> {
    const { byId, flush } = this.#options
    const version = byId(viewId)
    const { materialized } = version?.schema ?? {}
    if (version === undefined || materialized === undefined) return
    await flush(this.#baseOf(version)?.schema.id ?? materialized.baseId)
    const within = mode === 'incremental' ? this.#bounds(version, materialized) : (range ?? allOfTime)
    await this.#queued(version, { again: mode !== 'incremental', within, signal })
  }

  #queued(version: TableVersion, request: Omit<Parameters<typeof refreshView>[1], 'viewId'>): Promise<void> {
    const { id } = version.schema
    const state = this.#state(id)
    const work = async (): Promise<void> => {
      this.#running = id
      const base = this.#baseOf(version)
      // Memtables of this version may be freed during the refresh.
      const transaction = base === undefined ? null : this.#options.transaction(base)
      const startMs = this.#options.monotonicMs()
      try {
        if (base?.schema.sealed !== undefined)
          await addSealedRows(this.#options, { viewId: id, signal: request.signal })
        let more = await refreshView(this.#options, { ...request, viewId: id })
        // Further ranges of a list that was too long.
        while (more && !request.again && !this.#closed)
          more = await refreshView(this.#options, { ...request, viewId: id })
        state.failure = null
        state.transaction = transaction
      } catch (error) {
        state.failure = error instanceof Error ? error.message : String(error)
        throw error
      } finally {
        this.#running = null
        const endMs = this.#options.monotonicMs()
        state.pausedUntilMs = endMs + Math.max(pauseOf(version), (endMs - startMs) * pauseFactor)
        if (state.failure !== null) state.pausedUntilMs = endMs + failedPauseMs
      }
    }
    return this.#next(work)
  }

  /** After the work that is running or waiting. */
  #next(work: () => Promise<void>): Promise<void> {
    const done = this.#last.then(work)
    this.#last = done.catch(() => {})
    return done
  }

  /** The table below the view and the views that it reads. */
  #baseOf({ schema }: TableVersion): TableVersion | undefined {
    return inputsOfView(schema, this.#options.byId)?.base
  }

  // Buckets that outlive their rows -----------------------------------------------------------------------------------

  /**
   * If the change is a DROP PARTITION of a table with views, performs it and returns true. Before other changes of a
   * table, adds late rows to sealed buckets; the caller performs these changes.
   */
  async performs(change: SchemaChange): Promise<boolean> {
    if (change.kind === 'createTable' || change.kind === 'dropTable' || change.kind === 'truncateTable') return false
    const isDrop = change.kind === 'partitions' && change.operation === 'drop'
    if (!isDrop || viewsOf(this.#options, change.tableId).length === 0) {
      await nullAt([ResourceError], this.addLateRows(change.tableId) ?? Promise.resolve())
      return false
    }
    await this.#next(() => dropPartitions(this.#options, change))
    return true
  }

  /**
   * Adds late rows of the table to sealed buckets, or leaves out those that cannot be added now; to be called before
   * rows of it are changed or removed. Null if no bucket is sealed.
   */
  addLateRows(tableId: number): Promise<void> | null {
    const version = this.#options.byId(tableId)
    if (version?.schema.sealed === undefined) return null
    return this.#next(() => addAllLateRows(this.#options, tableId))
  }

  /** UPDATE and DELETE: late rows are added to sealed buckets first. Those that come after that are not changed. */
  async rewritten(planned: Rewrite, rewrite: (planned: Rewrite) => Promise<Receipt>): Promise<Receipt> {
    const receipt = await rewrite(planned)
    if (receipt.isLate !== true) return receipt
    await this.addLateRows(planned.tableId)
    return rewrite({ ...planned, program: { ...planned.program, skipsLate: true } })
  }

  /** Upserts of one statement: the same. It is executed again after that, as its rows have moved. */
  replacing(requests: Replacing): (tables: readonly TableReplacement[]) => Promise<Receipt> {
    let refusals = 0
    return async (tables) => {
      // It may find other late rows each time.
      const isLast = refusals === lateRefusalsMax
      const receipt = await requests.replace(isLast ? tables.map((one) => ({ ...one, removesLate: true })) : tables)
      if (receipt.isLate !== true) return receipt
      refusals++
      for (const { input } of tables) await this.addLateRows(input.tableId)
      return receipt
    }
  }

  async #expire(): Promise<void> {
    const { monotonicMs, tables, log } = this.#options
    if (monotonicMs() < this.#expiry.nextMs) return
    this.#expiry.nextMs = monotonicMs() + expiryMs
    const all = tables()
    const bases = new Set(all.map(({ schema }) => schema.materialized?.baseId))
    let failure: string | null = null
    for (const version of all) {
      if (this.#closed) return
      const { id, materialized } = version.schema
      try {
        if (materialized !== undefined) await this.#next(() => expireView(this.#options, version))
        else if (bases.has(id)) await this.#next(() => expireTable(this.#options, version))
      } catch (error) {
        if (!(error instanceof Error)) throw error
        failure ??= error.message
      }
    }
    if (failure !== null) this.#expiry.nextMs = monotonicMs() + failedPauseMs
    if (failure !== null && this.#expiry.failure !== failure && !this.#closed)
      log('W', 'view', `the TTL of a table with materialized views, or of one, is late: ${failure}`)
    this.#expiry.failure = failure
  }

  #state(id: number): ViewState {
    const known = this.#states.get(id)
    if (known !== undefined) return known
    const state: ViewState = {
      ...{ seen: null, pausedUntilMs: 0, nextMicros: null, strategy: null, failure: null, transaction: null },
    }
    this.#states.set(id, state)
    return state
  }

  // Strategies --------------------------------------------------------------------------------------------------------

  async #look(): Promise<void> {
    if (this.#looking || this.#closed) return
    this.#looking = true
    try {
      const views = this.#options.tables().filter(({ schema }) => schema.materialized !== undefined)
      for (const id of this.#states.keys()) if (!views.some(({ schema }) => schema.id === id)) this.#states.delete(id)
      for (const view of views) await this.#refreshDue(view)
      if (views.length > 0) await this.#expire()
    } finally {
      this.#looking = false
    }
  }

  async #refreshDue(version: TableVersion): Promise<void> {
    const { log } = this.#options
    const { id, name, materialized } = version.schema
    const state = this.#state(id)
    const base = this.#baseOf(version)
    if (materialized === undefined || base === undefined || this.#closed) return
    if (!this.#isDue(version, materialized, base, state)) return
    const before = state.failure
    try {
      state.seen = base
      this.#stop = new AbortController()
      await this.#queued(version, {
        again: false,
        within: this.#bounds(version, materialized),
        signal: this.#stop.signal,
      })
    } catch (error) {
      state.seen = null
      const { failure } = state
      if (failure !== before && !this.#closed)
        log('W', 'view', `a materialized view could not be refreshed [view=${name}]: ${failure}`)
      if (!(error instanceof Error)) throw error
      // Other tables have their turn first.
      await sleep(0)
    }
  }

  #isDue({ schema }: TableVersion, materialized: MaterializedSchema, base: TableVersion, state: ViewState): boolean {
    const { refresh } = materialized
    const { monotonicMs, nowMicros } = this.#options
    const isFirst = state.strategy === null
    if (state.strategy === null || JSON.stringify(state.strategy) !== JSON.stringify(refresh)) {
      state.strategy = refresh
      state.nextMicros = refresh.every === null ? null : nextOf(refresh, nowMicros())
      // What has changed before the first look is left to the next change.
      if (isFirst && refresh.deferred && schema.stored === undefined) state.seen = base
    }
    if (monotonicMs() < state.pausedUntilMs) return false
    const isInitial = !refresh.deferred && schema.stored === undefined
    if (refresh.kind === 'manual') return isInitial && (state.seen === null || state.failure !== null)
    if (state.seen === base) return false
    if (refresh.kind === 'immediate') return true
    if (isInitial && isFirst) return true
    if (state.nextMicros === null || nowMicros() < state.nextMicros) return false
    state.nextMicros = nextOf(refresh, nowMicros())
    return true
  }

  /** The timestamps that automatic and incremental refreshes may store: REFRESH LIMIT and PERIOD. */
  #bounds(version: TableVersion, materialized: MaterializedSchema): TimeRange {
    const { nowMicros } = this.#options
    const { limit, refresh } = materialized
    const { schema } = version
    const unit = schema.columns[schema.timestampId]?.type.name === 'TIMESTAMP_NS' ? 'TIMESTAMP_NS' : 'TIMESTAMP'
    const now = BigInt(Math.floor(nowMicros())) * ticksPerMicro(unit)
    const lo =
      limit === null || schema.stored === undefined
        ? allOfTime.lo
        : addUnits(now, limitUnits[limit.unit], -limit.value, unit)
    const { period } = refresh
    if (period === null) return { lo, hi: allOfTime.hi }
    const ended = period.delay === null ? now : addUnits(now, period.delay.unit, -period.delay.count, unit)
    if (period.length !== null) {
      const align = { kind: 'calendar', zone: period.timeZone, offsetMicros: 0n } as const
      return { lo, hi: createBuckets({ align, interval: period.length, from: null }, unit).of(ended).start - 1n }
    }
    const sample = sampleOf(queryOf(this.#options, materialized))
    return { lo, hi: sample === undefined ? allOfTime.hi : createBuckets(sample, unit).of(ended).start - 1n }
  }

  // materialized_views() ----------------------------------------------------------------------------------------------

  get relation(): VirtualRelation {
    return { name: 'materialized_views', columns: materializedColumns, rows: () => this.#rows() }
  }

  #rows(): Value[][] {
    const { tables, transaction } = this.#options
    return tables().flatMap((version) => {
      const { id, materialized } = version.schema
      if (materialized === undefined || materialized.live !== undefined) return []
      const base = this.#baseOf(version)
      const state = this.#states.get(id)
      const failure = this.#invalidReason(materialized) ?? state?.failure ?? null
      return [
        materializedRow(version.schema, materialized, {
          ...{ failure, refreshing: this.#running === id, base, adds: this.#adds(version, base) },
          periodHi:
            materialized.refresh.period === null || failure !== null
              ? null
              : this.#bounds(version, materialized).hi + 1n,
          refreshed: state?.transaction ?? null,
          current: base === undefined ? null : transaction(base),
        }),
      ]
    })
  }

  /** Whether late rows are added to sealed buckets. */
  #adds(version: TableVersion, base: TableVersion | undefined): boolean {
    if (base === undefined || !addsToSealed(base.schema, version.schema.id)) return false
    if (base.schema.dedupKeys.length > 0) return false
    try {
      return addsLate(this.#options, version) !== false
    } catch (error) {
      if (error instanceof SqlError) return true
      throw error
    }
  }

  /** live_views() */
  readonly live = { relation: { name: 'live_views', columns: liveColumns, rows: () => this.#liveRows() } }

  #liveRows(): Value[][] {
    const { tables, transaction, nowMicros } = this.#options
    return tables().flatMap((version) => {
      const { materialized } = version.schema
      const { live } = materialized ?? {}
      if (materialized === undefined || live === undefined) return []
      const base = this.#baseOf(version)
      const state = this.#states.get(version.schema.id)
      const failure = this.#invalidReason(materialized) ?? state?.failure ?? null
      const current = base === undefined ? null : transaction(base)
      const status = { failure, refreshed: state?.transaction ?? null, current, base, nowMicros: nowMicros() }
      return [liveRow(version.schema, materialized, live, status)]
    })
  }

  #invalidReason(view: MaterializedSchema): string | null {
    try {
      queryOf(this.#options, view)
      return null
    } catch (error) {
      if (error instanceof Error) return error.message
      throw error
    }
  }
}

/** Between refreshes: FLUSH EVERY of a live view. */
function pauseOf({ schema: { materialized } }: TableVersion): number {
  return materialized?.live === undefined ? pauseMs : liveLengthMicros(materialized.live.flushEvery) / 1000
}

type Planned = Extract<PlannedStatement, { kind: 'refresh' }>
type Rewrite = Extract<PlannedStatement, { kind: 'rewrite' }>

interface Replacing {
  replace(tables: readonly TableReplacement[]): Promise<Receipt>
}

const limitUnits = { HOUR: 'h', DAY: 'd', WEEK: 'w', MONTH: 'M', YEAR: 'y' } as const

/** The next time of a timer, in microseconds. */
function nextOf({ every, startMicros, timeZone }: RefreshStrategy, nowMicros: number): number {
  if (every === null) return Number.POSITIVE_INFINITY
  const from = startMicros === null ? null : BigInt(startMicros)
  const now = BigInt(Math.floor(nowMicros))
  if (from !== null && now < from) return Number(from)
  const align = { kind: 'calendar', zone: timeZone, offsetMicros: 0n } as const
  return Number(createBuckets({ align, interval: every, from }, 'TIMESTAMP').of(now).end)
}
