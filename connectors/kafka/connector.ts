// Runs a Kafka connector: a consumer whose record batches become blocks of lines; the engine stores their offsets
// with the rows.
//
//   consumer ─ batch ─> PartitionStream ─ block ─> engine ─ receipt (stored or not) ─> offset committed to the group
//
// The stored offsets are authoritative, not those that the group has committed: after every assignment, a partition is
// fetched from its first record that is neither stored nor kept here. If servers of the group append to one Iceberg
// table (`offsetsInLake`), its snapshots have the offsets, and each assigned partition waits until its stored offset is
// the one there. When more than 16 MiB of lines wait for the engine, partitions are paused until half of that is left.
//
// A broker error ends the consumer, and a new one is created after a delay. Nothing is lost: fetched records are kept
// until they are stored.

import { setTimeout as sleep } from 'node:timers/promises'
import { deferred } from '../../engine/base/deferred.js'
import { messageOf } from '../../engine/base/errors.js'
import type { ConnectorServices } from './connector-services.js'
import {
  type Bounds,
  type Consumer,
  type FetchedBatch,
  type FetchedRecord,
  placeKey,
  type TopicPartition,
} from './consumer.js'
import { DeadLetters } from './dead-letters.js'
import type { Positions } from './engine-client.js'
import { type KafkaOptions, precisionOf } from './options.js'
import { type BadRecord, PartitionStream, type StreamServices } from './partition-stream.js'
import { RecordReader } from './record-reader.js'
import { RegistryError } from './schema-registry.js'
import { type ConnectorState, type ConnectorStatistics, Rate } from './statistics.js'

/** Lines that may wait for the engine; partitions are paused above this and resumed below half of it. */
const waitingBytesMax = 16 * 1024 * 1024
/** How long to wait for a full engine before pausing partitions. */
const timeoutMs = 1000
const commitMs = 5000
/** Interval of heartbeats to the group while waiting for something else. */
const heartbeatMs = 1000
const backoffMsMax = 60_000
/** How long to wait for outstanding receipts of the engine. */
const settleMs = 10_000

export class KafkaConnector {
  readonly #options: KafkaOptions
  readonly #services: ConnectorServices
  readonly #reader: RecordReader
  readonly #deadLetters: DeadLetters
  readonly #streams = new Map<string, PartitionStream>()
  readonly #rate = new Rate()
  /** The running consumer. */
  #consumer: Consumer | null = null
  #assigned = new Set<string>()
  /** Assigned partitions whose offset is not known yet; their batches are dropped. */
  #unplaced = new Set<string>()
  #paused: TopicPartition[] = []
  #state: ConnectorState = 'stopped'
  #records = 0
  #rows = 0
  #bytes = 0
  #retries = 0
  #attempts = 0
  #lastError = ''
  #lastErrorMicros = 0
  /** Ends the current run. */
  #stop: AbortController = new AbortController()
  #running: Promise<void> = Promise.resolve()
  readonly #committed = new Map<string, number>()
  #room: (() => void)[] = []

  /** Throws Error when the options are invalid. */
  constructor(options: KafkaOptions, services: ConnectorServices) {
    this.#options = options
    this.#services = services
    this.#reader = new RecordReader(options.mapping, services.registry)
    this.#deadLetters = new DeadLetters(options, services.engine, () => this.#consumer)
  }

