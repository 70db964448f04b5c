// Encodes and decodes the records of the manifest (the list of all files) and the checksummed frames around them, and
// applies records to the state in memory (tables, their schemas and Parquet files). manifest.ts describes the layout.

import { crc32 } from 'node:zlib'
import { assert, unreachable } from '../../base/assert.js'
import { CorruptionError } from '../../base/errors.js'
import { idempotencyKeysMax } from '../../base/limits.js'
import { nonZeroAt } from '../../base/padding.js'
import { type KafkaPosition, keyConnector } from '../../wal/source-position.js'
import type { LakePointer, PartDescriptor, TableSchema } from '../schema/schema.js'

/** The first unused id of each kind. Ids are never reused during the life of the data directory. */
export interface ManifestIds {
  readonly table: number
  readonly part: number
  readonly generation: number
}

/** The manifest's state of one table. */
export interface ManifestTable {
  readonly schema: TableSchema
  /** In transaction order. */
  readonly parts: readonly PartDescriptor[]
  /** Transactions up to this one are in parts, so replay skips them. */
  readonly flushedTxn: number
  /** Durable entries of the symbol dictionaries: [columnId, entries]. */
  readonly dictionaries: readonly (readonly [number, number])[]
  readonly lake?: LakePointer
}

export type ManifestRecord =
  /** Creates a table or replaces its schema. */
  | { readonly kind: 'schema'; readonly schema: TableSchema }
  /** Changes the parts of a table, and `flushedTxn` and `dictionaries` with them if they are present. */
  | {
      readonly kind: 'parts'
      readonly tableId: number
      readonly added: readonly PartDescriptor[]
      /** Part ids. */
      readonly removed: readonly number[]
      readonly flushedTxn?: number
      readonly dictionaries?: readonly (readonly [number, number])[]
      /** Servers of earlier versions ignore it. */
      readonly lake?: LakePointer
    }
  | { readonly kind: 'drop'; readonly tableId: number }
  /** The first unused ids. A missing member is unchanged. */
  | { readonly kind: 'ids'; readonly table?: number; readonly part?: number; readonly generation?: number }
  /** A position of the write-ahead log that its owner stores here. */
  | { readonly kind: 'log'; readonly lsn: number }
  /** The log starts here; everything before this position was trimmed. */
  | { readonly kind: 'trimmed'; readonly lsn: number }
  /** The format of this file and of those after it, if it is not the plain one. */
  | { readonly kind: 'format'; readonly format: number }
  /** Whether a file of users exists; if it is then missing, a start is refused. */
  | { readonly kind: 'users'; readonly exist: boolean }
  /** The stored source position of a stream, recorded before the log frames that contain it are trimmed. */
  | ({ readonly kind: 'origin' } & KafkaPosition)

export interface ManifestState {
  /** The format in which the next file is written; it never falls. */
  format: number
  readonly tables: Map<number, ManifestTable>
  ids: ManifestIds
  lsn: number
  /** Undefined in manifests of format version 1. */
  trimmedLsn: number | undefined
  usersExist: boolean
  /** By connector, topic and partition. */
  readonly sourcePositions: Map<string, KafkaPosition>
  /** Upper bound of the number of idempotency keys among the origins; repeated keys are counted again. */
  keys: number
}

export interface ManifestFrame {
  readonly kind: number
  readonly durable: number
  readonly payload: Uint8Array
  readonly at: number
  /** Without the padding. */
  readonly usedBytes: number
  /** Offset after the frame and its padding. */
  readonly end: number
}

export const frameKinds = { checkpoint: 1, checkpointEnd: 2, change: 3 } as const
export const headerBytes = 16
const frameHeaderBytes = 24
const blockBytes = 4096
/**
 * Version 2 added records of kind `users` and `trimmed`, and the high-water marks. Servers that know only version 1
 * refuse the file, because they would ignore both. Version 3 is written from the first materialized view on, since
 * servers that know only version 2 would take it for a table, show its stored rows alone and accept others. Version 4
 * is written from the first part on that is only in the object store: others would look for its file. Version 5 is
 * written before the first upsert (ON CONFLICT, MERGE): others would show the rows again that it removes from memtables
 * and parts. Version 6 is written before the first bucket of a materialized view outlives its rows, since others
 * would compute it again, and before the first view that reads another one. Version 7 is written before the first table
 * with DEDUP SKIP: others would keep the last of its rows with equal keys. Version 8 is written before the first table
 * with PRIMARY KEY .. ENFORCED: others would accept rows with the key of a stored row. Version 9 is written before the
 * first materialized view with states of aggregates: others would show them as columns, and store buckets without them.
 * Version 10 is written before DEDUP is declared for a table that has had rows: others would hide and remove those with
 * equal keys. Version 11 is written before the first column with PARQUET(..): others cannot read each of its encodings
 * and codecs. Version 12 is written before the first materialized view with states by rule 2: others would store its
 * buckets without them. Version 13 is written before the first live view, since others would take it for a materialized
 * view whose query is not valid. Version 14 is written before the first materialized view with states by rule 3, for the
 * reason of version 12. Version 15 is written before buckets are sealed to which late rows are added: others would join
 * parts with such rows and others, and rows would count twice. Version 16 is written before the first table with LAKE ON
 * FORMAT VERSION 3: others would commit to its Iceberg table as to one of version 2. Version 17 is written before the
 * first materialized view with states by rule 4, for the reason of version 12. This server reads all versions.
 */
