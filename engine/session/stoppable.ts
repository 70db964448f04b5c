// Makes UPDATE, DELETE and ALTER COLUMN TYPE stop when they are cancelled or their deadline passes. They rewrite a
// table, which the writer does as a job in the background. A stopped statement fails and changes nothing, unless the
// job has already been completed; the writer's response tells which. A job that lacks memory is tried again.

import { setTimeout as sleep } from 'node:timers/promises'
import type { ExecuteOptions } from '../api/statements.js'
import { CancelledError, isShortage, TimeoutError } from '../base/errors.js'
import { setCancelFlag } from '../memory/cancel-flags.js'
import type { SharedMemory } from '../memory/shared-memory.js'
import type { QueryActivity } from '../sql/catalog.js'
import type { Receipt, SchemaChange } from '../storage/jobs/messages.js'
import type { WriterRequests } from '../threads/writer-requests.js'
import type { CatalogView } from './catalog-view.js'
import { cancelReason, type Planned } from './plan-helpers.js'

const repeatMs = 250
/** A change that fails for lack of memory is tried again after this time, which doubles with each try. */
const retryMs = 250
const triesMax = 6
const lookMs = 50

export interface StoppableOptions {
  readonly memory: SharedMemory
  readonly view: CatalogView
  /** Source of ids: changes are numbered like queries. */
  readonly queries: { nextQueryId: number }
  readonly activity: Map<number, QueryActivity>
  readonly requests: WriterRequests
}

/** Cancellation and deadline of a change. */
export interface Requested extends Pick<ExecuteOptions, 'signal' | 'timeoutMs'> {
  readonly activityOf: (id: number) => QueryActivity
}

export class Stoppable {
  readonly #options: StoppableOptions
  readonly #running = new Map<number, (error: Error) => void>()

  constructor(options: StoppableOptions) {
    this.#options = options
  }

  /** Holds the tables that the statement only reads until it is done. */
  async rewrite({ tableId, program, tables }: Planned<'rewrite'>, requested: Requested): Promise<Receipt> {
    const { view, requests } = this.#options
    const held = view.hold(tables)
    try {
      await requests.symbolsOf(held)
      return await this.#run(requested, (stopId) => {
        const whole = { ...program, snapshots: held.snapshots, stopId }
        return requests.send((requestId) => ({ kind: 'rewrite', requestId, tableId, program: whole }))
      })
    } finally {
      held.release()
    }
  }

  /** A change of types rewrites columns, and can be cancelled; other changes take no time. */
  change(
    change: SchemaChange,
    requested: Requested,
    send: (change: SchemaChange) => Promise<Receipt>,
  ): Promise<Receipt> {
    if (change.kind !== 'changeTypes') return send(change)
    return this.#run(requested, (stopId) => send({ ...change, program: { ...change.program, stopId } }))
  }

  /** False when no change with this id is running. */
  cancel(id: number, reason: string): boolean {
    const stop = this.#running.get(id)
    stop?.(new CancelledError(reason))
    return stop !== undefined
  }

  /** `work` passes the id on to the job. */
  async #run(
    { signal, timeoutMs, activityOf }: Requested,
    work: (stopId: number) => Promise<Receipt>,
  ): Promise<Receipt> {
    const { memory, queries, activity } = this.#options
    const id = queries.nextQueryId++
    let over: Error | null = null
    let again: NodeJS.Timeout | undefined
    const stop = (error: Error): void => {
      if (over !== null) return
      over = error
      setCancelFlag(memory, id)
      again = setInterval(() => setCancelFlag(memory, id), repeatMs)
    }
    const aborted = (): void => stop(new CancelledError(cancelReason(signal)))
    const timer = timeoutMs > 0 ? setTimeout(() => stop(new TimeoutError(timeoutMs)), timeoutMs) : undefined
    signal?.addEventListener('abort', aborted)
    activity.set(id, activityOf(id))
    this.#running.set(id, stop)
    try {
      return await tried(
        () => work(id),
        () => over !== null,
      )
    } catch (error) {
      throw over !== null && error instanceof CancelledError ? over : error
    } finally {
      clearTimeout(timer)
      clearInterval(again)
      signal?.removeEventListener('abort', aborted)
      activity.delete(id)
      this.#running.delete(id)
    }
  }
}

async function tried(work: () => Promise<Receipt>, stopped: () => boolean): Promise<Receipt> {
  for (let tries = 1; ; tries++) {
    try {
      return await work()
    } catch (error) {
      if (tries === triesMax || !isShortage(error)) throw error
    }
    const againMs = performance.now() + retryMs * 2 ** tries
    while (performance.now() < againMs) {
      if (stopped()) throw new CancelledError()
      await sleep(lookMs)
    }
  }
}
