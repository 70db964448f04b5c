// Rows of a transaction as the text form of COPY, for the way into parts that large files take: rows that are too many for
// the memory go there (engine/threads/spilled-rows.ts).

import type { CsvShape } from '../csv/shape.js'
import type { PackedRows } from '../storage/messages.js'
import { liveColumns, type TableVersion } from '../storage/schema.js'
import type { DataType } from '../types/column-types.js'
import type { Value } from '../types/value.js'
import { escapeCopyField } from './copy-escapes.js'
import { wireForm } from './encode-value.js'
import { ownRows } from './own-rows.js'

const nullText = '\\N'
const textRows = 2048

/** The form of copyTexts(): all columns of the table. */
export function copyShape({ schema }: TableVersion): CsvShape {
  const columns = liveColumns(schema)
  return {
    delimiter: 9,
    columns: columns.map(({ name, type }) => ({ name, type, pattern: null })),
    timestamp: columns.findIndex(({ id }) => id === schema.timestampId),
    header: false,
    copyText: true,
    nullText,
  }
}

/** Some thousand rows each. */
export function* copyTexts(version: TableVersion, batch: PackedRows): Generator<Buffer> {
  const forms = liveColumns(version.schema).map(({ type }) => textOf(type))
  const rows = ownRows(version, [batch])
  for (let from = 0; from < rows.length; from += textRows) {
    const lines = rows
      .slice(from, from + textRows)
      .map((row) => `${row.map((value, index) => forms[index]?.(value)).join('\t')}\n`)
    yield Buffer.from(lines.join(''), 'utf8')
  }
}

function textOf(type: DataType): (value: Value) => string {
  if (type.name === 'BOOLEAN') return String
  const form = wireForm(type, false)
  return (value) => {
    const text = form(value)
    return text === null ? nullText : escapeCopyField(String(text), '\t')
  }
}
