// wal_transactions('t'): the transactions of a table. Those of rows are counted by storage, changes of the schema by the
// catalog, which remembers behind which rows they came since the start; older changes stand before everything.
// Time, bounds and rows are known of the last transactions (memory/transactions.ts), the time only of those since the
// start.

import type { RowTransaction } from '../../memory/transactions.js'
import { schemaStatements, type TableVersion } from '../../storage/schema.js'
import type { Value } from '../../types/value.js'
import type { BindContext } from '../bind/bind-context.js'
import type { SchemaChange, TableFigures } from '../catalog.js'
import type { SystemRelation } from './relation-columns.js'
import { columnList } from './relation-columns.js'
import { isWalTable, microsOf } from './tables-relations.js'

const columns = columnList(
  'sequencerTxn LONG, timestamp TIMESTAMP, walId INT, segmentId INT, segmentTxn INT, structureVersion LONG, minTimestamp TIMESTAMP, maxTimestamp TIMESTAMP, rowCount LONG, alterCommandType SHORT',
)

/** The last transactions: a table has millions of them. */
const shownMax = 10_000

export function walTransactionsRelation(version: TableVersion, { catalog }: BindContext): SystemRelation {
  return { columns, rows: () => transactionRows(version, catalog.figures(version.schema.id)) }
}

/** Without argument: of all tables, with their names first. */
export function allWalTransactions({ catalog }: BindContext): SystemRelation {
  return {
    columns: [...columnList('table_name STRING'), ...columns],
    rows: () =>
      catalog
        .tables()
        .filter(isWalTable)
        .flatMap((version) =>
          transactionRows(version, catalog.figures(version.schema.id)).map((row) => [version.schema.name, ...row]),
        ),
  }
}

function transactionRows(version: TableVersion, figures: TableFigures): Value[][] {
  const { schema } = version
  const { schemaChanges, transactions } = figures
  // Where among the others a statement that rewrote rows stood is not remembered: it comes last.
  const visibleTxn = figures.visibleTxn + figures.rewrites
  const forgotten = Math.max(0, schemaStatements(schema) - schemaChanges.length)
  const changes = [...new Array<SchemaChange>(forgotten).fill({ afterTxn: 0, micros: 0 }), ...schemaChanges]
  const rows: Value[][] = []
  const total = visibleTxn + changes.length
  let structure = 0
  let txn = 0
  for (let sequence = 1; sequence <= total; sequence++) {
    const next = changes[structure]
    const change = next !== undefined && next.afterTxn <= txn ? next : undefined
    if (change !== undefined) structure++
    else txn++
    if (total - sequence >= shownMax) continue
    const noted = change === undefined ? transactions.get(txn) : undefined
    const place = change === undefined ? [1, 0, txn - 1] : [-1, -1, -1]
    const micros = (change ?? noted)?.micros ?? 0
    const when = micros === 0 ? null : BigInt(micros)
    rows.push([BigInt(sequence), when, ...place, BigInt(structure), ...extentOf(version, noted), 0])
  }
  return rows
}

/** minTimestamp, maxTimestamp, rowCount. */
function extentOf(version: TableVersion, noted: RowTransaction | undefined): Value[] {
  if (noted === undefined) return [null, null, null]
  return [microsOf(version, noted.minTs), microsOf(version, noted.maxTs), BigInt(noted.rows)]
}
