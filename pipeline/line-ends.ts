// Where lines of line protocol end. A newline ends a line unless a backslash hides it (a text of several lines), or it
// lies inside a binary value of protocol version 2 or 3:
//
//   double   '=' '=' 0x10 | 8 bytes
//   array    '=' '=' 0x0E | element type u8 (10 = double) | dimensions u8 | a u32 length for each | the doubles
//   decimal  '=' '=' 0x17 | scale u8 | bytes u8 | the unscaled number, most significant byte first
//
// (The first '=' divides name and value, the second says "binary".) Text has no bytes below 0x20 but line ends and tabs,
// so looking for the type byte is as fast as memchr, and only blocks that hold an array, the mark of a value that may
// reach their last newline or a backslash right before it take the careful path.

const newline = 0x0a
const equals = 0x3d
const backslash = 0x5c
const doubleMark = 0x10
const arrayMark = 0x0e
const decimalMark = 0x17
const markBytes = 3
const doubleBytes = 8
/** Of a decimal with its scale and length. */
const decimalBytesMax = 257

/** Position behind the last complete line of the bytes, which begin at a line's start; 0 when no line is complete. */
export function lastLineEnd(bytes: Buffer): number {
  const at = bytes.lastIndexOf(newline)
  if (at < 0) return 0
  const doubtful =
    bytes[at - 1] === backslash ||
    markNear(bytes, at, doubleMark, doubleBytes) ||
    markNear(bytes, at, decimalMark, decimalBytesMax) ||
    nextMark(bytes, arrayMark, 0) < Number.POSITIVE_INFINITY
  return doubtful ? walkLines(bytes, bytes.length) : at + 1
}

/** Position behind the first complete line at or behind `atLeast`; 0 when there is none. */
export function firstLineEnd(bytes: Buffer, atLeast: number): number {
  return walkLines(bytes, atLeast)
}

/** Whether the newline may lie inside such a value; it does not when the mark is part of an earlier value's bytes. */
function markNear(bytes: Buffer, at: number, type: number, bytesMax: number): boolean {
  const from = Math.max(2, at - bytesMax)
  return from < at && nextMark(bytes.subarray(0, at), type, from) < Number.POSITIVE_INFINITY
}

/** Position of the type byte of the next mark at or behind `from`; infinity when there is none. */
function nextMark(bytes: Buffer, type: number, from: number): number {
  for (let at = bytes.indexOf(type, from); at >= 0; at = bytes.indexOf(type, at + 1)) {
    if (at >= 2 && bytes[at - 1] === equals && bytes[at - 2] === equals) return at
  }
  return Number.POSITIVE_INFINITY
}

/** Walks from line to line over all binary values; stops at the first line end at or behind `enough`. */
function walkLines(bytes: Buffer, enough: number): number {
  let end = 0
  let from = 0
  let double = -1
  let array = -1
  let decimal = -1
  while (end < enough) {
    const at = bytes.indexOf(newline, from)
    if (at < 0) break
    // Looked for again only when passed: each byte is searched once for each kind of mark.
    if (double < from) double = nextMark(bytes, doubleMark, from)
    if (array < from) array = nextMark(bytes, arrayMark, from)
    if (decimal < from) decimal = nextMark(bytes, decimalMark, from)
    const value = Math.min(double, array, decimal)
    if (value > at) {
      if (!isHidden(bytes, from, at)) end = at + 1
      from = at + 1
      continue
    }
    const behind = behindValue(bytes, value)
    if (behind > bytes.length) break
    from = behind
  }
  return end
}

/** Whether a backslash hides the newline: a run of them hides each other by twos. Bytes before `from` are no text. */
function isHidden(bytes: Buffer, from: number, newlineAt: number): boolean {
  let at = newlineAt
  while (at > from && bytes[at - 1] === backslash) at--
  return (newlineAt - at) % 2 === 1
}

/** Position behind the binary value whose type byte is at `mark`; beyond the bytes when it is not complete. */
function behindValue(bytes: Buffer, mark: number): number {
  if (bytes[mark] === doubleMark) return mark + 1 + doubleBytes
  if (bytes[mark] === decimalMark) return mark + markBytes + (bytes[mark + 2] ?? bytes.length)
  const dimensions = bytes[mark + 2]
  if (dimensions === undefined) return bytes.length + 1
  const data = mark + markBytes + dimensions * 4
  if (data > bytes.length) return data
  let elements = dimensions === 0 ? 0 : 1
  for (let at = mark + markBytes; at < data; at += 4) elements *= bytes.readUInt32LE(at)
  return data + elements * doubleBytes
}
