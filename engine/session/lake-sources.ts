// Several servers may read one source in turn, such as a partition of a Kafka topic, and commit its records to one
// Iceberg table. This file ensures that the table gets each record once, even if two servers have stored the same one
// (engine/lake/source-offsets.ts). Each row has columns with the topic, partition and offset of its record, by which
// rows can be removed again.
//
//   begin       before a server stores records of a partition, it registers in the catalog at which offset they begin
//   commit      allowed if the server's rows begin at the offset where the rows in the Iceberg table end (advances())
//   otherwise   the server discards its rows that are not in the Iceberg table, and sets its stored source position to
//               the offset where that table ends; the reader of the source (connector) learns this when it sends its
//               next rows, and continues from there (settle())
//
// Invariants:
//   1. Rows of a partition that are not in the Iceberg table have the offset registered at `begin`, or a later one.
//   2. The range to discard is in the catalog before the first row is discarded, so a restart repeats the discard.
//   3. While rows of a partition are discarded, no row of it is stored. If the server's table was dropped, renamed
//      or made again since the connector began, no row is stored until it begins again (refusal()).

import type { LineRequest, LineTicket } from '../api/ingest.js'
import type { SharedSource, SourcePlace } from '../api/lake.js'
import { internalSession } from '../api/session.js'
import type { ExecuteOptions, StatementResult } from '../api/statements.js'
import { errorFromRecord } from '../base/errors.js'
import type { Log } from '../base/log.js'
import type { CommittedTable, SharedSources } from '../lake/committed-table.js'
import { unitSnapshot } from '../lake/lake-units.js'
import {
  advancedSources,
  describeStream,
  OvertakenError,
  requireOneConnector,
  type SourceAdvance,
  type SourceBegin,
  streamKey,
  streamOf,
  type TableSources,
} from '../lake/source-offsets.js'
import { StoreError } from '../object-store/object-store.js'
import { liveColumns, type PartDescriptor, type TableSchema, type TableSnapshot } from '../storage/schema/schema.js'
import type { Value } from '../types/value.js'
import type { KafkaPosition } from '../wal/source-position.js'
import { oneTable } from './lake-file.js'
import { internalStatement } from './open-refresher.js'

export interface LakeSourcesOptions {
  /** Stored positions of a connector. */
  readonly positions: (connector: string) => readonly KafkaPosition[]
  readonly lines: (request: LineRequest) => LineTicket
  readonly execute: (sql: string, options: ExecuteOptions) => Promise<StatementResult>
  readonly log: Log
}

/** By streamKey(): the offset behind the last stored record. */
export type StoredOffsets = ReadonlyMap<string, number>

const emptyLine = new Uint8Array([10])

export class LakeSources {
  readonly #options: LakeSourcesOptions
  readonly #sources: SharedSource[] = []
  readonly #held = new Set<string>()
  /** Streams of which this process has discarded what the catalog says. */
  readonly #settled = new Set<string>()
  /** By connector: the table in which it began. */
  readonly #tables = new Map<string, string>()

  constructor(options: LakeSourcesOptions) {
    this.#options = options
  }

  /** Throws Error if another source has the table. */
  share(source: SharedSource): void {
    const other = this.ofTable(source.table)
    if (other !== undefined)
      throw new Error(`${other.connector} and ${source.connector} share offsets of one table [table=${source.table}]`)
    this.#sources.push(source)
  }

  ofTable(table: string): SharedSource | undefined {
    return this.#sources.find((source) => source.table.toLowerCase() === table.toLowerCase())
  }

  named(connector: string): SharedSource {
    const source = this.#sources.find((one) => one.connector === connector)
    if (source === undefined) throw new Error(`no such source [connector=${connector}]`)
    return source
  }

  /** Records of the connector may be stored in this table. */
  began({ connector }: SharedSource, schema: TableSchema): void {
    this.#tables.set(connector, tableOf(schema))
  }

