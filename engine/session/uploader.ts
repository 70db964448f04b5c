// Executes the stages TO REMOTE and DROP LOCAL of storage policies, by which old partitions move to object storage. It
// uploads the parts (Parquet files) of partitions that are old enough, and has the writer record each uploaded part. At
// the age of DROP LOCAL it writes a sidecar for each uploaded part (a local file with the part's metadata), and has the
// writer drop the part's local file. It runs on the main thread, which only decides; another thread reads, sends and
// writes the files.
//
//   key    <root id>/<table id>/<partition>/<part id>-<random>.parquet, relative to the prefix of the store
//
// Invariants:
//   1. A key is random, and an object is written only if its key does not exist: no object is ever overwritten.
//   2. A part is recorded as uploaded only after size and checksum of its object were read back.
//   3. The table version that contains the part is marked as in use during the upload, so its file is not deleted.
//   4. Before a local file is dropped, size and checksum of its object are read once more, and the checksum of the file
//      is compared with it; and its sidecar is durable (storage/part/sidecar.ts).
//
// If no store is configured, or the store is unavailable, parts stay local until it is available; nothing else waits
// for them.

import { randomUUID } from 'node:crypto'
import type { Clock } from '../base/clock.js'
import type { Log } from '../base/log.js'
import { StoreError } from '../object-store/object-store.js'
import type { ToWriter } from '../storage/jobs/messages.js'
import { isOlder } from '../storage/schema/age.js'
import {
  isRemoteOnly,
  type PartDescriptor,
  type PartitionAge,
  sidecarFileOf,
  type TableVersion,
} from '../storage/schema/schema.js'
import type { StoreClient } from '../threads/store-client.js'
import type { CatalogView } from './catalog-view.js'

export type PolicyStore = Pick<StoreClient, 'upload' | 'writeSidecar'>

export interface UploaderOptions {
  readonly view: CatalogView
  /** Null: none is configured, and parts wait. */
  readonly store: PolicyStore | null
  /** Whether the store honours put-if-absent and is there. */
  readonly ready: () => boolean
  /** Of parts. */
  readonly directory: string
  /** Makes keys of several roots differ. */
  readonly rootId: string
  readonly clock: Clock
  readonly log: Log
  /** Called whenever the statistics may have changed. */
  readonly report: (statistics: UploadStatistics) => void
  readonly post: (message: Extract<ToWriter, { kind: 'uploaded' }>) => void
}

export interface UploadStatistics {
  /** Parts that are old enough and not uploaded. */
  readonly waiting: number
  /** Uploaded parts whose local files are old enough to be dropped. */
  readonly droppable: number
  readonly uploaded: number
  readonly bytes: number
  /** Parts whose local files were dropped. */
  readonly dropped: number
  readonly failures: number
  /** Of the last transfer; null: it succeeded. */
  readonly failure: string | null
}

const lookMs = 1000
const transfersAtOnce = 4
/** After a failure. */
const pauseMs = 10_000
/** The writer notes an upload within this time, or never: the part was replaced, or the disk is full. */
const notedMs = 60_000

