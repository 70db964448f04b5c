// Parses the options of COPY FROM STDIN and TO STDOUT, with the syntax and the errors of PostgreSQL.

import type { ParsedStatement } from '../../../engine/engine.js'
import { type CopyEncoding, copyEncoding } from '../protocol/copy-encodings.js'
import { PgError } from '../protocol/sqlstate.js'

type Copy = Extract<ParsedStatement['statement'], { kind: 'copy' }>
type Option = Copy['options'][number]

export interface CopyOptions {
  readonly format: 'text' | 'csv' | 'binary'
  readonly header: boolean
  /** The header must match the column names. */
  readonly matches: boolean
  readonly delimiter: string
  /** The string that represents NULL. */
  readonly nullText: string
  readonly quote: string
  readonly quoteEscape: string
  /** Null: UTF-8. */
  readonly encoding: CopyEncoding | null
  readonly forceQuote: ColumnChoice
  readonly forceNull: ColumnChoice
  readonly forceNotNull: ColumnChoice
}

/** A choice of columns by name. */
export interface ColumnChoice {
  readonly all: boolean
  readonly names: readonly string[]
  readonly position: number
}

/** Accepted without effect: rows are stored at once. */
const ignored: ReadonlySet<string> = new Set(['freeze', 'oids'])
const known: ReadonlySet<string> = new Set([
  ...['format', 'header', 'delimiter', 'null', 'quote', 'escape', 'encoding'],
  ...['force_quote', 'force_null', 'force_not_null'],
])

/** Boolean options, which are true when no value follows. */
const mayBeBare: ReadonlySet<string> = new Set(['header', ...ignored])

/** `clientEncoding` applies when the statement specifies none. */
export function copyOptions({ options, direction }: Copy, clientEncoding: CopyEncoding | null): CopyOptions {
  const given = givenOptions(options)
  const textOf = (name: string, otherwise: string): string => given.get(name)?.value ?? otherwise
  const format = formatOf(given.get('format'))
  const csv = format === 'csv'
  requireFormats(given, format, direction)
  const header = given.get('header')
  const encoding = given.get('encoding')
  if (format === 'binary' && clientEncoding !== null)
    throw new PgError('0A000', 'strings of binary COPY are UTF-8, but client_encoding is another encoding')
  const quote = textOf('quote', '"')
  const made: CopyOptions = {
    ...{ format, quote, header: headerOf(header), matches: /^match$/i.test(header?.value ?? '') },
    delimiter: delimiterOf(textOf('delimiter', csv ? ',' : '\t'), csv, given.get('delimiter')?.position ?? -1),
    nullText: textOf('null', csv ? '' : '\\N'),
    quoteEscape: textOf('escape', quote),
    encoding: encoding === undefined ? clientEncoding : copyEncoding(encoding.value, encoding.position),
    forceQuote: choiceOf(given.get('force_quote')),
    forceNull: choiceOf(given.get('force_null')),
    forceNotNull: choiceOf(given.get('force_not_null')),
  }
  requireDistinct(made, given)
  if (made.matches && direction === 'to') {
    throw new PgError('0A000', 'cannot use "match" with HEADER in COPY TO', header?.position ?? -1)
  }
  return made
}

/** Whether each column, by position, is chosen. */
export function chosenColumns(choice: ColumnChoice, columns: readonly { readonly name: string }[]): boolean[] {
  const found = columns.map(() => choice.all)
  for (const name of choice.names) {
    const index = columns.findIndex((column) => column.name.toLowerCase() === name.toLowerCase())
    if (index < 0) throw new PgError('42P10', `column "${name}" not referenced by COPY`, choice.position)
    found[index] = true
  }
  return found
}

