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

let context: BatchContext | null = null
let firstOffset = 0
let firstTimestamp = 0
let appendedAt = -1
/** Offset after the last varint read. */
let at = 0

/** `buffer` contains one record without its length. */
export function decodeRecord({ buffer }: { readonly buffer: Buffer }, batch: BatchContext): DecodedRecord {
  if (batch !== context) {
    context = batch
    firstOffset = Number(batch.firstOffset)
    firstTimestamp = Number(batch.firstTimestamp)
    const isAppendTime = batch.timestampType === logAppendTime && batch.maxTimestamp !== ''
    appendedAt = isAppendTime ? Number(batch.maxTimestamp) : -1
  }
  at = 1
  const timestampDelta = varint(buffer)
  const offset = firstOffset + varint(buffer)
  const key = bytes(buffer)
  const value = bytes(buffer)
  return {
    key,
    value,
    offset,
    timestamp: appendedAt >= 0 ? appendedAt : firstTimestamp + timestampDelta,
    headers: headersOf(buffer),
    isControlRecord: batch.isControlBatch,
    batchContext: batch,
  }
}

function headersOf(buffer: Buffer): Headers {
  const count = varint(buffer)
  if (count <= 0) return noHeaders
  const headers = new Map<string, HeaderValue[]>()
  for (let index = 0; index < count; index++) {
    const name = bytes(buffer)?.toString('utf8') ?? ''
    const values = headers.get(name)
    if (values === undefined) headers.set(name, [bytes(buffer)])
    else values.push(bytes(buffer))
  }
  const single = [...headers].map(([name, values]) => [name, values.length === 1 ? (values[0] ?? null) : values])
  return Object.fromEntries(single) as Headers
}

function bytes(buffer: Buffer): Buffer | null {
  const length = varint(buffer)
  if (length < 0) return null
  const start = at
  at += length
  if (at > buffer.length) throw new RangeError('a record of the batch is cut off')
  return buffer.subarray(start, at)
}

/** Zigzag, up to 64 bits; exact below 2^53. */
function varint(buffer: Buffer): number {
  let value = 0
  for (let scale = 1; ; scale *= 128) {
    if (at >= buffer.length) throw new RangeError('a record of the batch is cut off')
    const byte = buffer[at++]!
    value += (byte & 127) * scale
    if (byte < 128) break
  }
  return value % 2 === 0 ? value / 2 : -(value + 1) / 2
}