export class Uploader {
  readonly #options: UploaderOptions
  /** By part id, negative when its file is dropped: until when that is not tried again. */
  readonly #busy = new Map<number, number>()
  readonly #timer: NodeJS.Timeout
  #running = 0
  #pausedUntilMs = 0
  #statistics: UploadStatistics = {
    waiting: 0,
    droppable: 0,
    uploaded: 0,
    bytes: 0,
    dropped: 0,
    failures: 0,
    failure: null,
  }

  constructor(options: UploaderOptions) {
    this.#options = options
    this.#timer = setInterval(() => this.#look(), lookMs).unref()
  }

  close(): void {
    clearInterval(this.#timer)
  }

  #look(): void {
    const { view, store, clock, ready, report } = this.#options
    const nowMs = clock.monotonicMs()
    const nowMicros = BigInt(Math.floor(clock.nowMicros()))
    let [waiting, droppable] = [0, 0]
    const isFree = (work: number): boolean =>
      ready() && nowMs >= this.#pausedUntilMs && this.#running < transfersAtOnce && (this.#busy.get(work) ?? 0) <= nowMs
    for (const version of view.tables()) {
      for (const part of dueParts(version, nowMicros)) {
        waiting++
        if (store !== null && isFree(part.id)) void this.#upload(store, version, part)
      }
      for (const part of droppableParts(version, nowMicros)) {
        droppable++
        if (store !== null && isFree(-part.id)) void this.#dropLocal(store, version, part)
      }
    }
    for (const [partId, untilMs] of this.#busy) if (untilMs <= nowMs) this.#busy.delete(partId)
    this.#statistics = { ...this.#statistics, waiting, droppable }
    report(this.#statistics)
  }

  async #upload(store: PolicyStore, version: TableVersion, part: PartDescriptor): Promise<void> {
    const { directory, rootId, post } = this.#options
    const tableId = version.schema.id
    const key = `${rootId}/${tableId}/${part.partition}/${part.id}-${randomUUID()}.parquet`
    await this.#attempt(version, part.id, 'uploaded', async () => {
      const { bytes, checksum } = await store.upload(`${directory}/${part.file}`, key)
      post({ kind: 'uploaded', tableId, partId: part.id, remote: { key, checksum } })
      const { uploaded, bytes: before } = this.#statistics
      this.#statistics = { ...this.#statistics, uploaded: uploaded + 1, bytes: before + bytes, failure: null }
    })
  }

  async #dropLocal(store: PolicyStore, version: TableVersion, part: PartDescriptor): Promise<void> {
    const { directory, post } = this.#options
    const { remote } = part
    if (remote === undefined) return
    await this.#attempt(version, -part.id, 'dropped from this disk', async () => {
      await store.writeSidecar(`${directory}/${part.file}`, `${directory}/${sidecarFileOf(part)}`, remote)
      post({ kind: 'uploaded', tableId: version.schema.id, partId: part.id, remote: { ...remote, only: true } })
      this.#statistics = { ...this.#statistics, dropped: this.#statistics.dropped + 1, failure: null }
    })
  }

  /** Works on a part while its version is in use. After a failure all work pauses. */
  async #attempt(
    { schema: { id: tableId, name } }: TableVersion,
    busy: number,
    what: string,
    work: () => Promise<void>,
  ): Promise<void> {
    const { view, clock, log, report } = this.#options
    const held = view.hold([tableId])
    this.#running++
    this.#busy.set(busy, Number.POSITIVE_INFINITY)
    try {
      await work()
      this.#busy.set(busy, clock.monotonicMs() + notedMs)
    } catch (error) {
      this.#busy.delete(busy)
      if (!(error instanceof StoreError)) throw error
      this.#pausedUntilMs = clock.monotonicMs() + pauseMs
      if (this.#statistics.failure !== error.message) {
        log(
          'W',
          'object-store',
          `a part could not be ${what} [table=${name}, part=${Math.abs(busy)}]: ${error.message}`,
        )
      }
      this.#statistics = { ...this.#statistics, failures: this.#statistics.failures + 1, failure: error.message }
    } finally {
      held.release()
      this.#running--
      report(this.#statistics)
    }
  }
}

/** Parts of partitions that TO REMOTE is about and that are not in the store. */
export function dueParts(version: TableVersion, nowMicros: bigint): readonly PartDescriptor[] {
  const age = version.schema.policy?.toRemote ?? null
  return partsBefore(version, nowMicros, age).filter(({ remote }) => remote === undefined)
}

/** Uploaded parts of partitions that DROP LOCAL is about, whose files are still on this disk. */
function droppableParts(version: TableVersion, nowMicros: bigint): readonly PartDescriptor[] {
  const age = version.schema.policy?.dropLocal ?? null
  return partsBefore(version, nowMicros, age).filter((part) => part.remote !== undefined && !isRemoteOnly(part))
}

/** Parts of partitions of at least this age; none while the policy is disabled. */
function partsBefore(
  { schema, parts }: TableVersion,
  nowMicros: bigint,
  age: PartitionAge | null,
): readonly PartDescriptor[] {
  if (age === null || schema.policy?.enabled !== true || parts.length === 0) return []
  let newest = 0n
  for (const { maxTs } of parts) if (maxTs > newest) newest = maxTs
  const isDue = isOlder(schema, newest, nowMicros, age)
  return parts.filter(({ maxTs }) => isDue(maxTs))
}
