// The answers of /imp: JSON, or the boxed table of text (CRLF):
//
//   +---..---+
//   |      Location:  |   name |        Pattern  | Locale  |      Errors  |
//   |   Partition by  |   unit |                 |         |              |
//   |      Timestamp  |   name |                 |         |              |
//   +---..---+
//   |   Rows handled  |      n |                 |         |              |
//   |  Rows imported  |      n |                 |         |              |
//   +---..---+
//   |          index  |   name |                     type  |      errors  |   for each column
//   +---..---+

import type { ImportResult } from '../../pipeline/ingest.js'

const rule = `+${'-'.repeat(113)}+`

/** Of several tables the sum, and `imports` with the answer of each. */
export function importJson(results: readonly ImportResult[]): string {
  const [first, ...others] = results
  if (first !== undefined && others.length === 0) return JSON.stringify(resultJson(first))
  const sum = (figure: (result: ImportResult) => number): number =>
    results.reduce((total, each) => total + figure(each), 0)
  return JSON.stringify({
    status: 'OK',
    ...{ rowsRejected: sum(({ rowsRejected }) => rowsRejected), rowsImported: sum(({ rowsImported }) => rowsImported) },
    imports: results.map(resultJson),
  })
}

function resultJson(result: ImportResult): object {
  const { location, rowsRejected, rowsImported, header, partitionBy, timestamp, warnings, columns, rejects } = result
  return {
    ...{ status: 'OK', location, rowsRejected, rowsImported, header, partitionBy },
    ...(timestamp === null ? {} : { timestamp }),
    ...(warnings.length === 0 ? {} : { warnings }),
    columns,
    ...(rejects.length === 0 ? {} : { rejects }),
  }
}

export function importText(results: readonly ImportResult[]): string {
  return results.map(resultText).join('')
}

function resultText(result: ImportResult): string {
  const { location, partitionBy, timestamp, warnings, rowsImported, rowsRejected, columns } = result
  const lines = [
    rule,
    row('Location:', location, 'Pattern', 'Locale', 'Errors'),
    row('Partition by', partitionBy, '', '', ''),
    row('Timestamp', timestamp ?? 'NONE', '', '', ''),
    ...warnings.map((warning) => row('Warning', warning, '', '', '')),
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
