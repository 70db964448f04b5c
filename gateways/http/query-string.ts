// Parses a query string: decodes `+` and %XX to bytes and bytes to UTF-8. Unlike URLSearchParams it reports invalid
// encodings instead of replacing them, so that a statement runs as it was sent or not at all.

const percent = 0x25
const plus = 0x2b
const space = 0x20

export type QueryParameters = ReadonlyMap<string, string>

type QueryStringProblem = 'bad escape' | 'bad UTF-8'

export interface ParsedQueryString {
  /** The last value of each name. A value that cannot be decoded is kept as its bytes. */
  readonly parameters: QueryParameters
  readonly problems: ReadonlyMap<string, QueryStringProblem>
}

const strictUtf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Takes the string as node:http provides it: one character per byte. */
export function parseQueryString(text: string): ParsedQueryString {
  const parameters = new Map<string, string>()
  const problems = new Map<string, QueryStringProblem>()
  for (const pair of text.split('&')) {
    if (pair === '') continue
    const equals = pair.indexOf('=')
    const name = decode(equals < 0 ? pair : pair.slice(0, equals))
    const value = decode(equals < 0 ? '' : pair.slice(equals + 1))
    parameters.set(name.text, value.text)
    const problem = name.problem ?? value.problem
    if (problem === null) problems.delete(name.text)
    else problems.set(name.text, problem)
  }
  return { parameters, problems }
}

const plainAscii = /^[\x20-\x24\x26-\x2a\x2c-\x7e]*$/
/** Unescaped non-ASCII bytes, which appear here as Latin-1 characters. */
const beyondAscii = /[\x80-\xff]/

function decode(text: string): { text: string; problem: QueryStringProblem | null } {
  if (plainAscii.test(text)) return { text, problem: null }
  try {
    if (!beyondAscii.test(text)) return { text: decodeURIComponent(text.replaceAll('+', ' ')), problem: null }
  } catch {
    // The slow path below finds out what is wrong.
  }
  return decodeBytes(text)
}

function decodeBytes(text: string): { text: string; problem: QueryStringProblem | null } {
  const encoded = Buffer.from(text, 'latin1')
  const bytes = unescapeBytes(encoded)
  if (bytes === null) return { text, problem: 'bad escape' }
  try {
    return { text: strictUtf8.decode(bytes), problem: null }
  } catch {
    return { text: bytesAsCharacters(bytes), problem: 'bad UTF-8' }
  }
}

/**
 * For error messages: maps non-ASCII bytes to the characters U+FF80 to U+FFFF, so that each stays distinguishable.
 */
function bytesAsCharacters(bytes: Buffer): string {
  return bytes.toString('latin1').replace(/[\x80-\xff]/g, (byte) => String.fromCharCode(0xff00 | byte.charCodeAt(0)))
}

/** Decodes in place; null when an escape is invalid. */
function unescapeBytes(bytes: Buffer): Buffer | null {
  let to = 0
  for (let from = 0; from < bytes.length; from++) {
    const byte = bytes[from]!
    if (byte === percent) {
      const value = hexDigit(bytes[from + 1]) * 16 + hexDigit(bytes[from + 2])
      if (Number.isNaN(value)) return null
      bytes[to++] = value
      from += 2
    } else bytes[to++] = byte === plus ? space : byte
  }
  return bytes.subarray(0, to)
}

function hexDigit(byte: number | undefined): number {
  if (byte === undefined) return Number.NaN
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30
  const character = byte | 0x20
  return character >= 0x61 && character <= 0x66 ? character - 0x57 : Number.NaN
}
