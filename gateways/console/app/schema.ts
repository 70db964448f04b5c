// The database schema as the console uses it: tables and views, their columns, and the SQL words for completion. Lists
// of names are fetched once, and again on request; the columns of a table when they are first needed.

import type { CompletionInput, Language } from '../../common/sql-completion.js'
import { literal } from '../../common/sql-text.js'
import { rowsOf } from './api.js'
import type { Column } from './values.js'

type TableKind = 'table' | 'view' | 'materialized view' | 'live view'

export interface Table {
  readonly name: string
  readonly kind: TableKind
  /** Null for a view. */
  readonly rowCount: number | null
  readonly timestamp: string | null
  readonly partitionBy: string
  readonly ttl: string | null
  readonly dedup: boolean
  readonly lastWrite: string | null
  readonly newest: string | null
}

export interface TableColumn extends Column {
  readonly designated: boolean
  readonly indexed: boolean
  readonly upsertKey: boolean
  readonly distinct: number
}

const kinds: Readonly<Record<string, TableKind>> = { T: 'table', V: 'view', M: 'materialized view', L: 'live view' }

export class Schema {
  #tables: readonly Table[] = []
  #language: Language = { keywords: [], functions: new Map() }
  readonly #columns = new Map<string, Promise<readonly TableColumn[]>>()

  get tables(): readonly Table[] {
    return this.#tables
  }

  async load(): Promise<void> {
    const rows = await rowsOf(
      `SELECT table_name, table_type, table_row_count, "designatedTimestamp", "partitionBy", "ttlValue", "ttlUnit", dedup,
      table_last_write_timestamp, table_max_timestamp FROM tables() ORDER BY table_name`,
    )
    this.#tables = rows.map(([name, type, count, timestamp, partitionBy, ttl, unit, dedup, written, newest]) => ({
      name: String(name),
      kind: kinds[String(type)] ?? 'table',
      rowCount: count === null ? null : Number(count),
      timestamp: textOf(timestamp),
      partitionBy: String(partitionBy),
      ttl: Number(ttl ?? 0) === 0 ? null : `${ttl} ${unit}${Number(ttl) === 1 ? '' : 'S'}`,
      dedup: dedup === true,
      lastWrite: textOf(written),
      newest: textOf(newest),
    }))
    this.#columns.clear()
  }

  async loadLanguage(): Promise<void> {
    const [words, functions] = await Promise.all([
      rowsOf('SELECT keyword FROM keywords()'),
      rowsOf("SELECT name, signature FROM functions() WHERE type != 'CURSOR' LIMIT 9999"),
    ])
    const byName = new Map<string, string>()
    for (const [name, signature] of functions) {
      if (/^[a-z]\w*$/.test(String(name)) && !byName.has(String(name))) byName.set(String(name), String(signature))
    }
    this.#language = { keywords: words.map(([word]) => String(word)), functions: byName }
  }

  columns(table: string): Promise<readonly TableColumn[]> {
    const known = this.#columns.get(table)
    if (known !== undefined) return known
    const asked = rowsOf(
      `SELECT "column", type, designated, indexed, "upsertKey", "symbolTableSize" FROM table_columns(${literal(table)})`,
    ).then((rows) =>
      rows.map(([name, type, designated, indexed, upsertKey, distinct]) => ({
        ...{ name: String(name), type: String(type), distinct: Number(distinct ?? 0) },
        ...{ designated: designated === true, indexed: indexed === true, upsertKey: upsertKey === true },
      })),
    )
    this.#columns.set(table, asked)
    asked.catch(() => this.#columns.delete(table))
    return asked
  }

  get completion(): CompletionInput {
    return {
      tables: this.#tables,
      language: this.#language,
      columnsOf: async (name) => {
        const found = this.#tables.find((table) => table.name.toLowerCase() === name.toLowerCase())
        return found === undefined ? [] : this.columns(found.name).catch(() => [])
      },
    }
  }
}

function textOf(value: unknown): string | null {
  return value === null || value === undefined ? null : String(value)
}

/** The statement that creates a table or view. */
export async function ddlOf({ name, kind }: Table): Promise<string> {
  const [row] = await rowsOf(`SHOW CREATE ${kind.toUpperCase()} ${quotedAlways(name)}`)
  return String(row?.[0] ?? '')
}

function quotedAlways(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}

export interface Partition {
  readonly name: string
  readonly rows: number
  readonly bytes: number
  readonly parts: number
  readonly remote: number
}

/** Partitions with their parts. Rows in memory are in a partition without a part. */
export async function partitionsOf(table: string): Promise<Partition[]> {
  const [partitions, parts] = await Promise.all([
    rowsOf(`SELECT name, "numRows", "diskSize" FROM table_partitions(${literal(table)})`),
    rowsOf(`SELECT "partition", local, remote FROM table_parts(${literal(table)})`),
  ])
  return partitions.map(([name, rows, bytes]) => {
    const own = parts.filter(([partition]) => partition === name)
    return {
      ...{ name: String(name), rows: Number(rows), bytes: Number(bytes), parts: own.length },
      remote: own.filter(([, , remote]) => remote !== null).length,
    }
  })
}

export interface Freshness {
  readonly refresh: string
  readonly base: string
  readonly lastRefresh: string | null
  readonly behind: number | null
  readonly problem: string | null
  readonly status: string
}

/**
 * How far a materialized or live view has been refreshed; null for others. Queries of it are always current; the rest is
 * computed from its base.
 */
export async function freshnessOf({ name, kind }: Table): Promise<Freshness | null> {
  if (kind !== 'materialized view' && kind !== 'live view') return null
  const columns =
    kind === 'live view'
      ? `'every ' || flush_every_interval || ' ' || lower(flush_every_interval_unit)
        || case when flush_every_interval = 1 then '' else 's' end, base_table_name,
        cast(now() - lag_micros as timestamp), last_processed_seqtxn, last_processed_seqtxn + lag_seqtxn`
      : `refresh_type, base_table_name, last_refresh_finish_timestamp, refresh_base_table_txn, base_table_txn`
  const [row] = await rowsOf(
    `SELECT ${columns}, invalidation_reason, view_status
    FROM ${kind.replace(' ', '_')}s() WHERE view_name = ${literal(name)}`,
  )
  if (row === undefined) return null
  const [refresh, base, finished, refreshed, current, problem, status] = row
  const behind = refreshed === null || current === null ? null : Number(current) - Number(refreshed)
  return {
    ...{ refresh: String(refresh), base: String(base), lastRefresh: textOf(finished), behind },
    ...{ problem: textOf(problem), status: String(status) },
  }
}
