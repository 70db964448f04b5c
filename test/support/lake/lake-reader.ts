// Reads an Iceberg table of a server as other query engines do: asks the server's Iceberg catalog for the metadata,
// follows it to the manifests of the current snapshot, which the server's own code decodes, and has DuckDB read the
// data files. The object store is a folder.

import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { DuckDBInstance } from '@duckdb/node-api'
import { type DataFile, decodeManifest, decodeManifestList, entryStatus } from '../../../engine/lake/manifest-files.js'
import { currentSnapshot, partitionOf, type TableMetadata } from '../../../engine/lake/table-metadata.js'
import type { TestServer } from '../server.js'

export interface LoadedTable {
  readonly location: string
  readonly metadata: TableMetadata
  readonly config: Readonly<Record<string, string>>
}

export async function loadTable(server: TestServer, name: string): Promise<LoadedTable | null> {
  const path = `/iceberg/v1/namespaces/qdb/tables/${encodeURIComponent(name)}`
  const answer = await fetch(`http://${server.address('http')}${path}`)
  if (answer.status === 404) return null
  if (answer.status !== 200) throw new Error(`${path}: ${answer.status} ${await answer.text()}`)
  const body = (await answer.json()) as {
    readonly 'metadata-location': string
    readonly metadata: TableMetadata
    readonly config: Record<string, string>
  }
  return { location: body['metadata-location'], metadata: body.metadata, config: body.config }
}

/** Of the current snapshot. */
export function dataFiles(metadata: TableMetadata): DataFile[] {
  const snapshot = currentSnapshot(metadata)
  if (snapshot === null) return []
  return decodeManifestList(readFileSync(fileURLToPath(snapshot['manifest-list'])))
    .flatMap((manifest) => decodeManifest(partitionOf(metadata), manifest, readFileSync(fileURLToPath(manifest.path))))
    .filter(({ status }) => status !== entryStatus.deleted)
    .map(({ file }) => file)
}

/** Values of expressions over the rows of the current snapshot, as DuckDB computes them. `t` is the table. */
export async function readLake(metadata: TableMetadata, expressions: string): Promise<readonly unknown[][]> {
  const files = dataFiles(metadata).map(({ path }) => `'${fileURLToPath(path)}'`)
  if (files.length === 0) return [[0]]
  const duckdb = await (await DuckDBInstance.create()).connect()
  try {
    await duckdb.run("set timezone = 'UTC'")
    const rows = await duckdb.runAndReadAll(
      `select ${expressions} from read_parquet([${files.join()}], union_by_name = true) t`,
    )
    return rows.getRowsJson()
  } finally {
    duckdb.closeSync()
  }
}

/** Resolves when the lake has every row that the table had at the call, and nothing waits. */
export async function untilCommitted(server: TestServer, table: string): Promise<LoadedTable> {
  const sql = `select state, metadata_version, failure from lake_tables() where table_name = '${table}'`
  const [before] = await server.rows(sql)
  const end = performance.now() + 600_000
  for (;;) {
    const [row] = await server.rows(sql)
    const loaded = row?.[0] === 'committed' ? await loadTable(server, table) : null
    if (loaded !== null) return loaded
    if (performance.now() > end)
      throw new Error(`no commit [table=${table}, before=${String(before)}, now=${String(row)}]`)
    await new Promise((later) => setTimeout(later, 50))
  }
}
