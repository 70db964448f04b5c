// Parses CSV records into rows: the options define the columns and their types. A record contains one or more rows,
// quoted as in RFC 4180. Unquoted empty fields are null.

import { BadRecordError } from './bad-record.js'
import type { MappingOptions } from './options.js'
import type { RowMapper } from './row-mapper.js'

const utf8 = new TextDecoder('utf-8', { fatal: true })
const longText = /^[+-]?[0-9]+$/
const doubleText = /^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$/

/** The rows of a record; null for an unquoted empty field. */
export function csvRows(bytes: Uint8Array, delimiter: string): (string | null)[][] {
  let text: string
  try {
    text = utf8.decode(bytes)
  } catch {
    throw new BadRecordError('a string is not UTF-8')
  }
  const rows: (string | null)[][] = []
  let row: (string | null)[] = []
  for (let at = 0; at < text.length; ) {
    const field = fieldAt(text, at, delimiter)
    row.push(field.text)
    at = field.end
    if (text[at] === delimiter) {
      at++
      if (at < text.length) continue
      row.push(null)
    } else at += text.startsWith('\r\n', at) ? 2 : 1
    rows.push(row)
    row = []
  }
  return rows
}

function fieldAt(text: string, start: number, delimiter: string): { text: string | null; end: number } {
  if (text[start] !== '"') {
    let end = start
    while (end < text.length && text[end] !== delimiter && text[end] !== '\n' && !text.startsWith('\r\n', end)) end++
    return { text: end === start ? null : text.slice(start, end), end }
  }
  let value = ''
  for (let at = start + 1; ; ) {
    const quote = text.indexOf('"', at)
    if (quote < 0) throw new BadRecordError(`invalid CSV: unterminated quote [offset=${start}]`)
    value += text.slice(at, quote)
    if (text[quote + 1] !== '"') {
      const next = text[quote + 1]
      if (next !== undefined && next !== delimiter && next !== '\n' && !text.startsWith('\r\n', quote + 1)) {
        throw new BadRecordError(`invalid CSV: characters after a closing quote [offset=${quote + 1}]`)
      }
      return { text: value, end: quote + 1 }
    }
    value += '"'
    at = quote + 2
  }
}

/** Passes the fields of one row to the mapper. */
export function readCsvRow(mapper: RowMapper, row: readonly (string | null)[], options: MappingOptions): void {
  const { csvColumns, valuePrefix } = options
  if (row.length > csvColumns.length) {
    throw new BadRecordError(`the row has ${row.length} fields, the connector has ${csvColumns.length} columns`)
  }
  csvColumns.forEach(({ name, type }, index) => {
    const path = valuePrefix === '' ? name : `${valuePrefix}_${name}`
    const text = row[index] ?? null
    if (text === null) mapper.missing(path)
    else readField(mapper, path, type, text)
  })
}

function readField(mapper: RowMapper, path: string, type: string, text: string): void {
  const wrong = (): BadRecordError => new BadRecordError(`not a ${type}: '${text}' [field=${path}]`)
  switch (type) {
    case 'long':
      if (!longText.test(text)) throw wrong()
      mapper.number(path, text.replace(/^\+/, ''))
      return
    case 'double':
      if (!doubleText.test(text) && text !== 'NaN') throw wrong()
      if (mapper.field(path).action === 'value') mapper.double(path, Number(text))
      else mapper.number(path, text)
      return
    case 'boolean':
      if (!/^(true|false|t|f|1|0)$/i.test(text)) throw wrong()
      mapper.boolean(path, /^[t1]/i.test(text))
      return
    case 'timestamp':
      if (longText.test(text)) mapper.time(path, text)
      else mapper.timeText(path, text)
      return
    case 'symbol':
      mapper.symbol(path, text)
      return
    default:
      mapper.text(path, text)
  }
}
