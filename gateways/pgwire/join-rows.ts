// Rows of a transaction that its changes divide (held-changes.ts) are one transaction of the log all the same where that comes
// to the same: when none that came behind such a change is of a table that one of the changes before it names.

import type { RowTransaction } from '../../engine/engine.js'
import type { PgSession } from './context.js'

/** Moves all rows to those that are stored first, or none. */
export function joinRows({ held, transaction }: PgSession, bytesMax: number): void {
  const first = held.findIndex(({ rows }) => rows !== null)
  const joint = held[first]?.rows ?? null
  if (joint === null) return
  const names = new Set<string>()
  let { bytes } = joint
  const isOther = (rows: RowTransaction): boolean => {
    bytes += rows.bytes
    return rows.adopted === 0 && bytes <= bytesMax && !rows.tables.some((table) => names.has(table))
  }
  for (const change of held.slice(first)) {
    if (change.rows !== null && change.rows !== joint && !isOther(change.rows)) return
    for (const name of change.names) names.add(name)
  }
  if (!isOther(transaction)) return
  for (const change of held.slice(first + 1)) {
    if (change.rows !== null) joint.join(change.rows)
    change.rows = null
  }
  joint.join(transaction)
}
