// Tells how far the records of sources are stored in an Iceberg table to which several servers commit. A source is a
// stream of records with offsets that several servers may read one after the other, such as a partition of a Kafka
// topic.
//
//   summary of a snapshot   penstock.kafka: {connector: {topic: {partition: offset}}}, the offset behind the last one
//                           whose rows are in the snapshot; each snapshot takes over what it does not change
//   property of a server    the same members (catalog-share.ts): where the rows of this server begin that are not in
//                           the table yet
//
// Invariant: rows of a source are added in a new snapshot only if they begin at the offset that the previous snapshot
// names. So the table has the rows of each record once, whichever server has read it.

import { StoreError } from '../object-store/object-store.js'
import { type CatalogMetadata, isObject, snapshotOf } from './catalog-metadata.js'

export interface SourceStream {
  readonly connector: string
  readonly topic: string
  readonly partition: number
}

/** By streamKey(): the offset of the first record whose rows are not in the table. */
export type NextOffsets = ReadonlyMap<string, number>

/** Where those rows of a server begin that are not in the table. */
export interface SourceBegin {
  /** What the table named when they began; null: nothing. */
  readonly next: number | null
  /** Rows from this offset on are to be removed from the server's own table before it stores others. */
  readonly discard?: number
}

export interface TableSources {
  /** What the current snapshot has. */
  readonly lake: NextOffsets
  /** Of this server. */
  readonly own: ReadonlyMap<string, SourceBegin>
}

/** The rows of a commit end before the offset `next` of the stream. */
export interface SourceAdvance {
  readonly key: string
  readonly next: number
}

/** Others have committed rows of these streams, so that those of this server do not follow. */
export class OvertakenError extends StoreError {
  readonly keys: readonly string[]

  constructor(keys: readonly string[], table: string) {
    const names = keys.map((key) => describeStream(streamOf(key)))
    super('conflict', `other servers have committed rows of the same source [table=${table}, source=${names.join()}]`)
    this.keys = keys
  }
}

export const sourcesMember = 'penstock.kafka'

export function streamKey({ connector, topic, partition }: SourceStream): string {
  return JSON.stringify([connector, topic, partition])
}

export function streamOf(key: string): SourceStream {
  const parsed: unknown = JSON.parse(key)
  const [connector, topic, partition] = Array.isArray(parsed) ? parsed : []
  return { connector: String(connector), topic: String(topic), partition: Number(partition) }
}

export function describeStream({ connector, topic, partition }: SourceStream): string {
  return `${connector} ${topic}-${partition}`
}

/** {connector: {topic: {partition: value}}} */
export function nestedStreams<Value>(streams: ReadonlyMap<string, Value>): Record<string, object> {
  const nested: Record<string, Record<string, Record<string, Value>>> = {}
  for (const [key, value] of streams) {
    const { connector, topic, partition } = streamOf(key)
    const topics = nested[connector] ?? {}
    nested[connector] = topics
    topics[topic] = { ...topics[topic], [partition]: value }
  }
  return nested
}

/** The inverse of nestedStreams(). Null if it has another shape. */
export function flatStreams<Value>(
  nested: unknown,
  decode: (value: unknown) => Value | null,
): Map<string, Value> | null {
  const streams = new Map<string, Value>()
  if (!isObject(nested)) return null
  for (const [connector, topics] of Object.entries(nested)) {
    if (!isObject(topics)) return null
    for (const [topic, partitions] of Object.entries(topics)) {
      if (!isObject(partitions)) return null
      for (const [partition, text] of Object.entries(partitions)) {
        const value = decode(text)
        if (value === null || !/^\d+$/.test(partition)) return null
        streams.set(streamKey({ connector, topic, partition: Number(partition) }), value)
      }
    }
  }
  return streams
}

export function offsetOf(value: unknown): number | null {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : null
}

/**
 * The offsets of the current snapshot: its own, or those of its nearest ancestor that has some, since other programs
 * add snapshots without. `isExpected`: rows of sources have been committed. Throws StoreError.
 */
export function offsetsIn(metadata: CatalogMetadata, isExpected: boolean): NextOffsets {
  const { snapshots = [] } = metadata
  let snapshot = snapshotOf(metadata)
  while (snapshot !== null) {
    const text = snapshot.summary[sourcesMember]
    if (text !== undefined) return parsedOffsets(text)
    const parent = snapshot['parent-snapshot-id'] ?? null
    const before = parent === null ? undefined : snapshots.find((one) => one['snapshot-id'] === parent)
    if (before === undefined && parent !== null && isExpected) throw offsetsLost()
    snapshot = before ?? null
  }
  return new Map()
}

function parsedOffsets(text: string): NextOffsets {
  let json: unknown = null
  try {
    json = JSON.parse(text)
  } catch {
    // Reported below.
  }
  const offsets = flatStreams(json, offsetOf)
  if (offsets !== null) return offsets
  throw new StoreError('damaged', `the summary of a snapshot is damaged [member=${sourcesMember}]`)
}

/** Other programs have committed, and removed the snapshots before. */
function offsetsLost(): StoreError {
  return new StoreError(
    'rejected',
    'the snapshots that say how far sources are in the table have been removed: roll the table back to one that says it',
  )
}

/**
 * Throws StoreError if another connector reads one of these streams, whose rows would be in the table twice: rows do not
 * say their connector.
 */
export function requireOneConnector(keys: readonly string[], { lake, own }: TableSources, table: string): void {
  const connectors = new Map<string, Set<string>>()
  for (const key of new Set([...keys, ...lake.keys(), ...own.keys()])) {
    const { connector, topic, partition } = streamOf(key)
    const place = JSON.stringify([topic, partition])
    connectors.set(place, (connectors.get(place) ?? new Set()).add(connector))
  }
  for (const key of keys) {
    const { connector, topic, partition } = streamOf(key)
    const other = [...(connectors.get(JSON.stringify([topic, partition])) ?? [])].find((one) => one !== connector)
    if (other === undefined) continue
    const place = `table=${table}, source=${describeStream(streamOf(key))}, other=${other}`
    throw new StoreError('conflict', `the table has rows of the source from a connector of another name [${place}]`)
  }
}

/**
 * What a commit makes of both. Throws OvertakenError for streams whose rows do not begin where those in the table end.
 */
export function advancedSources(
  { lake, own }: TableSources,
  advances: readonly SourceAdvance[],
  table: string,
): TableSources {
  const overtaken = advances.filter(({ key }) => {
    const begin = own.get(key)
    return begin === undefined || begin.next !== (lake.get(key) ?? null)
  })
  if (overtaken.length > 0)
    throw new OvertakenError(
      overtaken.map(({ key }) => key),
      table,
    )
  const keys = advances.map(({ key }) => key)
  requireOneConnector(keys, { lake, own }, table)
  return {
    lake: new Map([...lake, ...advances.map(({ key, next }) => [key, next] as const)]),
    own: new Map([...own, ...advances.map(({ key, next }) => [key, { next }] as const)]),
  }
}
