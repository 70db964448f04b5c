// Options of COPY over the connection, in PostgreSQL's words.

import type { ParsedStatement } from '../../engine/engine.js'
import { PgError } from './sqlstate.js'

type Copy = Extract<ParsedStatement['statement'], { kind: 'copy' }>

export interface CopyOptions {
  readonly format: 'text' | 'csv' | 'binary'
  readonly header: boolean
  readonly delimiter: string
  /** Stands for NULL. */
  readonly nullText: string
  readonly quote: string
}

/** Known, and without meaning here: rows are stored at once. */
const ignored: ReadonlySet<string> = new Set(['freeze', 'oids'])

export function copyOptions({ options }: Copy): CopyOptions {
  const said = new Map<string, Copy['options'][number]>()
  for (const option of options) {
    if (said.has(option.name)) throw new PgError('42601', 'conflicting or redundant options', option.position)
    said.set(option.name, option)
  }
  const textOf = (name: string, otherwise: string): string => said.get(name)?.value ?? otherwise
  const format = formatOf(said.get('format'))
  const csv = format === 'csv'
  for (const [name, { position }] of said) {
    if (known.has(name) || ignored.has(name)) continue
    throw new PgError('0A000', `option "${name}" of COPY is not supported`, position)
  }
  const made: CopyOptions = {
    format,
    header: isTrue(textOf('header', 'false')),
    delimiter: delimiterOf(textOf('delimiter', csv ? ',' : '\t'), said.get('delimiter')?.position ?? -1),
    nullText: textOf('null', csv ? '' : '\\N'),
    quote: textOf('quote', '"'),
  }
  if (made.quote !== '"' || textOf('escape', '"') !== '"') {
    throw new PgError('0A000', 'COPY takes the quote " only, doubled within a value', said.get('quote')?.position ?? -1)
  }
  if (/^match$/i.test(textOf('header', ''))) {
    throw new PgError('0A000', 'HEADER MATCH of COPY is not supported', said.get('header')?.position ?? -1)
  }
  const encoding = textOf('encoding', 'utf8')
  if (!/^(utf-?8|unicode|sql_ascii)$/i.test(encoding)) {
    throw new PgError('0A000', `COPY takes UTF8 only [encoding=${encoding}]`, said.get('encoding')?.position ?? -1)
  }
  return made
}

const known: ReadonlySet<string> = new Set(['format', 'header', 'delimiter', 'null', 'quote', 'escape', 'encoding'])

function formatOf(option: Copy['options'][number] | undefined): CopyOptions['format'] {
  const format = option?.value.toLowerCase() ?? 'text'
  if (format === 'text' || format === 'csv' || format === 'binary') return format
  throw new PgError('22023', `COPY format "${format}" not recognized`, option?.position ?? -1)
}

function isTrue(value: string): boolean {
  return /^(true|on|1)$/i.test(value)
}

function delimiterOf(value: string, position: number): string {
  const delimiter = value === '\\t' ? '\t' : value
  if (/^[\x20-\x7e\t]$/.test(delimiter) && !/[\\"\n\r]/.test(delimiter)) return delimiter
  throw new PgError('22023', 'COPY delimiter must be a single one-byte character', position)
}
