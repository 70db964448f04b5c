// An engine with iceberg() and read_parquet() over an import directory and a store's folder of its own, for tests that write tables with
// iceberg-table.ts.

import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { allRights } from '../../../engine/base/rights.js'
import { nativeDialect } from '../../../engine/sql/dialect.js'
import { copyRelations, IcebergTables } from '../../../pipeline/ingest.js'
import type { WrittenColumn } from '../parquet-writer.js'
import { executeOptions, openTestEngine } from '../test-engine.js'

const session = { user: 'admin', protocol: 'http', dialect: nativeDialect, readOnly: false } as const

export async function openIcebergQueries() {
  const home = mkdtempSync(join(tmpdir(), 'penstock-iceberg-'))
  const roots = { importRoot: join(home, 'import'), exportRoot: join(home, 'export'), storeRoot: join(home, 'store') }
  const directories = { ...roots, spool: home }
  let now = 0
  for (const root of Object.values(roots)) mkdirSync(root)
  const engine = await openTestEngine(join(home, 'db'))
  const tables = new IcebergTables({ directories, remote: null, clock: { monotonicMs: () => now } })
  for (const relation of copyRelations(directories, null, tables)) engine.relation(relation)

  async function rows(sql: string, rights = allRights): Promise<unknown[][]> {
    const result = await engine.execute(sql, {
      ...executeOptions,
      session: { ...session, rights },
      encoding: { kind: 'json', quoteLargeNumbers: false, geohashAsText: true },
      rowsMax: 100_000,
    })
    if (result.kind !== 'rows') throw new Error(result.kind)
    const blocks: Buffer[] = []
    for await (const block of result.blocks) blocks.push(Buffer.from(block))
    await result.summary
    return JSON.parse(`[${Buffer.concat(blocks).toString()}]`)
  }

  return {
    home,
    /** That of the table `t`. */
    folder: join(directories.importRoot, 't'),
    rows,
    async failure(sql: string, rights = allRights): Promise<string> {
      try {
        await rows(sql, rights)
      } catch (error) {
        return error instanceof Error ? error.message : String(error)
      }
      throw new Error('it did not fail')
    },
    /** What was found for a table before is old. */
    forget(): void {
      now += 10_000
    },
    async close(): Promise<void> {
      await engine.close()
      rmSync(home, { recursive: true, force: true })
    },
  }
}

/** INT32, INT64, FLOAT, DOUBLE and BYTE_ARRAY. */
export function column(
  name: string,
  id: number | null,
  physical: number,
  values: WrittenColumn['values'],
): WrittenColumn {
  const element = { ...(id === null ? {} : { field_id: id }), ...(physical === 6 ? { converted_type: 0 } : {}) }
  return { name, physical, element, encoding: 0, values }
}

export const texts = (values: readonly string[]): Buffer[] => values.map((value) => Buffer.from(value))
export const numbers = (count: number, from = 0): number[] => Array.from({ length: count }, (_, index) => from + index)
