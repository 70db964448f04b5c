// Decodes one record of a Kafka record batch, version 2. Replaces the decoder of kafkajs, which creates four bigints
// and two strings per record and dominated the connector's CPU time.
//
//   attributes i8 | timestamp delta varlong | offset delta varint | key varint, bytes | value varint, bytes |
//   headers
//
//   headers    count varint | (key varint, bytes | value varint, bytes) ...
//
// Lengths are zigzag varints, -1 for null. Offsets and timestamps are numbers, since they stay below 2^53.

/** Context of the batch, as kafkajs passes it. */
export interface BatchContext {
  readonly firstOffset: string
  readonly firstTimestamp: string
  readonly maxTimestamp: string
  readonly timestampType: number
  readonly isControlBatch: boolean
}

export interface DecodedRecord {
  readonly key: Buffer | null
  readonly value: Buffer | null
  readonly offset: number
  readonly timestamp: number
  readonly headers: Headers
  readonly isControlRecord: boolean
  readonly batchContext: BatchContext
}

/** Repeated headers become an array, as with kafkajs. */
type HeaderValue = Buffer | null
type Headers = Readonly<Record<string, HeaderValue | readonly HeaderValue[]>>

const logAppendTime = 1
const noHeaders: Headers = Object.freeze({})

/** The reader of the batch that kafkajs decodes: kafkajs calls once for each record, with an object for each batch. */
const readers = new WeakMap<BatchContext, RecordReader>()

/** `buffer` contains one record without its length. */
export function decodeRecord({ buffer }: { readonly buffer: Buffer }, batch: BatchContext): DecodedRecord {
  let reader = readers.get(batch)
  if (reader === undefined) {
    reader = new RecordReader(batch)
    readers.set(batch, reader)
  }
  return reader.read(buffer)
}

/** Decodes the records of one batch. */
class RecordReader {
  readonly #batch: BatchContext
  readonly #firstOffset: number
  readonly #firstTimestamp: number
  /** The time at which the broker appended the batch; -1: each record has the time of its producer. */
  readonly #appendedAt: number
  #buffer: Buffer = Buffer.alloc(0)
  /** Offset after the last value read. */
  #at = 0

  constructor(batch: BatchContext) {
    this.#batch = batch
    this.#firstOffset = Number(batch.firstOffset)
    this.#firstTimestamp = Number(batch.firstTimestamp)
    const isAppendTime = batch.timestampType === logAppendTime && batch.maxTimestamp !== ''
    this.#appendedAt = isAppendTime ? Number(batch.maxTimestamp) : -1
  }

  read(buffer: Buffer): DecodedRecord {
    this.#buffer = buffer
    this.#at = 1
    const timestampDelta = this.#varint()
    const offset = this.#firstOffset + this.#varint()
    const key = this.#bytes()
    const value = this.#bytes()
    return {
      key,
      value,
      offset,
      timestamp: this.#appendedAt >= 0 ? this.#appendedAt : this.#firstTimestamp + timestampDelta,
      headers: this.#headers(),
      isControlRecord: this.#batch.isControlBatch,
      batchContext: this.#batch,
    }
  }

  #headers(): Headers {
    const count = this.#varint()
    if (count <= 0) return noHeaders
    const headers = new Map<string, HeaderValue[]>()
    for (let index = 0; index < count; index++) {
      const name = this.#bytes()?.toString('utf8') ?? ''
      const values = headers.get(name)
      if (values === undefined) headers.set(name, [this.#bytes()])
      else values.push(this.#bytes())
    }
    const single = [...headers].map(([name, values]) => [name, values.length === 1 ? (values[0] ?? null) : values])
    return Object.fromEntries(single) as Headers
  }

  #bytes(): Buffer | null {
    const length = this.#varint()
    if (length < 0) return null
    const start = this.#at
    this.#at += length
    if (this.#at > this.#buffer.length) throw new RangeError('a record of the batch is cut off')
    return this.#buffer.subarray(start, this.#at)
  }

  /** Zigzag, up to 64 bits; exact below 2^53. */
  #varint(): number {
    const buffer = this.#buffer
    let value = 0
    for (let scale = 1; ; scale *= 128) {
      if (this.#at >= buffer.length) throw new RangeError('a record of the batch is cut off')
      const byte = buffer[this.#at++]!
      value += (byte & 127) * scale
      if (byte < 128) break
    }
    return value % 2 === 0 ? value / 2 : -(value + 1) / 2
  }
}
