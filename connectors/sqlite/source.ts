// Tokenises the bytes of a dump: blanks, names and the ends of statements. A function that needs more bytes returns -1
// (readName(): null). The functions are stateless, so the caller then calls them again with more bytes.
//
//   name       word | "text" | `text` | [text] | 'text', quotes doubled within
//   statement  ends at a semicolon outside of quotes and comments; CREATE TRIGGER at `; END ;`

const quote = 0x27
const doubleQuote = 0x22
const backQuote = 0x60
const semicolon = 0x3b

export interface Name {
  readonly text: string
  readonly end: number
}

/** Offset after blanks and comments. With `last`, the end of the bytes ends a comment, too. */
export function skipBlanks(bytes: Buffer, from: number, last = false): number {
  let at = from
  for (;;) {
    const byte = bytes[at]
    if (byte === undefined) return last ? bytes.length : -1
    if (isBlank(byte)) at++
    else if (byte === 0x2d) {
      if (bytes[at + 1] !== 0x2d) return at + 1 >= bytes.length && !last ? -1 : at
      const end = bytes.indexOf(0x0a, at)
      if (end < 0) return last ? bytes.length : -1
      at = end + 1
    } else if (byte === 0x2f) {
      if (bytes[at + 1] !== 0x2a) return at + 1 >= bytes.length && !last ? -1 : at
      const end = bytes.indexOf('*/', at + 2, 'latin1')
      if (end < 0) return last ? bytes.length : -1
      at = end + 2
    } else return at
  }
}

export function isBlank(byte: number): boolean {
  return byte === 0x20 || (byte >= 0x09 && byte <= 0x0d)
}

function isWordByte(byte: number | undefined): boolean {
  if (byte === undefined) return false
  const character = byte | 0x20
  return (
    (character >= 0x61 && character <= 0x7a) ||
    (byte >= 0x30 && byte <= 0x39) ||
    byte === 0x5f ||
    byte === 0x24 ||
    byte >= 0x80
  )
}

/** Undefined when there is no name at this position; null when more bytes are needed. */
export function readName(bytes: Buffer, from: number): Name | undefined | null {
  const first = bytes[from]
  if (first === undefined) return null
  if (first === 0x5b) {
    const end = bytes.indexOf(0x5d, from)
    return end < 0 ? null : { text: bytes.toString('utf8', from + 1, end), end: end + 1 }
  }
  if (first === doubleQuote || first === backQuote || first === quote) {
    const end = quotedEnd(bytes, from, first)
    if (end < 0) return null
    const mark = String.fromCharCode(first)
    return { text: bytes.toString('utf8', from + 1, end - 1).replaceAll(mark + mark, mark), end }
  }
  let end = from
  while (isWordByte(bytes[end])) end++
  if (end === from) return undefined
  return end === bytes.length ? null : { text: bytes.toString('utf8', from, end), end }
}

/** Offset after the closing quote. */
export function quotedEnd(bytes: Buffer, from: number, mark: number): number {
  for (let at = from + 1; ; at += 2) {
    at = bytes.indexOf(mark, at)
    if (at < 0 || at + 1 >= bytes.length) return at >= 0 && at + 1 === bytes.length ? -1 : -1
    if (bytes[at + 1] !== mark) return at + 1
  }
}

/** Offset after the semicolon of the statement at `from`. With `last`, the end of the bytes ends it, too. */
export function statementEnd(bytes: Buffer, from: number, last = false): number {
  const trigger = /^create\s+(temp\s+|temporary\s+)?trigger\b/i.test(bytes.toString('latin1', from, from + 64))
  let afterSemicolon = false
  let afterEnd = false
  for (let at = from; ; ) {
    at = skipBlanks(bytes, at)
    const byte = at < 0 ? undefined : bytes[at]
    if (byte === undefined) return last ? bytes.length : -1
    if (byte === semicolon) {
      at++
      if (!trigger || afterEnd) return at
      afterSemicolon = true
      continue
    }
    const begin = at
    at = tokenEnd(bytes, at, byte)
    if (at < 0) return last ? bytes.length : -1
    afterEnd = afterSemicolon && at - begin === 3 && /^end$/i.test(bytes.toString('latin1', begin, at))
    afterSemicolon = false
  }
}

function tokenEnd(bytes: Buffer, from: number, first: number): number {
  if (first === quote || first === doubleQuote || first === backQuote) return quotedEnd(bytes, from, first)
  if (first === 0x5b) return bytes.indexOf(0x5d, from) + 1 || -1
  let end = from
  while (isWordByte(bytes[end])) end++
  return end === from ? from + 1 : end
}

/** Number of line ends between two offsets. */
export function linesBetween(bytes: Buffer, from: number, to: number): number {
  let lines = 0
  for (let at = bytes.indexOf(0x0a, from); at >= 0 && at < to; at = bytes.indexOf(0x0a, at + 1)) lines++
  return lines
}
