// One partition on its way to the engine: blocks of records that are not stored yet, in their order.
//
//   add ─> [ sent, no answer yet | not sent ] ─> stored: the position moves
//
// Each block names the offset that must be stored before it, so a block that does not follow is refused by the engine
// whatever happens around it. Answers other than `stored` stop the sending until all that was sent is answered; then the
// first block that is not stored is looked at, once.
//
// Invariants:
//   1. `position` is what the engine has answered for; `next` is behind the last record that was added.
//   2. A bad record goes to the dead letters before the block around it is stored.

import type { FetchedRecord, TopicPartition } from './consumer.js'
import type { RecordBlock } from './record-reader.js'
import type { StoreRequest, StoreResult } from './rows-door.js'

export interface BadRecord {
  readonly record: FetchedRecord
  readonly reason: string
  readonly table: string
}

const none = new Uint8Array(0)

interface Block {
  readonly records: readonly FetchedRecord[]
  readonly start: number
  /** Stored offsets before and behind it. */
  readonly previous: number
  offset: number
  content: RecordBlock
  /** Size of its lines; they go with the request and are made again for another one. */
  bytes: number
  /** Of the records from `start` on: what was found bad so far; these are left out. */
  readonly left: Set<number>
  /** Not yet among the dead letters. */
  bad: BadRecord[]
  sent: boolean
  stored: boolean
}

export interface StreamServices {
  readonly precision: StoreRequest['precision']
  read(place: TopicPartition, records: readonly FetchedRecord[], start: number, left: ReadonlySet<number>): RecordBlock
  store(request: StoreRequest): Promise<StoreResult>
  /** Resolves when the bad records are noted wherever they have to be. */
  bury(place: TopicPartition, bad: readonly BadRecord[]): Promise<void>
  /** Waits before another attempt; rejects when there is to be none. */
  again(reason: string): Promise<void>
  /** Another offset is stored than we thought: fetch from behind it. */
  restart(place: TopicPartition, stored: number): void
  /** Something was stored. */
  progress(rows: number, records: number, bytes: number): void
}

export class PartitionStream {
  readonly place: TopicPartition
  position: number
  /** First offset that is not added yet; -1 while nobody has said where to begin. */
  next: number
  highWatermark = -1
  /** The last offset that a batch had to be asked for again from. */
  sought = -1
  /** Bytes of lines that are not stored. */
  bytes = 0
  #blocks: Block[] = []
  #unanswered = 0
  #trouble = false
  #refusal: Extract<StoreResult, { kind: 'refused' }> | null = null
  #closed = false
  readonly #services: StreamServices

  constructor(place: TopicPartition, position: number, services: StreamServices) {
    this.place = place
    this.position = position
    this.next = position < 0 ? -1 : position + 1
    this.#services = services
  }

  /** Adds records from index `start` on; the last block ends before offset `nextOffset`. */
  add(records: readonly FetchedRecord[], start: number, nextOffset: number): void {
    let previous = this.#blocks.at(-1)?.offset ?? this.position
    let index = start
    while (index < records.length) {
      const block = this.#newBlock(records, index, previous)
      index = block.content.end
      if (index === records.length) block.offset = Math.max(block.offset, nextOffset - 1)
      previous = block.offset
      this.#blocks.push(block)
      this.bytes += block.bytes
    }
    this.next = Math.max(nextOffset, previous + 1)
    void this.#send()
  }

  /** No block waits. */
  get idle(): boolean {
    return this.#blocks.length === 0
  }

  /** Nothing more is sent. */
  close(): void {
    this.#closed = true
  }

  /** Nothing that was sent waits for its answer. */
  get quiet(): boolean {
    return this.#unanswered === 0
  }