export const formats = {
  oldest: 1,
  plain: 2,
  materializedViews: 3,
  remoteParts: 4,
  removedRows: 5,
  sealedBuckets: 6,
  dedupSkip: 7,
  enforcedKeys: 8,
  viewStates: 9,
  dedupOfStored: 10,
  columnStorage: 11,
  viewTimes: 12,
  liveViews: 13,
  viewMeans: 14,
  lateSealed: 15,
  lakeVersions: 16,
  viewValues: 17,
} as const
export const newestFormat = formats.viewValues
const fileMagic = 0x31464d50 // "PMF1"
const frameMagic = 0x52464d50 // "PMFR"
/** Readers treat a greater length as damage. */
const payloadBytesMax = 256 * 1024 * 1024

export function emptyManifestState(): ManifestState {
  return {
    format: formats.plain,
    tables: new Map(),
    ids: { table: 1, part: 1, generation: 1 },
    lsn: 0,
    trimmedLsn: undefined,
    usersExist: false,
    sourcePositions: new Map(),
    keys: 0,
  }
}

/** Applies a record to the state. */
export function applyRecord(state: ManifestState, record: ManifestRecord): void {
  switch (record.kind) {
    case 'schema': {
      const known = state.tables.get(record.schema.id) ?? { parts: [], flushedTxn: 0, dictionaries: [] }
      state.tables.set(record.schema.id, { ...known, schema: record.schema })
      return
    }
    case 'parts':
      state.tables.set(record.tableId, changedTable(state, record))
      return
    case 'drop':
      state.tables.delete(record.tableId)
      return
    case 'ids': {
      const { table, part, generation } = { ...state.ids, ...record }
      state.ids = { table, part, generation }
      return
    }
    case 'log':
      state.lsn = record.lsn
      return
    case 'trimmed':
      state.trimmedLsn = record.lsn
      return
    case 'format':
      state.format = Math.max(state.format, record.format)
      return
    case 'users':
      state.usersExist = record.exist
      return
    case 'origin': {
      const { connector, topic, partition, offset } = record
      const sourcePosition = { connector, topic, partition, offset }
      state.sourcePositions.set(sourceKey(sourcePosition), sourcePosition)
      if (connector === keyConnector) forgetKeys(state)
      return
    }
    default:
      unreachable(record)
  }
}

export function sourceKey({ connector, topic, partition }: KafkaPosition): string {
  return JSON.stringify([connector, topic, partition])
}

function changedTable(state: ManifestState, record: ManifestRecord & { kind: 'parts' }): ManifestTable {
  const table = state.tables.get(record.tableId)
  assert(table !== undefined, 'S2: parts belong to a table of the manifest')
  const removed = new Set(record.removed)
  const retained = table.parts.filter((part) => !removed.has(part.id))
  assert(retained.length === table.parts.length - removed.size, 'S2: a removed part is in the manifest')
  const lake = record.lake ?? table.lake
  return {
    schema: table.schema,
    parts: [...retained, ...record.added].sort((x, y) => x.minTxn - y.minTxn || x.id - y.id),
    flushedTxn: record.flushedTxn ?? table.flushedTxn,
    dictionaries: record.dictionaries ?? table.dictionaries,
    ...(lake === undefined ? {} : { lake }),
  }
}

/** Records that produce this state from the empty one; at least one. */
export function snapshotRecords(state: ManifestState): ManifestRecord[] {
  const records: ManifestRecord[] = [
    ...(state.format === formats.plain ? [] : [{ kind: 'format', format: state.format } as const]),
    { kind: 'ids', ...state.ids },
    { kind: 'log', lsn: state.lsn },
    { kind: 'users', exist: state.usersExist },
    ...(state.trimmedLsn === undefined ? [] : [{ kind: 'trimmed', lsn: state.trimmedLsn } as const]),
    ...[...state.sourcePositions.values()].map((sourcePosition) => ({ kind: 'origin', ...sourcePosition }) as const),
  ]
  for (const [tableId, { schema, parts, ...rest }] of state.tables) {
    records.push({ kind: 'schema', schema })
    records.push({ kind: 'parts', tableId, added: parts, removed: [], ...rest })
  }
  return records
}

export function fileHeader(number: number, format: number): Uint8Array {
  const header = Buffer.alloc(headerBytes)
  header.writeUInt32LE(fileMagic, 0)
  header.writeUInt32LE(format, 4)
  header.writeUInt32LE(number, 8)
  return header
}

