// The text table that /imp and `penstock import` show for an imported file (lines end in CRLF):
//
//   +---..---+
//   |      Location:  |   name |        Pattern  | Locale  |      Errors  |
//   |   Partition by  |   unit |                 |         |              |
//   |      Timestamp  |   name |                 |         |              |
//   |        Warning  |   text |                 |         |              |   for each warning
//   +---..---+
//   |   Rows handled  |      n |                 |         |              |
//   |  Rows imported  |      n |                 |         |              |
//   +---..---+
//   |          index  |   name |                     type  |      errors  |   for each column
//   +---..---+

import type { ImportResult } from '../../pipeline/ingest.js'

/** A result, also as JSON has it: without what is empty. */
export type ImportSummary = Omit<ImportResult, 'timestamp' | 'warnings' | 'rejects'> & {
  readonly timestamp?: string | null
  readonly warnings?: ImportResult['warnings']
  readonly rejects?: ImportResult['rejects']
}

const rule = `+${'-'.repeat(113)}+`

export function importText(results: readonly ImportSummary[]): string {
  return results.map(resultText).join('')
}

function resultText(result: ImportSummary): string {
  const { location, partitionBy, timestamp, warnings, rowsImported, rowsRejected, columns } = result
  const lines = [
    rule,
    row('Location:', location, 'Pattern', 'Locale', 'Errors'),
    row('Partition by', partitionBy, '', '', ''),
    row('Timestamp', timestamp ?? 'NONE', '', '', ''),
    ...(warnings ?? []).map((warning) => row('Warning', warning, '', '', '')),
    rule,
    row('Rows handled', String(rowsImported + rowsRejected), '', '', ''),
    row('Rows imported', String(rowsImported), '', '', ''),
    rule,
    ...columns.map(({ name, type, errors }, index) => columnRow(index, name, type, errors)),
    rule,
  ]
  return `${lines.join('\r\n')}\r\n`
}

function row(title: string, value: string, pattern: string, locale: string, errors: string): string {
  return `|${cell(title, 15)}|${cell(value, 50)}|${cell(pattern, 15)}|${cell(locale, 7)}|${cell(errors, 12)}|`
}

function columnRow(index: number, name: string, type: string, errors: number): string {
  return `|${cell(String(index), 15)}|${cell(name, 50)}|${cell(type, 25)}|${cell(String(errors), 12)}|`
}

function cell(text: string, width: number): string {
  return `${text.padStart(width)}  `
}
