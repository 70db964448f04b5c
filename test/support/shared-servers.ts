// Helpers of tests in which several servers append to one Iceberg table: the servers' settings, waiting until rows are
// in the table, and reading it with other query engines. The table is in the external catalog at $PENSTOCK_CATALOG, its
// files in the S3 service at $PENSTOCK_S3 or in a folder. .ci/iceberg-catalog.sh or .ci/nessie.sh,
// and .ci/s3.sh set the variables.

import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { repositoryRoot } from './docs/source-tree.js'
import type { TestServer } from './server.js'

export const { PENSTOCK_CATALOG: catalogUrl = '', PENSTOCK_S3: s3Url = '' } = process.env
/** Of the catalog, where a table is found. */
export const tablesUrl = `${catalogUrl}/v1/${process.env['PENSTOCK_CATALOG_PREFIX'] ?? ''}namespaces/qdb/tables`
const followMs = 120_000

/** `folder`: the store, without an S3 service. */
export function sharedLakeSettings(folder: string): string[] {
  const { AWS_ACCESS_KEY_ID: key, AWS_SECRET_ACCESS_KEY: secret, PENSTOCK_S3_BUCKET: bucket } = process.env
  const store =
    s3Url === ''
      ? [`object.store.url=file://${folder}`]
      : [
          ...[`object.store.url=s3://${bucket}/lake`, `object.store.s3.endpoint=${s3Url}`],
          ...[`object.store.access.key.id=${key}`, `object.store.secret.access.key=${secret}`],
        ]
  return [...store, `lake.catalog.url=${catalogUrl}`, 'lake.commit.lag=1s', 'telemetry.enabled=false']
}

/** Until the lake has everything that the server had at the call. */
export async function untilInLake(server: TestServer, table: string): Promise<void> {
  const end = performance.now() + followMs
  for (;;) {
    const [row] = await server.rows(`select state, failure from lake_tables() where table_name = '${table}'`)
    if (row?.[0] === 'committed') return
    if (performance.now() > end) throw new Error(`the table is not committed: ${String(row)}`)
    await new Promise((later) => setTimeout(later, 100))
  }
}

export interface FiguresWanted {
  readonly python: string
  /** As test/interop/lake_shared.py names it. */
  readonly engine: string
  readonly table: string
  readonly figures: readonly (readonly string[])[]
  /** Without: all rows. */
  readonly since?: string | null
}

/** Functions of columns, as an engine computes them over the table in the catalog. */
export function figuresIn({ python, engine, table, figures, since = null }: FiguresWanted): unknown[] {
  const script = join(repositoryRoot, 'test/interop/lake_shared.py')
  const args = [script, engine, catalogUrl, table, JSON.stringify(figures), ...(since === null ? [] : [since])]
  return JSON.parse(execFileSync(python, args, { encoding: 'utf8' }))
}
