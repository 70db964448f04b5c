// How far each stream of rows is stored: what the origins of log frames say (wal/origin.ts), the manifest's word first.
//
//   before a request   follows(): it must go on exactly where the stream is, so nothing is stored twice or left out
//   its frame          note(): the position moves with the rows
//   a log trim         due() goes to the manifest before the frames that say so are forgotten
//
// Invariant: what the manifest names was durable in the log, and a frame that the log still holds is as new or newer.

import { assert } from '../../base/assert.js'
import { idempotencyKeysMax } from '../../base/limits.js'
import {
  decodeKafkaOrigin,
  encodeKafkaOrigin,
  type KafkaOrigin,
  keyConnector,
  type Origin,
  originKinds,
} from '../../wal/origin.js'
import type { Lsn } from '../../wal/types.js'
import type { ManifestRecord } from './manifest-format.js'

interface Stream {
  readonly origin: KafkaOrigin
  /** Of the frame that said so last. */
  readonly lsn: Lsn
  /** The manifest says the same. */
  readonly named: boolean
}

export class Origins {
  readonly #streams = new Map<string, Stream>()
  /** Keys of requests, oldest first. */
  readonly #keys: string[] = []

  /** `stored`: what the manifest names. */
  constructor(stored: Iterable<KafkaOrigin>) {
    for (const origin of stored) this.#set(origin, { origin, lsn: 0, named: true })
  }

  /** Whether the stream's last stored offset is `previous`; -1 for a stream that nothing is stored of. */
  follows(origin: Origin, previous: number): boolean {
    if (origin.kind !== originKinds.kafka) return true
    const known = this.#streams.get(streamKey(decodeKafkaOrigin(origin)))
    return (known?.origin.offset ?? -1) === previous
  }

  /** A frame at `lsn` holds rows from there. */
  note(origin: Origin, lsn: Lsn): void {
    if (origin.kind !== originKinds.kafka) return
    const stream = decodeKafkaOrigin(origin)
    this.#set(stream, { origin: stream, lsn, named: false })
  }

  #set(origin: KafkaOrigin, stream: Stream): void {
    const key = streamKey(origin)
    if (origin.connector === keyConnector && !this.#streams.has(key)) this.#keys.push(key)
    this.#streams.set(key, stream)
    // In one go, so that forgetting costs little a key.
    if (this.#keys.length < idempotencyKeysMax * 1.1) return
    for (const old of this.#keys.splice(0, this.#keys.length - idempotencyKeysMax)) this.#streams.delete(old)
  }

  /** What only frames before the position say: the manifest is to be told before they go. */
  due(beforeLsn: Lsn): ManifestRecord[] {
    const records: ManifestRecord[] = []
    for (const { origin, lsn, named } of this.#streams.values()) {
      if (!named && lsn < beforeLsn) records.push({ kind: 'origin', ...origin })
    }
    return records
  }

  /** The manifest holds due(beforeLsn), durably. */
  named(beforeLsn: Lsn): void {
    for (const [key, stream] of this.#streams) {
      if (!stream.named && stream.lsn < beforeLsn) this.#streams.set(key, { ...stream, named: true })
    }
  }

  /** Also the keys of requests, the oldest first. */
  get all(): KafkaOrigin[] {
    return [...this.#streams.values()].map(({ origin }) => origin)
  }

  get positions(): KafkaOrigin[] {
    return this.all.filter(({ connector }) => connector !== keyConnector)
  }
}

function streamKey(origin: KafkaOrigin): string {
  return JSON.stringify([origin.connector, origin.topic, origin.partition])
}

/** A request's origin as it crosses to the writer: kind u32 | 0 u32 | previous f64 | bytes as in a frame. */
export function packOrigin(origin: KafkaOrigin, previous: number): Uint8Array {
  const { kind, bytes } = encodeKafkaOrigin(origin)
  const packed = new Uint8Array(packedHeaderBytes + bytes.length)
  const view = new DataView(packed.buffer)
  view.setUint32(0, kind, true)
  view.setFloat64(8, previous, true)
  packed.set(bytes, packedHeaderBytes)
  return packed
}

/** The inverse of packOrigin; the bytes are copied. */
export function unpackOrigin(packed: Uint8Array): { readonly origin: Origin; readonly previous: number } {
  assert(packed.length >= packedHeaderBytes, 'P2: an origin has its header')
  const view = new DataView(packed.buffer, packed.byteOffset)
  const bytes = packed.slice(packedHeaderBytes)
  return { origin: { kind: view.getUint32(0, true), bytes }, previous: view.getFloat64(8, true) }
}

const packedHeaderBytes = 16
