// The first thing that is wrong with an unreadable statement: a table or column that it names and that does not exist.

import { SqlError } from '../../base/errors.js'
import { findColumn, type TableSchema } from '../../storage/schema/schema.js'
import { tableOf } from '../bind/show.js'
import type { Catalog } from '../catalog.js'
import { type Mention, UnreadableError } from '../parse/mention.js'
import { isTypeName } from '../typing/types.js'
import {
  columnExists,
  demandDedup,
  demandPartitions,
  demandSymbol,
  demandWal,
  missingAlteredColumn,
} from './alter-checks.js'
import { existing } from './views.js'

/** The error to throw in place of `error`, which the parser threw. */
export function earlierMistake(error: unknown, catalog: Catalog): unknown {
  if (!(error instanceof UnreadableError)) return error
  try {
    let table: Mention | undefined
    for (const named of error.mentions) {
      if (named.kind === 'table') table = named
      if (named.kind === 'type') demandType(named, catalog)
      else if (named.kind === 'view') existing(named, { catalog }, 'view name expected')
      else if (table !== undefined) demandMentioned(named, table, catalog)
    }
    return error
  } catch (earlier) {
    return earlier
  }
}

function demandType({ name, position }: Mention, catalog: Catalog): void {
  if (!isTypeName(name) && catalog.enumeration?.(name) === undefined)
    throw new SqlError(`unsupported column type: ${name}`, position)
}

function demandMentioned(named: Mention, table: Mention, catalog: Catalog): void {
  const version = tableOf({ ...table, schema: null, quoted: true }, { catalog })
  const { schema } = version
  switch (named.kind) {
    case 'table':
    case 'type':
    case 'view':
      return
    case 'column':
      if (isMissing(named, schema)) throw SqlError.columnMissing(named.name, named.position)
      return
    case 'altered column':
      if (isMissing(named, schema)) throw missingAlteredColumn(named, schema)
      return
    case 'added column':
      if (!isMissing(named, schema)) throw columnExists(named)
      return
    case 'symbol column': {
      const column = findColumn(schema, named.name)
      if (column !== undefined) demandSymbol(column, named.position)
      return
    }
    case 'wal':
      demandWal(version, named.position)
      return
    case 'partitions':
      demandPartitions(schema, named.position)
      return
    case 'dedup':
      demandDedup(version, table.position)
  }
}

function isMissing({ name }: Mention, schema: TableSchema): boolean {
  return findColumn(schema, name) === undefined
}
