// Fakes for tests: a consumer that the test controls, in the place of kafkajs, and an engine that stores a block of
// lines only if it continues the stored offset, like the real one, and rejects lines that contain the word `bad`.

import type {
  Bounds,
  Consumer,
  ConsumerEvents,
  DeadLetter,
  FetchedBatch,
  TopicPartition,
} from '../../../connectors/kafka/consumer.js'
import type {
  EngineClient,
  Positions,
  Reject,
  StoreRequest,
  StoreResult,
} from '../../../connectors/kafka/engine-client.js'
import { deferred } from '../../../engine/base/deferred.js'
import { record } from './kafka-support.js'

export class ScriptedConsumer implements Consumer {
  events: ConsumerEvents | null = null
  readonly seeks: string[] = []
  readonly paused = new Set<number>()
  readonly commits: string[] = []
  readonly letters: { readonly topic: string; readonly letter: DeadLetter }[] = []
  bounds0: Bounds
  stopped = false
  heartbeats = 0
  /** Thrown by start(). */
  unreachable: Error | null = null
  /** Thrown by send(), once. */
  sendError: Error | null = null

  constructor(bounds: Bounds = { first: 0, end: 100 }) {
    this.bounds0 = bounds
  }

  async start(events: ConsumerEvents): Promise<void> {
    if (this.unreachable !== null) throw this.unreachable
    this.events = events
  }

  seek({ partition }: TopicPartition, offset: number): void {
    this.seeks.push(`${partition}:${offset}`)
  }

  pause(places: readonly TopicPartition[]): void {
    for (const { partition } of places) this.paused.add(partition)
  }

  resume(places: readonly TopicPartition[]): void {
    for (const { partition } of places) this.paused.delete(partition)
  }

  knownBounds(): Bounds | undefined {
    return undefined
  }

  async bounds(): Promise<Bounds> {
    return this.bounds0
  }

  async commit(offsets: readonly (TopicPartition & { readonly offset: number })[]): Promise<void> {
    for (const { partition, offset } of offsets) this.commits.push(`${partition}:${offset}`)
  }

  async send(topic: string, letters: readonly DeadLetter[]): Promise<void> {
    const error = this.sendError
    this.sendError = null
    if (error !== null) throw error
    for (const letter of letters) this.letters.push({ topic, letter })
  }

  async stop(): Promise<void> {
    this.stopped = true
  }

  assign(...partitions: number[]): void {
    this.events?.assigned(partitions.map((partition) => ({ topic: 'ticks', partition })))
  }

  /** Records from..to-1 of the partition; `textOf` makes each one's value. */
  async deliver(
    partition: number,
    from: number,
    to: number,
    textOf: (offset: number) => string | null = (offset) => `{"v":${offset}}`,
    highWatermark = 1000,
  ): Promise<void> {
    const records = Array.from({ length: to - from }, (_, index) =>
      record(textOf(from + index), { offset: String(from + index) }),
    )
    const batch: FetchedBatch = {
      topic: 'ticks',
      partition,
      records,
      fetchedOffset: from,
      nextOffset: to,
      highWatermark,
    }
    await this.events?.batch(batch, async () => {
      this.heartbeats++
    })
  }
}

export class ScriptedEngine implements EngineClient {
  /** Stored offset by partition, and the stored lines. */
  readonly offsets = new Map<number, number>()
  readonly lines: string[] = []
  readonly noted: Reject[] = []
  readonly requests: StoreRequest[] = []
  /** Answers of the next requests, before the engine looks at them. */
  readonly answers: StoreResult[] = []
  #held: (() => void)[] | null = null

  async positions() {
    return [...this.offsets].map(([partition, offset]) => ({ topic: 'ticks', partition, offset }))
  }

  /** What the Iceberg table says; null: it does not answer. */
  lakeOffsets: ReadonlyMap<number, number> | null = new Map()
  handOvers = 0

  /** The stored offset becomes the one in the table. */
  async begin(places: readonly TopicPartition[]): Promise<Positions> {
    if (this.lakeOffsets === null) throw new Error('the catalog does not answer')
    for (const { partition } of places) {
      const next = this.lakeOffsets.get(partition)
      if (next !== undefined) this.offsets.set(partition, next - 1)
    }
    return this.positions()
  }

  async handOver(): Promise<void> {
    this.handOvers++
  }

  async committed(): Promise<Positions> {
    return [...(this.lakeOffsets ?? [])].map(([partition, next]) => ({ topic: 'ticks', partition, offset: next - 1 }))
  }

  /** From now on nothing is answered until release(). */
  hold(): void {
    this.#held ??= []
  }

  release(): void {
    const held = this.#held ?? []
    this.#held = null
    for (const resolve of held) resolve()
  }

  async store(request: StoreRequest): Promise<StoreResult> {
    this.requests.push(request)
    const result = this.answers.shift() ?? this.#take(request)
    if (this.#held !== null) {
      const wait = deferred<void>()
      this.#held.push(() => wait.resolve())
      await wait.promise
    }
    return result
  }

  #take({ partition, previous, offset, lines }: StoreRequest): StoreResult {
    const stored = this.offsets.get(partition) ?? -1
    if (stored !== previous) return { kind: 'astray', stored }
    const strings = Buffer.from(lines).toString().split('\n').slice(0, -1)
    const bad = strings.flatMap((text, index) =>
      text.includes('bad') ? [{ line: index + 1, message: 'it is bad', table: 'ticks' }] : [],
    )
    if (bad.length > 0) return { kind: 'bad', lines: bad }
    this.lines.push(...strings)
    this.offsets.set(partition, offset)
    return { kind: 'stored', rows: strings.length }
  }

  rejects(rejects: readonly Reject[]): void {
    this.noted.push(...rejects)
  }
}
