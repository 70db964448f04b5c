// Sends the records of one Kafka partition to the engine as blocks of line protocol, and keeps the records in order
// until they are stored.
//
//   add ─> [ sent, no receipt yet | not sent ] ─> stored: the position advances
//
// Each block states the offset that must be stored before it, so the engine rejects a block that does not follow.
// After any receipt (the engine's response) other than `stored`, nothing is sent until all sent blocks have receipts;
// then the first block that is not stored is sent again (as it is, divided, or without its bad records), or the records
// after the stored offset are fetched again.
//
// Invariants:
//   1. `position` is the last offset that the engine confirmed; `next` follows the last record that was added.
//   2. A bad record is reported as a dead letter before the block that contains it is stored.

import type { FetchedRecord, TopicPartition } from './consumer.js'
import type { StoreRequest, StoreResult } from './engine-client.js'
import type { RecordBlock } from './record-reader.js'

export interface BadRecord {
  readonly record: FetchedRecord
  readonly reason: string
  readonly table: string
}

const none = new Uint8Array(0)

interface Block {
  readonly records: readonly FetchedRecord[]
  readonly start: number
  /** Stored offset before this block; `offset` is the one after it is stored. */
  readonly previous: number
  offset: number
  content: RecordBlock
  /** Size of its lines, which are transferred with the request and built again for another attempt. */
  bytes: number
  /** Indexes, from `start`, of the records found bad so far, which are left out. */
  readonly left: Set<number>
  /** Bad records not yet reported as dead letters. */
  bad: BadRecord[]
  sent: boolean
  stored: boolean
}

export interface StreamServices {
  readonly precision: StoreRequest['precision']
  read(place: TopicPartition, records: readonly FetchedRecord[], start: number, left: ReadonlySet<number>): RecordBlock
  store(request: StoreRequest): Promise<StoreResult>
  /** Resolves when the bad records are reported. */
  report(place: TopicPartition, bad: readonly BadRecord[]): Promise<void>
  /** Waits before a retry; rejects when there must be none. */
  again(reason: string): Promise<void>
  /** The stored offset differs from the expected one: fetch again from after it. */
  restart(place: TopicPartition, stored: number): void
  /** Called when something was stored. */
  progress(rows: number, records: number, bytes: number): void
}

export class PartitionStream {
  readonly place: TopicPartition
  position: number
  /** First offset not added yet; -1: the start is not known yet. */
  next: number
  highWatermark = -1
  /** The last offset from which a batch was requested again. */
  lastSeekOffset = -1
  /** Bytes of lines that are not stored. */
  bytes = 0
  #blocks: Block[] = []
  #unanswered = 0
  #trouble = false
  #refusal: Extract<StoreResult, { kind: 'refused' }> | null = null
  /** Index of the record before which the first block is to be divided; 0: not at all. */
  #splitAt = 0
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

  /** Whether all blocks are stored. */
  get idle(): boolean {
    return this.#blocks.length === 0
  }

  /** Stops sending. */
  close(): void {
    this.#closed = true
  }

  /** Whether no receipt is outstanding. */
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

  /** Sends blocks; one with bad records waits until those are reported. */
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
    else if (result.kind === 'split') this.#splitBefore(block, result.line)
    else if (block === this.#blocks[0]) this.#outOfSequence(result.stored)
  }

  /** Excludes the records of these lines from the block. */
  #leaveOut(block: Block, lines: Extract<StoreResult, { kind: 'bad' }>['lines']): void {
    const ends = lineEnds(block)
    for (const { line, message, table } of lines) {
      const index = block.start + firstAtLeast(ends, line)
      const record = block.records[index]
      if (record === undefined || block.left.has(index)) continue
      block.left.add(index)
      block.bad.push({ record, reason: message, table })
    }
  }

  #splitBefore(block: Block, line: number): void {
    const index = block.start + firstAtLeast(lineEnds(block), line)
    if (index > block.start) {
      if (block === this.#blocks[0]) this.#splitAt = index
      return
    }
    const message = 'a whole number and one with a fraction in a column that the record creates'
    this.#leaveOut(block, [{ line, message, table: '' }])
  }

  #reread(block: Block): void {
    const part = block.records.slice(0, block.content.end)
    block.content = this.#services.read(this.place, part, block.start, block.left)
    this.bytes += block.content.lines.length - block.bytes
    block.bytes = block.content.lines.length
  }

  /** Another writer has stored offsets of this partition, or stored ones have disappeared. */
  #outOfSequence(stored: number): void {
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

  /** Called when all sent blocks have receipts and at least one is not stored. */
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
      if (this.#splitAt > 0) this.#divide(this.#splitAt)
      this.#splitAt = 0
      const [first] = this.#blocks
      if (first !== undefined && first.bad.length > 0) {
        await this.#services.report(this.place, first.bad)
        first.bad = []
      }
    } catch {
      // The connector stops; records that are not stored will be fetched again.
      return
    }
    this.#trouble = false
    await this.#send()
  }

  /** Splits a block for which the engine lacks memory. */
  #halve(): void {
    const [block] = this.#blocks
    if (block === undefined) return
    this.#divide(block.start + ((block.content.end - block.start) >> 1))
  }

  /** Divides the first block before the record with the index `middle`. */
  #divide(middle: number): void {
    const [block] = this.#blocks
    if (block === undefined || middle <= block.start || middle >= block.content.end) return
    const { records, start, content } = block
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

/** The number of lines of the block up to the end of each record. */
function lineEnds({ content }: Block): number[] {
  let end = 0
  return Array.from(content.lineCounts, (count) => {
    end += count
    return end
  })
}

function badOf(records: readonly FetchedRecord[], { bad }: RecordBlock): BadRecord[] {
  return [...bad].map(([index, reason]) => ({ record: records[index] as FetchedRecord, reason, table: '' }))
}

/** Binary search: index of the first number that is at least `value`. */
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
