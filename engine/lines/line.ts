// The type of a parsed line of line protocol, which the general parser fills, and the replacement of characters that
// names cannot contain. Objects are reused from line to line.
//
//   line       := table (',' tag)* (' ' field (',' field)*)? (' ' timestamp)? '\r'? '\n'
//   tag        := name '=' text
//   field      := name '=' (text | '"' characters '"' | '=' type byte, binary value)
//   timestamp  := '-'? digits ('m' | 't' | 'n')?
//
// A backslash escapes the next byte. The last byte of a value determines its type (`i`, `t`, ...).

import { nonNull } from '../base/assert.js'
import { isColumnName, replaceForbidden } from '../storage/schema/names.js'

/** Types of values in the protocol, with the names that error messages use. */
export const protocolTypes = {
  tag: 'TAG',
  string: 'STRING',
  integer: 'INTEGER',
  float: 'FLOAT',
  boolean: 'BOOLEAN',
  micros: 'TIMESTAMP',
  nanos: 'TIMESTAMP',
  long256: 'LONG256',
  decimal: 'DECIMAL',
  array: 'ARRAY',
  /** `name=` without a value. */
  empty: 'NULL',
} as const

export type ProtocolKind = keyof typeof protocolTypes

/** One tag or field. `kind` determines which members are set. */
export interface LineEntity {
  name: string
  kind: ProtocolKind
  /**
   * tag, string: the unescaped bytes; long256, decimal and every number: the bytes as written, without the suffix.
   */
  text: Uint8Array
  /** float; boolean as 1 or 0. */
  number: number
  /** integer, micros, nanos. */
  integer: bigint
  /** array: lengths by dimension; its doubles are stored unaligned in `text`. */
  shape: number[]
  /** Address of the value's first byte and of the byte after it, from which the kernel's templates are learnt. */
  start: number
  end: number
}

/** Unit of a timestamp with a suffix; 'request' without one. */
type TimestampUnit = 'request' | 'micros' | 'nanos'

export interface ParsedLine {
  /** 'blank' includes comments. */
  outcome: 'row' | 'blank' | 'error'
  /** Message for the outcome 'error'. */
  error: string
  table: string
  /** Address after the table's name. */
  nameEnd: number
  entities: LineEntity[]
  /** Number of valid entities; later ones are left over from other lines. */
  count: number
  hasTimestamp: boolean
  timestamp: bigint
  timestampUnit: TimestampUnit
  /** Where the next line starts. */
  next: number
  /** The line has no newline because the bytes end. */
  open: boolean
}

export function newParsedLine(): ParsedLine {
  return {
    outcome: 'blank',
    error: '',
    table: '',
    nameEnd: 0,
    entities: [],
    count: 0,
    hasTimestamp: false,
    timestamp: 0n,
    timestampUnit: 'request',
    next: 0,
    open: false,
  }
}

/** Resets and returns the next free entity of the line. */
export function addEntity(line: ParsedLine, name: string): LineEntity {
  const reused = line.entities[line.count++]
  if (reused !== undefined) {
    reused.name = name
    return reused
  }
  const fresh: LineEntity = {
    name,
    kind: 'empty',
    text: new Uint8Array(0),
    number: 0,
    integer: 0n,
    shape: [],
    start: 0,
    end: 0,
  }
  line.entities.push(fresh)
  return fresh
}

/**
 * Replaces characters that names of tables and columns cannot contain (setting line.name.replacement): other systems
 * have metrics such as `0.005`, `km/h` and `node.cpu`. Returns an error message when two names become the same, because
 * the second value would be lost; otherwise an empty string.
 */
export function replaceNames(line: ParsedLine, replacement: string): string {
  line.table = replaceForbidden(line.table, 'table', replacement)
  if (hasColumnNames(line)) return ''
  const originals = new Map<string, string>()
  for (let index = 0; index < line.count; index++) {
    const entity = nonNull(line.entities[index])
    const original = entity.name
    entity.name = replaceForbidden(original, 'column', replacement)
    const key = entity.name.toLowerCase()
    const other = originals.get(key)
    if (other === undefined) originals.set(key, original)
    else if (other.toLowerCase() !== original.toLowerCase()) {
      return `table: ${line.table}; the names ${other} and ${original} both become ${entity.name}`
    }
  }
  return ''
}

function hasColumnNames(line: ParsedLine): boolean {
  for (let index = 0; index < line.count; index++) {
    if (!isColumnName(nonNull(line.entities[index]).name)) return false
  }
  return true
}
