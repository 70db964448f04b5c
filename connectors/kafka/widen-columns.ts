// Changes integer columns to DOUBLE when Kafka records with fractions were rejected because of the column's type
// (option `widen.numbers`). It executes the statement ALTER TABLE .. ALTER COLUMN .. TYPE, as a user would; then the
// connector sends the rejected lines again.

import type { Log } from '../../engine/base/log.js'
import { type Engine, internalSession, type LineReject, quoteIdent, refusedCast } from '../../engine/engine.js'

const wholeTypes = ['BYTE', 'SHORT', 'INT', 'LONG']

/**
 * Returns 'widened' if the lines are to be sent again, and 'none' if no column can be widened. Returns the number of
 * the first rejected line if the rows before it are to be stored first, because they create its column.
 */
export async function widenColumns(
  rejects: readonly LineReject[],
  { engine, log }: { readonly engine: Pick<Engine, 'table' | 'execute'>; readonly log: Log },
): Promise<'widened' | 'none' | number> {
  let result: 'widened' | 'none' = 'none'
  const tried = new Set<string>()
  for (const reject of rejects) {
    const cast = refusedCast(reject)
    if (cast === undefined || cast.from !== 'FLOAT' || !wholeTypes.includes(cast.to)) continue
    const statement = `ALTER TABLE ${quoteIdent(reject.table)} ALTER COLUMN ${quoteIdent(cast.column)} TYPE DOUBLE`
    if (tried.has(statement.toLowerCase())) continue
    tried.add(statement.toLowerCase())
    const type = columnType(engine, reject.table, cast.column)
    if (type === undefined) return result === 'none' ? reject.line : result
    // Another connector may have been faster.
    if (type === 'DOUBLE' || (wholeTypes.includes(type) && (await carryOut(statement, { engine, log }))))
      result = 'widened'
  }
  return result
}

function columnType(engine: Pick<Engine, 'table'>, table: string, column: string): string | undefined {
  const lower = column.toLowerCase()
  return engine.table(table)?.columns.find(({ name }) => name.toLowerCase() === lower)?.type.name
}

/** Returns false when the server refuses the change, such as that of a column that keys name. */
async function carryOut(
  sql: string,
  { engine, log }: { readonly engine: Pick<Engine, 'execute'>; readonly log: Log },
): Promise<boolean> {
  try {
    const result = await engine.execute(sql, {
      ...{ session: internalSession('system'), encoding: { kind: 'values' }, parameters: [], skip: 0 },
      ...{
        rowsMax: Number.POSITIVE_INFINITY,
        countAll: false,
        columns: null,
        timeoutMs: 0,
        signal: null,
        explain: false,
      },
    })
    if (result.kind === 'rows') await result.summary
    log('I', 'kafka', `a column is widened for numbers with fractions: ${sql}`)
    return true
  } catch (error) {
    log('W', 'kafka', `a column cannot be widened: ${sql}: ${error instanceof Error ? error.message : String(error)}`)
    return false
  }
}
