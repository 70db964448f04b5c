// Executes storage policies, by which old partitions are copied to object storage: uploads the parts of partitions that
// are old enough, and has the writer record each uploaded part. It runs on the main thread, which only decides; another
// thread reads and sends the files.
//
//   key    <root id>/<table id>/<partition>/<part id>-<random>.parquet, relative to the prefix of the store
//
// Invariants:
//   1. A key is random, and an object is written only if its key does not exist: no object is ever overwritten.
//   2. A part is recorded as uploaded only after size and checksum of its object were read back.
//   3. The table version that contains the part is marked as in use during the upload, so its file is not deleted.
//
// If no store is configured, or the store is unavailable, parts stay local until it is available; nothing else waits
// for them.

import { randomUUID } from 'node:crypto'
import type { Clock } from '../base/clock.js'
import type { Log } from '../base/log.js'
import { StoreError } from '../object-store/object-store.js'
import type { ToWriter } from '../storage/jobs/messages.js'
import { isOlder } from '../storage/schema/age.js'
import type { PartDescriptor, TableVersion } from '../storage/schema/schema.js'
import type { StoreClient } from '../threads/store-client.js'
import type { CatalogView } from './catalog-view.js'

export interface UploaderOptions {
  readonly view: CatalogView
  /** Null: none is configured, and parts wait. */
  readonly store: Pick<StoreClient, 'upload'> | null
  /** Whether the store honours put-if-absent and is there. */
  readonly ready: () => boolean
  /** Of parts. */
  readonly directory: string
  /** Makes keys of several roots differ. */
  readonly rootId: string
  readonly clock: Clock
  readonly log: Log
  /** Called whenever the figures may have changed. */
  readonly report: (figures: UploadFigures) => void
  readonly post: (message: Extract<ToWriter, { kind: 'uploaded' }>) => void
}

export interface UploadFigures {
  /** Parts that are old enough and not uploaded. */
  readonly waiting: number
  readonly uploaded: number
  readonly bytes: number
  readonly failures: number
  /** Of the last upload; null: it succeeded. */
  readonly failure: string | null
}

const lookMs = 1000
const uploadsAtOnce = 4
/** After a failure. */
const pauseMs = 10_000
/** The writer notes an upload within this time, or never: the part was replaced, or the disk is full. */
const notedMs = 60_000

export class Uploader {
  readonly #options: UploaderOptions
  /** By part id: until when the part is not uploaded again. */
  readonly #busy = new Map<number, number>()
  readonly #timer: NodeJS.Timeout
  #running = 0
  #pausedUntilMs = 0
  #figures: UploadFigures = { waiting: 0, uploaded: 0, bytes: 0, failures: 0, failure: null }

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
    let waiting = 0
    for (const version of view.tables()) {
      for (const part of dueParts(version, nowMicros)) {
        waiting++
        const isBusy = (this.#busy.get(part.id) ?? 0) > nowMs
        const isFull = this.#running >= uploadsAtOnce || nowMs < this.#pausedUntilMs
        if (store !== null && ready() && !isBusy && !isFull) void this.#upload(store, version, part)
      }
    }
    for (const [partId, untilMs] of this.#busy) if (untilMs <= nowMs) this.#busy.delete(partId)
    this.#figures = { ...this.#figures, waiting }
    report(this.#figures)
  }

  async #upload(
    store: Pick<StoreClient, 'upload'>,
    { schema: { id: tableId, name } }: TableVersion,
    part: PartDescriptor,
  ): Promise<void> {
    const { view, directory, rootId, clock, log, post, report } = this.#options
    const key = `${rootId}/${tableId}/${part.partition}/${part.id}-${randomUUID()}.parquet`
    const held = view.hold([tableId])
    this.#running++
    this.#busy.set(part.id, Number.POSITIVE_INFINITY)
    try {
      const { bytes, checksum } = await store.upload(`${directory}/${part.file}`, key)
      post({ kind: 'uploaded', tableId, partId: part.id, remote: { key, checksum } })
      this.#busy.set(part.id, clock.monotonicMs() + notedMs)
      const { uploaded, bytes: before } = this.#figures
      this.#figures = { ...this.#figures, uploaded: uploaded + 1, bytes: before + bytes, failure: null }
    } catch (error) {
      this.#busy.delete(part.id)
      if (!(error instanceof StoreError)) throw error
      this.#pausedUntilMs = clock.monotonicMs() + pauseMs
      if (this.#figures.failure !== error.message) {
        log('W', 'object-store', `a part could not be uploaded [table=${name}, part=${part.id}]: ${error.message}`)
      }
      this.#figures = { ...this.#figures, failures: this.#figures.failures + 1, failure: error.message }
    } finally {
      held.release()
      this.#running--
      report(this.#figures)
    }
  }
}

/** Parts of partitions that TO REMOTE is about and that are not in the store. */
export function dueParts({ schema, parts }: TableVersion, nowMicros: bigint): readonly PartDescriptor[] {
  const { policy } = schema
  if (policy == null || !policy.enabled || policy.toRemote === null || parts.length === 0) return []
  let newest = 0n
  for (const { maxTs } of parts) if (maxTs > newest) newest = maxTs
  const isDue = isOlder(schema, newest, nowMicros, policy.toRemote)
  return parts.filter(({ remote, maxTs }) => remote === undefined && isDue(maxTs))
}
