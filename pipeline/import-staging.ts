// Manages the staging tables of imports, which hold the rows until an import is complete. The name of a staging table
// determines what recovery after a crash does with it:
//
//   __import_<pid>_<n>   the import is incomplete: the table is dropped
//   __ready_<table>      the import is complete and was about to replace <table>: renamed to <table> if that was
//                        already dropped or never existed, otherwise dropped

import type { Engine, ExecuteOptions, Session } from '../engine/engine.js'

interface StagingOptions {
  readonly engine: Pick<Engine, 'execute' | 'table'>
  readonly session: Session
}

const stagingPrefix = '__import_'
const readyPrefix = '__ready_'
let nextNumber = 1

export function stagingName(): string {
  return `${stagingPrefix}${process.pid}_${nextNumber++}`
}

function execution(session: Session, encoding: ExecuteOptions['encoding']): ExecuteOptions {
  return {
    session,
    encoding,
    ...{ parameters: [], skip: 0, rowsMax: Number.POSITIVE_INFINITY, countAll: false },
    ...{ columns: null, timeoutMs: 0, signal: null, explain: false },
  }
}

/** Runs a statement that returns no rows. */
export async function run({ engine, session }: StagingOptions, sql: string): Promise<void> {
  await engine.execute(sql, execution(session, { kind: 'count' }))
}

export async function dropTable(options: StagingOptions, name: string): Promise<void> {
  if (options.engine.table(name) !== undefined) await run(options, `DROP TABLE "${name}"`)
}

/** Moves the staged rows to their table. */
export async function finishStaging(
  options: StagingOptions & { readonly name: string; readonly overwrite: boolean },
  staging: string,
  columns: readonly { readonly name: string }[],
): Promise<void> {
  const { engine, name, overwrite } = options
  if (engine.table(name) !== undefined && !overwrite) {
    const list = columns.map((column) => `"${column.name}"`).join(', ')
    await run(options, `INSERT INTO "${name}" (${list}) SELECT ${list} FROM "${staging}"`)
    await dropTable(options, staging)
    return
  }
  const ready = `${readyPrefix}${name}`
  await dropTable(options, ready)
  await run(options, `RENAME TABLE "${staging}" TO "${ready}"`)
  await dropTable(options, name)
  await run(options, `RENAME TABLE "${ready}" TO "${name}"`)
}

/** Completes or drops, at the start of the server, the staging tables that a crash left behind. */
export async function recoverImports(
  options: StagingOptions & { readonly engine: Pick<Engine, 'tableNames'> },
): Promise<void> {
  for (const name of options.engine.tableNames()) {
    if (name.startsWith(stagingPrefix)) await dropTable(options, name)
    if (!name.startsWith(readyPrefix)) continue
    const table = name.slice(readyPrefix.length)
    if (options.engine.table(table) === undefined) await run(options, `RENAME TABLE "${name}" TO "${table}"`)
    else await dropTable(options, name)
  }
}
