// Parses CREATE TABLE, INDEX and VIEW of SQLite. The only module that uses sqlite-parser. Tables that this parser does
// not support (generated columns, STRICT, non-ASCII names) are read by the rules of SQLite's documentation: for each
// column a name, then the words of the type up to the first constraint. The parser lower-cases names, so those of
// tables, columns and views are read from the text itself.

import { createRequire } from 'node:module'
import { readName, skipBlanks, statementEnd } from './source.js'

/** Type affinity of a column, by its declared type. */
type Affinity = 'integer' | 'real' | 'text' | 'numeric' | 'blob'

export interface SourceColumn {
  readonly name: string
  /** In upper case; empty: none. */
  readonly declared: string
  readonly affinity: Affinity
  /** A generated column: rows do not contain its value. */
  readonly generated: boolean
}

export interface SourceTable {
  readonly name: string
  readonly columns: readonly SourceColumn[]
}

export type SchemaStatement =
  | { readonly kind: 'table'; readonly table: SourceTable }
  | { readonly kind: 'index'; readonly table: string; readonly columns: readonly string[] }
  | { readonly kind: 'view'; readonly name: string; readonly query: string }
  | { readonly kind: 'other'; readonly what: string }

interface Parsed {
  readonly statement: readonly ParsedStatement[]
}

interface ParsedStatement {
  readonly format?: string
  readonly definition?: readonly {
    readonly variant: string
    readonly datatype?: { readonly variant: string; readonly args?: unknown }
  }[]
  readonly on?: { readonly name: string; readonly columns: readonly ParsedIndexed[] }
}

interface ParsedIndexed {
  readonly variant: string
  readonly name?: string
  readonly expression?: ParsedIndexed
}

const parse = createRequire(import.meta.url)('sqlite-parser') as (sql: string) => Parsed

/** Parses a statement that starts with CREATE. */
export function readSchemaStatement(text: string): SchemaStatement {
  const head = /^create\s+(temp\s+|temporary\s+)?(unique\s+)?(virtual\s+)?(\w+)\s*(if\s+not\s+exists\b)?/i.exec(text)
  const what = `${head?.[3] === undefined ? '' : 'virtual '}${(head?.[4] ?? 'statement').toLowerCase()}`
  const bytes = Buffer.from(text)
  const from = Buffer.byteLength(head?.[0] ?? '')
  if (what === 'table') return readTable(text, bytes, from)
  if (what === 'index') return readIndex(text)
  if (what === 'view') return readView(bytes, from)
  return { kind: 'other', what }
}

/** Reads a name, optionally qualified by a schema. */
function qualifiedName(bytes: Buffer, from: number): { readonly text: string; readonly end: number } | null {
  const name = readName(bytes, skipBlanks(bytes, from, true))
  if (name === null || name === undefined) return null
  const dot = skipBlanks(bytes, name.end, true)
  return bytes[dot] === 0x2e ? (readName(bytes, skipBlanks(bytes, dot + 1, true)) ?? null) : name
}

function readTable(text: string, bytes: Buffer, from: number): SchemaStatement {
  const name = qualifiedName(bytes, from)
  if (name === null) return { kind: 'other', what: 'table without a name' }
  const open = skipBlanks(bytes, name.end, true)
  if (bytes[open] !== 0x28) return { kind: 'other', what: 'table without a list of columns' }
  const known = parsedTypes(text)
  const columns: SourceColumn[] = []
  for (const definition of definitions(bytes, open + 1)) {
    const column = readColumn(definition)
    if (column === null) continue
    const declared = known?.[columns.length] ?? column.declared
    columns.push({ ...column, declared, affinity: affinityOf(declared) })
  }
  return { kind: 'table', table: { name: name.text, columns } }
}

/** Column types according to sqlite-parser, in upper case; undefined when it cannot parse the statement. */
function parsedTypes(text: string): readonly string[] | undefined {
  try {
    const definition = parse(text).statement[0]?.definition
    return definition
      ?.filter(({ variant }) => variant === 'column')
      .map(({ datatype }) => (datatype?.variant ?? '').toUpperCase())
  } catch {
    return undefined
  }
}

/** Splits the content of the outermost parentheses at commas. */
function definitions(bytes: Buffer, from: number): string[] {
  const strings: string[] = []
  let depth = 0
  let begin = from
  for (let at = from; at < bytes.length; ) {
    at = skipBlanks(bytes, at, true)
    const byte = bytes[at]
    if (byte === undefined) break
    if (depth === 0 && (byte === 0x2c || byte === 0x29)) {
      strings.push(bytes.toString('utf8', begin, at))
      begin = at + 1
      if (byte === 0x29) break
    }
    if (byte === 0x28) depth++
    if (byte === 0x29) depth--
    const name = readName(bytes, at)
    at = name === null || name === undefined ? at + 1 : name.end
  }
  return strings
}

const tableConstraint = /^(constraint|primary|unique|check|foreign)$/i
const columnConstraint = /^(constraint|primary|not|null|unique|check|default|collate|references|generated|as)$/i

/** Null for a table constraint. */
function readColumn(text: string): Omit<SourceColumn, 'affinity'> | null {
  const bytes = Buffer.from(`${text} `)
  const name = readName(bytes, skipBlanks(bytes, 0, true))
  if (name === null || name === undefined) return null
  const rest = bytes.toString('utf8', name.end).replace(/--.*$|\/\*[\s\S]*?\*\//gm, ' ')
  const bare = /^\s*\w/.test(text)
  if (bare && tableConstraint.test(name.text)) return null
  const words: string[] = []
  for (const word of rest.replace(/\([^)]*\)/g, ' ').split(/\s+/)) {
    if (word === '' || columnConstraint.test(word)) {
      if (word !== '') break
      continue
    }
    words.push(word.replace(/^["'`[]|["'`\]]$/g, ''))
  }
  const outside = rest.replace(/'(?:[^']|'')*'|"(?:[^"]|"")*"/g, ' ')
  const generated = /\bgenerated\s+always\b/i.test(outside) || /\bas\s*\(/i.test(outside)
  return { name: name.text, declared: words.join(' ').toUpperCase(), generated }
}

/** SQLite's affinity rules, in order. */
function affinityOf(declared: string): Affinity {
  if (/INT/.test(declared)) return 'integer'
  if (/CHAR|CLOB|TEXT/.test(declared)) return 'text'
  if (declared === '' || /BLOB/.test(declared)) return 'blob'
  return /REAL|FLOA|DOUB/.test(declared) ? 'real' : 'numeric'
}

function readIndex(text: string): SchemaStatement {
  try {
    const on = parse(text).statement[0]?.on
    if (on === undefined) return { kind: 'other', what: 'index' }
    const columns = on.columns.map((column) => (column.variant === 'order' ? column.expression : column)?.name ?? '')
    return { kind: 'index', table: on.name, columns }
  } catch {
    return { kind: 'other', what: 'index' }
  }
}

function readView(bytes: Buffer, from: number): SchemaStatement {
  const name = qualifiedName(bytes, from)
  if (name === null) return { kind: 'other', what: 'view without a name' }
  const at = skipBlanks(bytes, name.end, true)
  const as = readName(bytes, at)
  if (as?.text.toLowerCase() !== 'as') return { kind: 'other', what: 'view with a list of columns' }
  const end = statementEnd(bytes, as.end, true)
  const query = bytes.toString('utf8', as.end, end).trim().replace(/;$/, '').trim()
  return { kind: 'view', name: name.text, query }
}