  start(): void {
    if (this.#state !== 'stopped' && this.#state !== 'paused' && this.#state !== 'failed') return
    this.#state = 'starting'
    this.#attempts = 0
    this.#stop = new AbortController()
    const { signal } = this.#stop
    const before = this.#running
    this.#running = before.then(() => this.#run(signal))
  }

  /** Leaves the group; start() resumes after the stored offsets. */
  async pause(state: 'paused' | 'stopped' = 'paused'): Promise<void> {
    this.#stop.abort()
    await this.#running
    this.#state = state
  }

  /** Call about once a second. */
  statistics(): ConnectorStatistics {
    this.#rate.sample(this.#services.clock.monotonicMs(), this.#rows)
    return {
      state: this.#state,
      records: this.#records,
      rows: this.#rows,
      bytes: this.#bytes,
      rejected: this.#deadLetters.count,
      rowsPerSecond: this.#rate.perSecond,
      retries: this.#retries,
      lastError: this.#lastError,
      lastErrorMicros: this.#lastErrorMicros,
      partitions: [...this.#streams].map(([key, { place, position, highWatermark }]) => ({
        ...place,
        assigned: this.#assigned.has(key),
        storedOffset: position,
        highWatermark,
      })),
    }
  }

  async #run(signal: AbortSignal): Promise<void> {
    await this.#recall()
    while (!signal.aborted) {
      const error = await this.#consume(signal)
      if (error === null) continue
      try {
        await this.#again(error.message, signal)
      } catch {
        break
      }
    }
    await this.#settle()
    this.#committed.clear()
  }

  /** Waits for the receipts of sent blocks before a new run; unsent ones are fetched again. */
  async #settle(): Promise<void> {
    const until = this.#services.clock.monotonicMs() + settleMs
    for (const stream of this.#streams.values()) stream.close()
    while ([...this.#streams.values()].some(({ quiet }) => !quiet)) {
      if (this.#services.clock.monotonicMs() >= until) return
      await this.#someRoom(50)
    }
  }

  /** Restores the positions of the streams from the engine. */
  async #recall(): Promise<void> {
    this.#streams.clear()
    if (this.#options.offsetsInLake) return
    for (const { topic, partition, offset } of await this.#services.engine.positions()) {
      this.#streamOf({ topic, partition }, offset)
    }
  }

  /** Runs one consumer until it ends; resolves with its error, or null when it was stopped. */
  async #consume(signal: AbortSignal): Promise<Error | null> {
    let consumer: Consumer | null = null
    try {
      consumer = this.#services.consumer()
      const ended = deferred<Error | null>()
      signal.addEventListener('abort', () => ended.resolve(null), { once: true })
      this.#consumer = consumer
      const current = consumer
      await Promise.race([
        ended.promise,
        consumer.start({
          assigned: (places) => this.#place(current, places, ended.resolve),
          batch: (batch, heartbeat) => this.#take(batch, heartbeat, signal),
          outdated: () => ended.resolve(null),
          reassigning: () => void this.#handOver(),
          failed: ended.resolve,
        }),
      ])
      const timer = setInterval(() => void this.#lookAt(current), commitMs)
      try {
        return await ended.promise
      } finally {
        clearInterval(timer)
        await this.#commit(current)
      }
    } catch (error) {
      return error instanceof Error ? error : new Error(String(error))
    } finally {
      this.#consumer = null
      this.#paused = []
      this.#assigned = new Set()
      if (consumer !== null && this.#options.offsetsInLake) {
        await this.#settle()
        await Promise.race([this.#handOver(), this.#someRoom(settleMs)])
      }
      await consumer?.stop().catch(() => {})
    }
  }

  /** Positions newly assigned partitions: after the stored offset, or as the options say when nothing is stored. */
  #place(consumer: Consumer, places: readonly TopicPartition[], failed: (error: Error) => void): void {
    this.#assigned = new Set(places.map(placeKey))
    this.#paused = []
    this.#attempts = 0
    this.#state = 'running'
    const names = places.map(({ topic, partition }) => `${topic}-${partition}`).join(' ')
    this.#log('I', `partitions assigned [${names === '' ? 'none' : names}]`)
    if (this.#options.offsetsInLake) {
      this.#unplaced = new Set(this.#assigned)
      for (const key of this.#streams.keys()) if (!this.#assigned.has(key)) this.#end(key)
      if (places.length > 0) consumer.pause(places)
      if (places.length > 0) this.#placeShared(consumer, places, this.#unplaced).catch(failed)
      return
    }
    for (const place of places) {
      const stream = this.#streamOf(place, -1)
      const bounds = consumer.knownBounds(place)
      if (stream.next >= 0) consumer.seek(place, stream.next)
      else if (bounds !== undefined) this.#beginAt(consumer, stream, bounds)
      else {
        consumer.pause([place])
        this.#begin(consumer, stream).catch(failed)
      }
    }
  }

  /** `unplaced`: that of this assignment, which a later one replaces. */
  async #placeShared(consumer: Consumer, places: readonly TopicPartition[], unplaced: Set<string>): Promise<void> {
    const isCurrent = (): boolean => this.#unplaced === unplaced && this.#consumer === consumer
    const { signal } = this.#stop
    let positions: Positions | null = null
    while (positions === null) {
      try {
        positions = await this.#services.engine.begin(places)
      } catch (error) {
        if (!isCurrent() || signal.aborted) return
        await this.#again(messageOf(error), signal)
      }
      if (!isCurrent()) return
    }
    this.#state = 'running'
    this.#attempts = 0
    const offsets = new Map(positions.map((position) => [placeKey(position), position.offset]))
    for (const place of places) {
      const key = placeKey(place)
      this.#end(key)
      const stream = this.#streamOf(place, offsets.get(key) ?? -1)
      if (stream.next < 0) this.#beginAt(consumer, stream, await consumer.bounds(place))
      else consumer.seek(place, stream.next)
      if (!isCurrent()) return
      unplaced.delete(key)
    }
    consumer.resume(places)
  }

  #end(key: string): void {
    this.#streams.get(key)?.close()
    this.#streams.delete(key)
  }

  /** Goes back, or on, where the stored offset was moved because another server has committed the same records. */
  async #follow(consumer: Consumer): Promise<void> {
    const before = new Map([...this.#streams].map(([key, { position }]) => [key, position]))
    for (const { topic, partition, offset } of await this.#services.engine.positions()) {
      const place = { topic, partition }
      const key = placeKey(place)
      const stream = this.#streams.get(key)
      if (stream?.idle !== true || stream.position === offset || stream.position !== before.get(key)) continue
      if (!this.#assigned.has(key) || this.#unplaced.has(key) || this.#consumer !== consumer) continue
      this.#end(key)
      consumer.seek(place, this.#streamOf(place, offset).next)
    }
  }

  async #begin(consumer: Consumer, stream: PartitionStream): Promise<void> {
    this.#beginAt(consumer, stream, await consumer.bounds(stream.place))
    consumer.resume([stream.place])
  }

  #beginAt(consumer: Consumer, stream: PartitionStream, { first, end }: Bounds): void {
    if (stream.next < 0) stream.next = this.#options.client.offsetReset === 'earliest' ? first : end
    stream.highWatermark = Math.max(stream.highWatermark, end)
    consumer.seek(stream.place, stream.next)
  }

  #streamOf(place: TopicPartition, position: number): PartitionStream {
    const key = placeKey(place)
    const known = this.#streams.get(key)
    if (known !== undefined) return known
    const stream = new PartitionStream(place, position, this.#streamServices())
    this.#streams.set(key, stream)
    return stream
  }

  #streamServices(): StreamServices {
    const { signal } = this.#stop
    return {
      precision: precisionOf(this.#options),
      read: (place, records, start, left) => this.#reader.read(place, records, start, left),
      store: (request) => this.#services.engine.store(request),
      report: (place, bad) => this.#report(place, bad, signal),
      again: (reason) => this.#again(reason, signal),
      restart: (place, stored) => {
        this.#log(
          'W',
          `the stored offset differs from the expected one [${place.topic}-${place.partition}, stored=${stored}]`,
        )
        if (stored >= 0) this.#consumer?.seek(place, stored + 1)
      },
      progress: (rows, records, bytes) => {
        this.#rows += rows
        this.#records += records
        this.#bytes += bytes
        this.#attempts = 0
        if (this.#state === 'retrying' && this.#consumer !== null) this.#state = 'running'
        this.#drained()
      },
    }
  }

  /** Retries dead letters until they are accepted: no record may vanish. */
  async #report(place: TopicPartition, bad: readonly BadRecord[], signal: AbortSignal): Promise<void> {
    for (;;) {
      try {
        await this.#deadLetters.report(place, bad)
        return
      } catch (error) {
        await this.#again(`dead letters were not accepted: ${messageOf(error)}`, signal)
      }
    }
  }

  async #take(batch: FetchedBatch, heartbeat: () => Promise<void>, signal: AbortSignal): Promise<void> {
    const stream = this.#streamOf(batch, -1)
    if (stream.next < 0 || signal.aborted || this.#unplaced.has(placeKey(batch))) return
    stream.highWatermark = batch.highWatermark
    if (await this.#isAhead(stream, batch)) return
    const start = this.#startOf(stream, batch)
    if (start < batch.records.length) {
      if (!(await this.#prepare(batch.records, heartbeat, signal))) return
      stream.add(batch.records, start, batch.nextOffset)
    }
    if (this.#waitingBytes > waitingBytesMax) await this.#wait(batch, heartbeat)
  }

  /** The batch starts after the expected offset. If a second request returns the same, the others are not coming. */
  async #isAhead(stream: PartitionStream, { topic, partition, fetchedOffset }: FetchedBatch): Promise<boolean> {
    if (fetchedOffset <= stream.next) return false
    if (stream.lastSeekOffset === stream.next) {
      const gap = `${topic}-${partition}, from=${stream.next}, to=${fetchedOffset - 1}`
      // Batches of aborted transactions are skipped, too.
      if (((await this.#consumer?.bounds({ topic, partition }))?.first ?? 0) <= stream.next) return false
      // Another server may have their rows, and could not commit them any more.
      if (this.#options.offsetsInLake) throw new Error(`records after the offset in the table were deleted [${gap}]`)
      this.#log('W', `records have been deleted from the partition [${gap}]`)
      return false
    }
    stream.lastSeekOffset = stream.next
    this.#consumer?.seek({ topic, partition }, stream.next)
    return true
  }

  /** Index of the first record not yet seen. */
  #startOf(stream: PartitionStream, { topic, partition, records, highWatermark }: FetchedBatch): number {
    const first = records[0]
    if (first === undefined || Number(first.offset) >= stream.next) return 0
    if (highWatermark < stream.next && stream.idle && this.#options.offsetsInLake)
      throw new Error(`the partition ends before the offset in the table [${topic}-${partition}, next=${stream.next}]`)
    if (highWatermark < stream.next && stream.idle) {
      this.#log('W', `the partition ends before the stored offset; reading it from its start [${topic}-${partition}]`)
      return 0
    }
    const index = records.findIndex(({ offset }) => Number(offset) >= stream.next)
    return index < 0 ? records.length : index
  }

  /** Returns false when the connector is stopping. Waits for a schema registry that does not respond. */
  async #prepare(
    records: readonly FetchedRecord[],
    heartbeat: () => Promise<void>,
    signal: AbortSignal,
  ): Promise<boolean> {
    for (;;) {
      try {
        await this.#reader.prepare(records)
        return true
      } catch (error) {
        if (!(error instanceof RegistryError)) throw error
        const timer = setInterval(() => void heartbeat().catch(() => {}), heartbeatMs)
        try {
          await this.#again(error.message, signal)
        } catch {
          return false
        } finally {
          clearInterval(timer)
        }
        this.#state = 'running'
      }
    }
  }

  get #waitingBytes(): number {
    let bytes = 0
    for (const stream of this.#streams.values()) bytes += stream.bytes
    return bytes
  }

  /** Waits for the engine for a while, then pauses the partition. */
  async #wait(place: TopicPartition, heartbeat: () => Promise<void>): Promise<void> {
    const until = this.#services.clock.monotonicMs() + timeoutMs
    while (this.#waitingBytes > waitingBytesMax) {
      if (this.#services.clock.monotonicMs() >= until) {
        this.#consumer?.pause([{ topic: place.topic, partition: place.partition }])
        this.#paused.push({ topic: place.topic, partition: place.partition })
        this.#state = 'waiting'
        return
      }
      await this.#someRoom(timeoutMs / 4)
      await heartbeat()
    }
  }

  /** Resolves at the next receipt, or after a while. */
  async #someRoom(ms: number): Promise<void> {
    const { promise, resolve } = deferred<void>()
    const timer = setTimeout(resolve, ms)
    this.#room.push(resolve)
    await promise
    clearTimeout(timer)
  }

  #drained(): void {
    for (const resolve of this.#room.splice(0)) resolve()
    if (this.#paused.length === 0 || this.#waitingBytes > waitingBytesMax / 2) return
    this.#consumer?.resume(this.#paused)
    this.#paused = []
    this.#state = 'running'
  }

  async #lookAt(consumer: Consumer): Promise<void> {
    await this.#commit(consumer)
    if (this.#options.offsetsInLake) await this.#follow(consumer)
  }

  /** Before another server reads on. */
  async #handOver(): Promise<void> {
    if (this.#options.offsetsInLake) await this.#services.engine.handOver().catch(() => {})
  }

  /** What the group is to know: offsets that are stored, and in the Iceberg table if there is a shared one. */
  async #stored(): Promise<Positions> {
    if (this.#options.offsetsInLake) return this.#services.engine.committed()
    return [...this.#streams.values()].map(({ place, position }) => ({ ...place, offset: position }))
  }

  /** Commits offsets to the group for monitoring only; nothing depends on them. */
  async #commit(consumer: Consumer): Promise<void> {
    const offsets = (await this.#stored()).flatMap(({ topic, partition, offset }) => {
      const key = placeKey({ topic, partition })
      const isNew = this.#assigned.has(key) && offset >= 0 && this.#committed.get(key) !== offset
      return isNew ? [{ key, topic, partition, offset: offset + 1 }] : []
    })
    if (offsets.length === 0) return
    try {
      await consumer.commit(offsets.map(({ topic, partition, offset }) => ({ topic, partition, offset })))
      for (const { key, offset } of offsets) this.#committed.set(key, offset - 1)
    } catch {
      // After a rebalance or a lost broker, the next round reports the error.
    }
  }

  /**
   * Waits with exponential backoff, at most a minute. Rejects when the connector is stopping or the retries are used
   * up.
   */
  async #again(reason: string, signal: AbortSignal): Promise<void> {
    const { maxRetries, retryBackoffMs } = this.#options
    this.#note(reason)
    if (maxRetries >= 0 && this.#attempts >= maxRetries) {
      this.#state = 'failed'
      this.#log('E', `gave up after ${this.#attempts} attempts: ${reason}`)
      this.#stop.abort()
    }
    if (signal.aborted) throw new Error('the connector is stopping')
    this.#state = 'retrying'
    this.#attempts++
    this.#retries++
    const longestMs = Math.max(backoffMsMax, retryBackoffMs)
    const waitMs = Math.min(retryBackoffMs * 2 ** Math.min(this.#attempts - 1, 10), longestMs)
    await sleep(waitMs, undefined, { signal }).catch(() => {})
    if (signal.aborted) throw new Error('the connector is stopping')
  }

  /** Logs the same reason once until another one occurs or something succeeds. */
  #note(reason: string): void {
    if (this.#attempts === 0 || reason !== this.#lastError) this.#log('W', `retrying later: ${reason}`)
    this.#lastError = reason
    this.#lastErrorMicros = this.#services.clock.nowMicros()
  }

  #log(level: 'I' | 'W' | 'E', message: string): void {
    this.#services.log(level, `kafka.${this.#options.name}`, message)
  }
}
