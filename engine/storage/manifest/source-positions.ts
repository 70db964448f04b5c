// Keeps, for each source of rows, the position up to which its rows are stored: Kafka offsets by connector and
// partition, and the most recent idempotency keys of HTTP requests. With these positions, rows that are sent again are
// recognised. At a start they come from the manifest (the list of all files) and from the log frames (records) that
// contain them (wal/source-position.ts).
//
//   before a request   follows(): the request must continue exactly at the stored position, so no row is stored
//                      twice or skipped
//   its log frame      note(): the position advances together with the rows
//   a log trim         what due() returns is stored in the manifest before the frames with it are removed
//
// Invariant: each position in the manifest was durable in the log before; a position in a frame that is still in the
// log is the same or a later one.

import { assert } from '../../base/assert.js'
import { idempotencyKeysMax } from '../../base/limits.js'
import {
  decodeKafkaPosition,
  encodeKafkaPosition,
  type KafkaPosition,
  keyConnector,
  type SourcePosition,
  sourcePositionKinds,
} from '../../wal/source-position.js'
import type { Lsn } from '../../wal/types.js'
import type { ManifestRecord } from './manifest-format.js'

interface Stream {
  readonly sourcePosition: KafkaPosition
  /** Log position of the frame that contains this position. */
  readonly lsn: Lsn
  /** Whether the manifest contains it too. */
  readonly named: boolean
}

export class SourcePositions {
  readonly #streams = new Map<string, Stream>()
  /** Idempotency keys, oldest first. */
  readonly #keys: string[] = []

  /** `stored`: the positions in the manifest. */
  constructor(stored: Iterable<KafkaPosition>) {
    for (const sourcePosition of stored) this.#set(sourcePosition, { sourcePosition, lsn: 0, named: true })
  }

  /** Whether the stream's stored offset is `previous`; -1 for a stream without stored rows. */
  follows(sourcePosition: SourcePosition, previous: number): boolean {
    if (sourcePosition.kind !== sourcePositionKinds.kafka) return true
    const known = this.#streams.get(streamKey(decodeKafkaPosition(sourcePosition)))
    return (known?.sourcePosition.offset ?? -1) === previous
  }

  /** Records that a frame at `lsn` contains rows from this source position. */
  note(sourcePosition: SourcePosition, lsn: Lsn): void {
    if (sourcePosition.kind !== sourcePositionKinds.kafka) return
    const stream = decodeKafkaPosition(sourcePosition)
    this.#set(stream, { sourcePosition: stream, lsn, named: false })
  }

  #set(sourcePosition: KafkaPosition, stream: Stream): void {
    const key = streamKey(sourcePosition)
    if (sourcePosition.connector === keyConnector && !this.#streams.has(key)) this.#keys.push(key)
    this.#streams.set(key, stream)
    // Keys are removed in bulk, which keeps the cost per key low.
    if (this.#keys.length < idempotencyKeysMax * 1.1) return
    for (const old of this.#keys.splice(0, this.#keys.length - idempotencyKeysMax)) this.#streams.delete(old)
  }

  /** Positions that only log frames before `beforeLsn` contain, as records for the manifest. */
  due(beforeLsn: Lsn): ManifestRecord[] {
    const records: ManifestRecord[] = []
    for (const { sourcePosition, lsn, named } of this.#streams.values()) {
      if (!named && lsn < beforeLsn) records.push({ kind: 'origin', ...sourcePosition })
    }
    return records
  }

  /** Records that the manifest durably contains due(beforeLsn). */
  named(beforeLsn: Lsn): void {
    for (const [key, stream] of this.#streams) {
      if (!stream.named && stream.lsn < beforeLsn) this.#streams.set(key, { ...stream, named: true })
    }
  }

  /** All positions, including the idempotency keys, oldest first. */
  get all(): KafkaPosition[] {
    return [...this.#streams.values()].map(({ sourcePosition }) => sourcePosition)
  }

  get positions(): KafkaPosition[] {
    return this.all.filter(({ connector }) => connector !== keyConnector)
  }
}

function streamKey(sourcePosition: KafkaPosition): string {
  return JSON.stringify([sourcePosition.connector, sourcePosition.topic, sourcePosition.partition])
}

/** A request's source position in the ingest ring: kind u32 | 0 u32 | previous f64 | bytes as in a log frame. */
export function packSourcePosition(sourcePosition: KafkaPosition, previous: number): Uint8Array {
  const { kind, bytes } = encodeKafkaPosition(sourcePosition)
  const packed = new Uint8Array(packedHeaderBytes + bytes.length)
  const view = new DataView(packed.buffer)
  view.setUint32(0, kind, true)
  view.setFloat64(8, previous, true)
  packed.set(bytes, packedHeaderBytes)
  return packed
}

/** The inverse of packSourcePosition. Copies the bytes. */
export function unpackSourcePosition(packed: Uint8Array): {
  readonly sourcePosition: SourcePosition
  readonly previous: number
} {
  assert(packed.length >= packedHeaderBytes, 'P2: an origin has its header')
  const view = new DataView(packed.buffer, packed.byteOffset)
  const bytes = packed.slice(packedHeaderBytes)
  return { sourcePosition: { kind: view.getUint32(0, true), bytes }, previous: view.getFloat64(8, true) }
}

const packedHeaderBytes = 16