export function encodeFrame(kind: number, durable: number, records: readonly ManifestRecord[]): Uint8Array {
  assert(records.length > 0, 'F3: a frame of the manifest has records')
  assert(durable >= headerBytes, 'F3: the header of a manifest is durable before its frames')
  const payload = Buffer.from(JSON.stringify(records, (_, value) => (typeof value === 'bigint' ? `${value}` : value)))
  assert(payload.length <= payloadBytesMax, 'F3: a manifest frame is bounded')
  const frame = Buffer.alloc(frameSpan(payload.length))
  frame.writeUInt32LE(frameMagic, 0)
  frame.writeUInt32LE(payload.length, 4)
  frame.writeUInt32LE(kind, 12)
  frame.writeBigUInt64LE(BigInt(durable), 16)
  payload.copy(frame, frameHeaderBytes)
  frame.writeUInt32LE(crc32(frame.subarray(12, frameHeaderBytes + payload.length)), 8)
  return frame
}

function frameSpan(payloadBytes: number): number {
  return (frameHeaderBytes + payloadBytes + 7) & ~7
}

/** Decodes the records of a frame whose checksum was verified. */
export function decodeRecords(frame: ManifestFrame): ManifestRecord[] {
  const text = Buffer.from(frame.payload.buffer, frame.payload.byteOffset, frame.payload.length).toString('utf8')
  const records = JSON.parse(text) as ManifestRecord[]
  return records.map((record) =>
    record.kind === 'parts' ? { ...record, added: record.added.map(withBigints) } : record,
  )
}

function withBigints(part: PartDescriptor): PartDescriptor {
  return { ...part, minTs: BigInt(part.minTs), maxTs: BigInt(part.maxTs) }
}

/** The contents of a manifest file. */
export interface ManifestScan {
  /** The valid frames up to the torn tail. */
  readonly frames: readonly ManifestFrame[]
  /** Offset of the torn tail. */
  readonly end: number
  readonly format: number
  /** Offset of a damaged byte in the padding between frames, which no checksum covers. */
  readonly changedPadding?: number | undefined
}

/** Throws CorruptionError for a bad frame that was durable; with `salvage` it returns the frames before that. */
export function scanFrames(path: string, content: Uint8Array, salvage = false): ManifestScan {
  const bytes = Buffer.from(content.buffer, content.byteOffset, content.length)
  if (bytes.length < headerBytes || bytes.readUInt32LE(0) !== fileMagic)
    return { frames: [], end: 0, format: formats.plain }
  const version = bytes.readUInt32LE(4)
  if (version < formats.oldest || version > newestFormat) throw CorruptionError.ofFormat(version, newestFormat, path, 4)
  const frames: ManifestFrame[] = []
  let end = headerBytes
  let changed: number | undefined
  for (;;) {
    const frame = frameAt(bytes, end) ?? frameAt(bytes, nextBlock(end))
    if (frame === undefined) break
    frames.push(frame)
    changed ??= nonZeroAt(bytes, end, frame.at) ?? nonZeroAt(bytes, frame.at + frame.usedBytes, frame.end)
    end = frame.end
  }
  if (!salvage && durableAfter(bytes, end) > end) throw new CorruptionError('the manifest is damaged', path, end)
  return { frames, end, format: version, changedPadding: changed }
}

/** The next block boundary: a write there does not touch the block of the byte before the position. */
export function nextBlock(position: number): number {
  return Math.ceil(position / blockBytes) * blockBytes
}

/** The highest durable position named by any frame after a bad one; 0 if there is none. */
function durableAfter(bytes: Buffer, bad: number): number {
  let highest = 0
  for (let at = bad; at + frameHeaderBytes <= bytes.length; at += 8) {
    if (bytes.readUInt32LE(at) !== frameMagic) continue
    const frame = frameAt(bytes, at)
    if (frame !== undefined && frame.durable > highest) highest = frame.durable
  }
  return highest
}

function frameAt(bytes: Buffer, at: number): ManifestFrame | undefined {
  if (at + frameHeaderBytes > bytes.length || bytes.readUInt32LE(at) !== frameMagic) return undefined
  const length = bytes.readUInt32LE(at + 4)
  if (length > payloadBytesMax || at + frameSpan(length) > bytes.length) return undefined
  const checked = bytes.subarray(at + 12, at + frameHeaderBytes + length)
  if (crc32(checked) !== bytes.readUInt32LE(at + 8)) return undefined
  return {
    kind: bytes.readUInt32LE(at + 12),
    durable: Number(bytes.readBigUInt64LE(at + 16)),
    payload: checked.subarray(frameHeaderBytes - 12),
    at,
    usedBytes: frameHeaderBytes + length,
    end: at + frameSpan(length),
  }
}

/** Drops the oldest idempotency keys; the map is in insertion order. */
function forgetKeys(state: ManifestState): void {
  state.keys++
  if (state.keys <= idempotencyKeysMax) return
  for (const [key, { connector }] of state.sourcePositions) {
    if (connector !== keyConnector) continue
    state.sourcePositions.delete(key)
    break
  }
  state.keys--
}
