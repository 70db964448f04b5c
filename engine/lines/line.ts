// One line of line protocol, as the general parser reads it. Objects are reused from line to line.
//
//   line       := table (',' tag)* (' ' field (',' field)*)? (' ' timestamp)? '\r'? '\n'
//   tag        := name '=' text
//   field      := name '=' (text | '"' characters '"' | '=' type byte, binary value)
//   timestamp  := '-'? digits ('m' | 't' | 'n')?
//
// A backslash takes the special meaning of the next byte. A value's type is told by its last byte (`i`, `t`, ...).

/** What a value says of its type. Names are those that error messages show. */
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
  /** `name=` without anything. */
  empty: 'NULL',
} as const

export type ProtocolKind = keyof typeof protocolTypes

/** One tag or field. Which members count is told by `kind`. */
export interface LineEntity {
  name: string
  kind: ProtocolKind
  /** tag, string: the text without escapes; long256, decimal, and every number: the text as written without its suffix. */
  text: Uint8Array
  /** float; boolean as 1 or 0. */
  number: number
  /** integer, micros, nanos. */
  integer: bigint
  /** array: lengths by dimension; its doubles lie unaligned in `text`. */
  shape: number[]
  /** First byte of the value in the memory, and the byte behind it; the kernel's templates are learnt from it. */
  start: number
  end: number
}

/** Unit of a timestamp that carries a suffix; 'request' without one. */
type TimestampUnit = 'request' | 'micros' | 'nanos'

export interface ParsedLine {
  /** 'blank' also stands for a comment. */
  outcome: 'row' | 'blank' | 'error'
  /** Of outcome 'error': what is wrong. */
  error: string
  table: string
  entities: LineEntity[]
  /** Entities of this line; later ones are left over. */
  count: number
  hasTimestamp: boolean
  timestamp: bigint
  timestampUnit: TimestampUnit
  /** Where the next line begins. */
  next: number
  /** The line was only cut by the end of the bytes: it has no newline. */
  open: boolean
}

export function newParsedLine(): ParsedLine {
  return {
    outcome: 'blank',
    error: '',
    table: '',
    entities: [],
    count: 0,
    hasTimestamp: false,
    timestamp: 0n,
    timestampUnit: 'request',
    next: 0,
    open: false,
  }
}

/** The next free entity of the line, reset. */
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