  /** `schema`: of the table that has the name now. */
  refusal(connector: string, { topic, partition }: SourcePlace, schema: TableSchema | undefined): string | null {
    if (this.#held.has(streamKey({ connector, topic, partition })))
      return 'rows of the partition that other servers have are being discarded'
    if (schema !== undefined && this.#tables.get(connector) === tableOf(schema)) return null
    const { table } = this.named(connector)
    return `the table is not the one in which the connector began to read: it was dropped, renamed, or taken out of the lake [table=${table}]`
  }

  stored({ connector }: SharedSource): StoredOffsets {
    return new Map(this.#options.positions(connector).map((one) => [streamKey(one), one.offset + 1]))
  }

  /**
   * How far a commit of the parts gets. All rows of stored records are in parts. Rejects with OvertakenError if the rows
   * must not be committed.
   */
  async advances(
    source: SharedSource,
    { state }: Pick<SharedSources, 'state'>,
    snapshot: TableSnapshot,
    parts: readonly PartDescriptor[],
    stored: StoredOffsets,
  ): Promise<SourceAdvance[]> {
    const { name } = snapshot.version.schema
    const unsettled = [...state.own].filter(([key, { discard }]) => discard !== undefined && !this.#settled.has(key))
    if (unsettled.length > 0)
      throw new OvertakenError(
        unsettled.map(([key]) => key),
        name,
      )
    const ends = await this.#ends(source, snapshot, parts)
    for (const key of ends.keys()) if (!state.own.has(key)) throw unknownRows(key, name)
    const advances = [...state.own].flatMap(([key, { next }]): SourceAdvance[] => {
      const end = Math.max(ends.get(key) ?? 0, stored.get(key) ?? 0)
      return end > (next ?? 0) ? [{ key, next: end }] : []
    })
    advancedSources(state, advances, name)
    return advances
  }

  /**
   * Makes rows of these streams follow those in the table: discards the others, and moves the stored positions. Rejects
   * with StoreError, or with an error of the engine.
   */
  async settle(
    source: SharedSource,
    shared: SharedSources,
    schema: TableSchema,
    keys: readonly string[],
  ): Promise<void> {
    for (const key of keys) this.#held.add(key)
    try {
      requireOneConnector(keys, shared.state, source.table)
      for (const key of keys) if (!shared.state.own.has(key)) await this.#requireNoRows(source, schema, key)
      await shared.claim((state) => this.#claims(source, state, keys))
      for (const key of keys) {
        const begin = shared.state.own.get(key)
        if (begin?.discard === undefined || this.#settled.has(key)) continue
        await this.#discard(source, schema, key, begin.next ?? 0, begin.discard)
        this.#settled.add(key)
      }
    } finally {
      for (const key of keys) this.#held.delete(key)
    }
  }

  /** What the catalog does not say yet. */
  #claims(source: SharedSource, { lake, own }: TableSources, keys: readonly string[]): Map<string, SourceBegin> {
    requireOneConnector(keys, { lake, own }, source.table)
    const stored = this.stored(source)
    const claims = new Map<string, SourceBegin>()
    for (const key of keys) {
      const begin = own.get(key)
      const next = lake.get(key) ?? null
      if (next === null) {
        if (begin === undefined) claims.set(key, { next })
        else if (begin.next !== null) throw offsetLost(key, source.table)
        continue
      }
      const follows = begin?.next === next && (stored.get(key) ?? 0) >= next
      if (!follows) this.#settled.delete(key)
      const before = begin?.discard !== undefined && !this.#settled.has(key) ? begin.discard : null
      if (follows && before === null) continue
      const discard = Math.min(before ?? next, begin === undefined ? next : (begin.next ?? 0), next)
      if (begin?.next !== next || before !== discard) claims.set(key, { next, discard })
    }
    return claims
  }

  async #discard(source: SharedSource, schema: TableSchema, key: string, next: number, from: number): Promise<void> {
    const stream = streamOf(key)
    await this.#requireVisible(source, schema, key, next, from)
    // Requests under way are stored before this one, or rejected because of it.
    for (;;) {
      const previous = (this.stored(source).get(key) ?? 0) - 1
      const { receipt } = this.#options.lines({
        ...{ blocks: [emptyLine], precision: 'n', atomic: true, skipBadLines: true, connectionId: 0 },
        sourcePosition: { ...stream, offset: next - 1, previous },
      })
      const { existed, error } = await receipt
      if (error !== null) throw errorFromRecord(error)
      if (!existed) break
    }
    const where = this.#whereFrom(source, schema, key, from)
    const result = where === null ? null : await this.#execute(`delete from ${quoted(source.table)} where ${where}`)
    const rows = result?.kind === 'done' ? result.rows : 0
    if (rows === 0) return
    const place = `${describeStream(stream)}, table=${source.table}, rows=${rows}, from=${from}, next=${next}`
    this.#options.log('W', 'lake', `rows that other servers have committed are discarded [${place}]`)
  }

  /**
   * Throws StoreError if records were stored of which the catalog knows nothing: before the offsets were shared, or before
   * the table was restored here, or dropped in the catalog.
   */
  async #requireNoRows(source: SharedSource, schema: TableSchema, key: string): Promise<void> {
    if (this.stored(source).has(key)) throw unknownRows(key, source.table)
    const where = this.#whereFrom(source, schema, key, 0)
    if (where === null) return
    const [row] = await this.#values(`select count() from ${quoted(source.table)} where ${where}`)
    if (Number(row?.[0] ?? 0) > 0) throw unknownRows(key, source.table)
  }

  /** Throws StoreError if a DELETE cannot see rows of records from there on, as they do not say which record they are of. */
  async #requireVisible(
    source: SharedSource,
    schema: TableSchema,
    key: string,
    next: number,
    from: number,
  ): Promise<void> {
    const stored = this.stored(source).get(key) ?? 0
    const where = this.#whereFrom(source, schema, key, from)
    if (stored <= from) return
    if (where === null) {
      // Records that make no rows, such as tombstones, create no columns.
      const [row] = await this.#values(`select count() from ${quoted(source.table)}`)
      if (Number(row?.[0] ?? 0) > 0) throw hiddenRows(key, source)
      return
    }
    const [offset, table] = [source.columns.offset, source.table].map(quoted)
    const [seen] = await this.#values(`select count_distinct(${offset}) from ${table} where ${where}`)
    const visible = Number(seen?.[0] ?? 0)
    // A discard before a restart may have removed them all, and moved the stored offset.
    if (visible === stored - from || (visible === 0 && stored === next)) return
    const [hidden] = await this.#values(`select count() from ${table} where ${offset} is null`)
    if (Number(hidden?.[0] ?? 0) > 0) throw hiddenRows(key, source)
  }

