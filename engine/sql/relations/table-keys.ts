// Keys of a table as clients of PostgreSQL see them: a constraint and an index that share name and oid. A table shows
// its declared keys. A table without declared keys shows one for its DEDUP keys (of several rows with equal keys, the
// table keeps one), which is enforced and treats NULLs as equal. The native dialect (that of HTTP clients) shows no
// keys.

import { tableKeysMax } from '../../base/limits.js'
import type { DeclaredKey, TableSchema } from '../../storage/schema/schema.js'
import type { BindContext } from '../scope/bind-context.js'
import { usualName } from './keys.js'
import { placedInSchema } from './namespaces.js'

/** Oids of keys in pg_class and pg_constraint, above those of tables and counters. */
const firstKeyOid = 2 ** 30

export interface TableKey {
  readonly oid: number
  readonly name: string
  readonly primary: boolean
  /** Column ids in the order of the key. */
  readonly columnIds: readonly number[]
  /** The constraint is NULLS NOT DISTINCT. */
  readonly nullsEqual: boolean
  /** Whether uniqueness is enforced. */
  readonly enforced: boolean
}

const keysOfSchemas = new WeakMap<TableSchema, readonly TableKey[]>()

/** The keys that clients of the session's dialect see. */
export function keysOfTable(schema: TableSchema, { dialect }: Pick<BindContext, 'dialect'>): readonly TableKey[] {
  return dialect.postgresCatalog ? allKeysOfTable(schema) : []
}

export function allKeysOfTable(schema: TableSchema): readonly TableKey[] {
  const known = keysOfSchemas.get(schema) ?? shownKeys(schema)
  keysOfSchemas.set(schema, known)
  return known
}

function shownKeys({ id: tableId, name: table, columns, keys = [], dedupKeys }: TableSchema): TableKey[] {
  const shown = ({ id, nullsEqual, enforced, ...key }: DeclaredKey): TableKey => {
    const oid = firstKeyOid + ((tableId * tableKeysMax + id) % firstKeyOid)
    return { ...key, oid, nullsEqual: nullsEqual === true, enforced: enforced === true }
  }
  if (keys.length > 0 || dedupKeys.length === 0) return keys.map(shown)
  const names = dedupKeys.map((id) => columns[id]?.name ?? '')
  const name = usualName(placedInSchema(table).name, false, names)
  return [shown({ id: 0, name, primary: false, columnIds: dedupKeys, nullsEqual: true, enforced: true })]
}