  #newBlock(records: readonly FetchedRecord[], start: number, previous: number): Block {
    const content = this.#services.read(this.place, records, start, new Set())
    const offset = Number((records[content.end - 1] as FetchedRecord).offset)
    const bad = badOf(records, content)
    const left = new Set(content.bad.keys())
    const bytes = content.lines.length
    return { records, start, previous, offset, content, bytes, left, bad, sent: false, stored: false }
  }

  /** Sends what may be sent; a block with bad records waits until they are buried. */
  async #send(): Promise<void> {
    for (let block = this.#unsent(); block !== undefined && !this.#trouble && !this.#closed; block = this.#unsent()) {
      if (block.bad.length > 0) {
        this.#trouble = true
        if (this.#unanswered === 0) await this.#settle()
        return
      }
      block.sent = true
      this.#unanswered++
      void this.#store(block)
    }
  }

  #unsent(): Block | undefined {
    return this.#blocks.find(({ sent }) => !sent)
  }

  async #store(block: Block): Promise<void> {
    const { previous, offset } = block
    const { lines } = block.content
    block.content = { ...block.content, lines: none }
    const request = { ...this.place, previous, offset, lines, precision: this.#services.precision }
    const result = await this.#services.store(request)
    this.#unanswered--
    if (result.kind === 'stored') this.#stored(block, result.rows)
    else this.#failed(block, result)
    if (this.#trouble && this.#unanswered === 0) await this.#settle()
  }

  #stored(block: Block, rows: number): void {
    block.stored = true
    while (this.#blocks[0]?.stored === true) {
      const done = this.#blocks.shift() as Block
      this.position = done.offset
      this.bytes -= done.bytes
    }
    this.#services.progress(rows, block.content.end - block.start, block.bytes)
  }

  #failed(block: Block, result: Exclude<StoreResult, { kind: 'stored' }>): void {
    this.#trouble = true
    if (result.kind === 'bad') this.#leaveOut(block, result.lines)
    else if (result.kind === 'refused') this.#refusal = result
    else if (block === this.#blocks[0]) this.#astray(result.stored)
  }

  /** The lines' records are left out of the block. */
  #leaveOut(block: Block, lines: Extract<StoreResult, { kind: 'bad' }>['lines']): void {
    const ends: number[] = []
    let end = 0
    for (const count of block.content.lineCounts) {
      end += count
      ends.push(end)
    }
    for (const { line, message, table } of lines) {
      const index = block.start + firstAtLeast(ends, line)
      const record = block.records[index]
      if (record === undefined || block.left.has(index)) continue
      block.left.add(index)
      block.bad.push({ record, reason: message, table })
    }
  }

  #reread(block: Block): void {
    const part = block.records.slice(0, block.content.end)
    block.content = this.#services.read(this.place, part, block.start, block.left)
    this.bytes += block.content.lines.length - block.bytes
    block.bytes = block.content.lines.length
  }

  /** Somebody else has stored of this partition, or what we saw stored is gone. */
  #astray(stored: number): void {
    if (this.#blocks.some(({ offset, previous }) => offset === stored || previous === stored)) {
      while (this.#blocks[0] !== undefined && this.#blocks[0].previous !== stored) this.#blocks.shift()
      this.position = stored
    } else {
      this.#blocks = []
      this.position = stored
      this.next = stored < 0 ? -1 : stored + 1
      this.#services.restart(this.place, stored)
    }
    this.bytes = this.#blocks.reduce((sum, { bytes }) => sum + bytes, 0)
  }

  /** All that was sent is answered, and not all of it well. */
  async #settle(): Promise<void> {
    const refusal = this.#refusal
    this.#refusal = null
    try {
      if (refusal !== null) await this.#services.again(refusal.message)
      for (const block of this.#blocks) {
        if (block.sent) this.#reread(block)
        block.sent = false
      }
      if (refusal?.tooLarge === true) this.#halve()
      const [first] = this.#blocks
      if (first !== undefined && first.bad.length > 0) {
        await this.#services.bury(this.place, first.bad)
        first.bad = []
      }
    } catch {
      // The connector ends: what is not stored is fetched again by the next one.
      return
    }
    this.#trouble = false
    await this.#send()
  }

  /** A block that the engine has no memory for may go in two. */
  #halve(): void {
    const [block] = this.#blocks
    if (block === undefined) return
    const { records, start, content } = block
    const middle = start + ((content.end - start) >> 1)
    if (middle === start) return
    const halves = [
      [start, middle, block.previous],
      [middle, content.end, Number((records[middle - 1] as FetchedRecord).offset)],
    ] as const
    const blocks = halves.map(([from, end, previous], index): Block => {
      const read = this.#services.read(this.place, records.slice(0, end), from, block.left)
      const offset = index === 0 ? halves[1][2] : block.offset
      const bytes = read.lines.length
      return { ...block, start: from, previous, offset, content: read, bytes, bad: index === 0 ? block.bad : [] }
    })
    this.#blocks.splice(0, 1, ...blocks)
  }
}

function badOf(records: readonly FetchedRecord[], { bad }: RecordBlock): BadRecord[] {
  return [...bad].map(([index, reason]) => ({ record: records[index] as FetchedRecord, reason, table: '' }))
}

/** Index of the first number that is at least `value`, in ascending numbers. */
function firstAtLeast(numbers: readonly number[], value: number): number {
  let low = 0
  let high = numbers.length
  while (low < high) {
    const middle = (low + high) >> 1
    if ((numbers[middle] as number) < value) low = middle + 1
    else high = middle
  }
  return low
}