  /** Null: the table has no such rows, as it lacks the columns. */
  #whereFrom({ columns }: SharedSource, schema: TableSchema, key: string, from: number): string | null {
    if (!hasColumns(schema, columns)) return null
    const { topic, partition } = streamOf(key)
    const isTopic = `${quoted(columns.topic)} = '${topic.replaceAll("'", "''")}'`
    return `${isTopic} and ${quoted(columns.partition)} = ${partition} and ${quoted(columns.offset)} >= ${from}`
  }

  /** Offsets behind the last rows in the parts. */
  async #ends(
    { connector, columns }: SharedSource,
    snapshot: TableSnapshot,
    parts: readonly PartDescriptor[],
  ): Promise<Map<string, number>> {
    const ends = new Map<string, number>()
    const { schema } = snapshot.version
    if (parts.length === 0 || !hasColumns(schema, columns)) return ends
    const [topic, partition, offset] = [columns.topic, columns.partition, columns.offset].map(quoted)
    const rows = await this.#values(
      `select ${topic}, ${partition}, max(${offset}) from ${quoted(schema.name)} where ${offset} is not null group by ${topic}, ${partition}`,
      oneTable(schema.id, unitSnapshot(snapshot, parts)),
    )
    for (const [name, number, last] of rows) {
      const stream = { connector, topic: String(name), partition: Number(number) }
      ends.set(streamKey(stream), Number(last) + 1)
    }
    return ends
  }

  async #values(sql: string, snapshot?: ReturnType<typeof oneTable>): Promise<(readonly Value[])[]> {
    const result = await this.#execute(sql, snapshot)
    if (result.kind !== 'rows') throw new Error('a query returns no rows')
    const rows: (readonly Value[])[] = []
    for await (const some of result.values) rows.push(...some)
    return rows
  }

  #execute(sql: string, snapshot?: ReturnType<typeof oneTable>): Promise<StatementResult> {
    const session = { ...internalSession('system'), ...(snapshot === undefined ? {} : { snapshot }) }
    return this.#options.execute(sql, { ...internalStatement, session, encoding: { kind: 'values' }, signal: null })
  }
}

function hasColumns(schema: TableSchema, columns: SharedSource['columns']): boolean {
  const names = new Set(liveColumns(schema).map(({ name }) => name.toLowerCase()))
  return Object.values(columns).every((name) => names.has(name.toLowerCase()))
}

function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}

function unknownRows(key: string, table: string): StoreError {
  const place = `table=${table}, source=${describeStream(streamOf(key))}`
  return new StoreError(
    'conflict',
    `this server has rows of a source of which the catalog knows nothing: begin with a new table and connector [${place}]`,
  )
}

function hiddenRows(key: string, { table, columns }: SharedSource): StoreError {
  const place = `table=${table}, source=${describeStream(streamOf(key))}`
  return new StoreError(
    'conflict',
    `rows that other servers have committed cannot be discarded, as rows of the table have no value of ${columns.offset} [${place}]`,
  )
}

/** A table that is created again, or taken into the lake again, is another one. */
function tableOf({ id, lake }: TableSchema): string {
  return `${id}-${lake?.uuid ?? ''}`
}

function offsetLost(key: string, table: string): StoreError {
  const place = `table=${table}, source=${describeStream(streamOf(key))}`
  return new StoreError(
    'conflict',
    `the table in the catalog has lost the offset of a source: roll it forward [${place}]`,
  )
}

/** Throws StoreError for a table in this server's catalog. */
export function sharedBy({ sources }: CommittedTable, { table }: SharedSource): SharedSources {
  if (sources !== null) return sources
  const message = `offsets are shared through an external catalog: set lake.catalog.url [table=${table}]`
  throw new StoreError('rejected', message)
}

export function notConfigured(table: string, keys: Iterable<string>): StoreError {
  const connectors = new Set([...keys].map((key) => streamOf(key).connector))
  return new StoreError(
    'rejected',
    `the table has rows of a connector that is not configured, or does not share its offsets [table=${table}, connector=${[...connectors].join()}]`,
  )
}
