// Adds the missing columns to rows of an INSERT or COPY that does not list all columns: those with a DEFAULT
// expression, evaluated for each row, and those that get a number from a sequence.

import type { DefaultColumn } from '../pg/binary-rows.js'
import { ColumnAppender } from '../pg/column-appender.js'
import type { ExpressionScope } from '../sql/bind/expression.js'
import { unnamedDefaults } from '../sql/statements/defaults.js'
import type { ColumnDefault } from '../sql/statements/planned.js'
import { insertValue } from '../sql/statements/target.js'
import type { PackedBatch } from '../storage/jobs/messages.js'
import type { TableVersion } from '../storage/schema/schema.js'

/** The table's columns with a default that are not in `columnIds`, and the columns that the statement numbers. */
export function defaultColumns(
  version: TableVersion | undefined,
  columnIds: readonly number[],
  scopeOf: () => ExpressionScope,
  numbered: readonly ColumnDefault[] = [],
): DefaultColumn[] {
  const named = new Set([...columnIds, ...numbered.map(({ target }) => target.columnId)])
  const defaults = version === undefined ? [] : [...unnamedDefaults(version, named), ...numbered]
  if (version === undefined || defaults.length === 0) return []
  const scope = scopeOf()
  return defaults.map(({ target, written }) => ({
    column: { ...target, required: target.columnId === version.schema.timestampId },
    append: (appender) => appender.value(insertValue(written, target, 0, scope)),
  }))
}

export function filledRows({ packed, bytes }: PackedBatch, defaults: readonly DefaultColumn[]): PackedBatch {
  if (defaults.length === 0) return { packed, bytes }
  const filled = defaults.map(({ column, append }) => {
    const appender = new ColumnAppender(column)
    for (let row = 0; row < packed.rows; row++) append(appender)
    return { columnId: column.columnId, type: column.type, values: appender.packed(), bytes: appender.bytes }
  })
  const more = filled.reduce((sum, column) => sum + column.bytes, 0)
  return { packed: { ...packed, columns: [...packed.columns, ...filled] }, bytes: bytes + more }
}
