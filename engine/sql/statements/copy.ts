// Plans COPY between a file and a table or query, as a request to the layers that import and export files. COPY over
// the client's connection is handled by the PostgreSQL gateway.

import type { CopyRequest } from '../../api/statements.js'
import { SqlError } from '../../base/errors.js'
import type * as ast from '../ast/ast.js'
import { bindQuery } from '../bind/query.js'
import { tableOf } from '../bind/show.js'
import type { BindContext } from '../scope/bind-context.js'
import type { PlannedStatement } from './planned.js'

export function planCopy(statement: ast.Copy, context: BindContext): PlannedStatement {
  const { source, target, direction, position } = statement
  if (direction === 'cancel' || source.kind === 'job')
    throw new SqlError('there is no COPY to cancel: a COPY has ended when its response is sent', position)
  if (target.kind === 'connection')
    throw new SqlError('COPY FROM STDIN and TO STDOUT need a connection over the PostgreSQL wire protocol', position)
  const options = new Map<string, string>()
  for (const { name, value, position: at } of statement.options) {
    if (options.has(name)) throw new SqlError(`option is given twice [option=${name}]`, at)
    options.set(name, value)
  }
  const shared = { file: target.name, filePosition: target.position, position, options }
  const request: CopyRequest =
    direction === 'from'
      ? { ...shared, direction, table: importTable(statement) }
      : { ...shared, direction, query: exportQuery(statement, context) }
  return { kind: 'copy', request, tag: 'COPY' }
}

/** The table need not exist: the import creates it. */
function importTable({ source, columns, position }: ast.Copy): string {
  if (source.kind !== 'table') throw new SqlError('COPY FROM needs a table', position)
  const [first] = columns
  if (first !== undefined)
    throw new SqlError(
      'COPY from a file takes no column list: the header of the file names the columns',
      first.position,
    )
  return source.table.name
}

/** The text of the exported query. It is bound here, so that errors have a position. */
function exportQuery({ source, columns }: ast.Copy, context: BindContext): string {
  if (source.kind === 'query') {
    bindQuery(source, context)
    return context.sql.slice(source.position, source.end)
  }
  if (source.kind === 'job') return ''
  if (context.catalog.view(source.table.name) === undefined) tableOf(source.table, context)
  const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`
  const list = columns.length === 0 ? '*' : columns.map(({ name }) => quoted(name)).join(', ')
  return `select ${list} from ${quoted(source.table.name)}`
}
