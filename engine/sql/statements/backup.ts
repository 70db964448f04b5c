// Plans BACKUP as a request. The engine passes it to the BackupService (engine/api/statements.ts), which knows where
// backups are stored.

import { SqlError } from '../../base/errors.js'
import { dataType } from '../../types/column-types.js'
import type * as ast from '../ast/ast.js'
import { tableOf } from '../bind/show.js'
import type { BindContext } from '../scope/bind-context.js'
import type { PlannedStatement } from './planned.js'

const startedColumns = [{ name: 'backup_timestamp', type: dataType('TIMESTAMP') }]
const abortedColumns = [
  { name: 'status', type: dataType('VARCHAR') },
  { name: 'backup_id', type: dataType('TIMESTAMP') },
]

export function planBackup({ action, tables }: ast.Backup, context: BindContext): PlannedStatement {
  const columns = action === 'abort' ? abortedColumns : startedColumns
  const chosen = tables.map((table) => {
    const { schema } = tableOf(table, context)
    const { id, name, materialized } = schema
    if (materialized !== undefined)
      throw new SqlError(`a materialized view is part of BACKUP DATABASE only [view=${name}]`, table.position)
    return { id, name }
  })
  return { kind: 'backup', action, tables: chosen, columns, tag: 'BACKUP' }
}