function givenOptions(options: readonly Option[]): Map<string, Option> {
  const given = new Map<string, Option>()
  for (const option of options) {
    if (given.has(option.name)) throw new PgError('42601', 'conflicting or redundant options', option.position)
    if (!known.has(option.name) && !ignored.has(option.name)) {
      throw new PgError('42601', `option "${option.name}" not recognized`, option.position)
    }
    if (option.values.length === 0 && !mayBeBare.has(option.name)) {
      throw new PgError('42601', `${option.name} requires a parameter`, option.position)
    }
    given.set(option.name, option)
  }
  return given
}

function requireFormats(given: ReadonlyMap<string, Option>, format: string, direction: Copy['direction']): void {
  for (const name of ['delimiter', 'null', 'header']) {
    const option = given.get(name)
    if (format !== 'binary' || option === undefined) continue
    const code = name === 'header' ? '0A000' : '42601'
    throw new PgError(code, `cannot specify ${name.toUpperCase()} in BINARY mode`, option.position)
  }
  for (const name of ['quote', 'escape', 'force_quote', 'force_null', 'force_not_null']) {
    const option = given.get(name)
    if (option === undefined) continue
    const shown = name.replaceAll('_', ' ')
    if (format !== 'csv') throw new PgError('0A000', `COPY ${shown} available only in CSV mode`, option.position)
    const other = name === 'force_quote' ? 'to' : name.startsWith('force') ? 'from' : direction
    if (direction === other) continue
    const keyword = other === 'to' ? 'TO' : 'FROM'
    throw new PgError('0A000', `COPY ${shown} only available using COPY ${keyword}`, option.position)
  }
}

function requireDistinct(options: CopyOptions, given: ReadonlyMap<string, Option>): void {
  const { format, quote, quoteEscape, delimiter, nullText } = options
  const refuse = (name: string, message: string, code = '0A000'): never => {
    throw new PgError(code, message, given.get(name)?.position ?? -1)
  }
  if (/[\r\n]/.test(nullText)) {
    refuse('null', 'COPY null representation cannot use newline or carriage return', '22023')
  }
  if (format === 'binary') return
  if (nullText.includes(delimiter)) refuse('null', 'COPY delimiter must not appear in the NULL specification')
  if (format === 'text') return
  if (!isByte(quote)) refuse('quote', 'COPY quote must be a single one-byte character')
  if (!isByte(quoteEscape)) refuse('escape', 'COPY escape must be a single one-byte character')
  if (delimiter === quote) refuse('quote', 'COPY delimiter and quote must be different', '22023')
  if (nullText.includes(quote)) refuse('null', 'CSV quote character must not appear in the NULL specification')
}

function formatOf(option: Option | undefined): CopyOptions['format'] {
  const format = option?.value.toLowerCase() ?? 'text'
  if (format === 'text' || format === 'csv' || format === 'binary') return format
  throw new PgError('22023', `COPY format "${format}" not recognized`, option?.position ?? -1)
}

function headerOf(option: Option | undefined): boolean {
  if (option === undefined || /^(false|off|0)$/i.test(option.value)) return false
  if (/^(true|on|1|match)$/i.test(option.value)) return true
  throw new PgError('42601', 'header requires a Boolean value or "match"', option.position)
}

function isByte(value: string): boolean {
  const byte = value.charCodeAt(0)
  return value.length === 1 && byte > 0 && byte < 128 && byte !== 10 && byte !== 13
}

function delimiterOf(value: string, csv: boolean, position: number): string {
  const delimiter = value === '\\t' ? '\t' : value
  if (/^[\r\n]$/.test(delimiter)) {
    throw new PgError('22023', 'COPY delimiter cannot be newline or carriage return', position)
  }
  if (!isByte(delimiter)) throw new PgError('0A000', 'COPY delimiter must be a single one-byte character', position)
  if (csv || !/[\\.a-z0-9]/.test(delimiter)) return delimiter
  throw new PgError('22023', `COPY delimiter cannot be "${delimiter}"`, position)
}

function choiceOf(option: Option | undefined): ColumnChoice {
  const values = option?.values ?? []
  const all = values.length === 1 && values[0] === '*'
  return { all, names: all ? [] : values, position: option?.position ?? -1 }
}
