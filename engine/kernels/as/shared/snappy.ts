// Compresses to Snappy's raw format.
//
//   block      uncompressed size, varint | elements
//   literal    (length - 1) << 2 | 0; lengths from 60 on in the 1 to 4 bytes that follow | the bytes
//   copy       (length - 1) << 2 | 2 | offset u16, of 1 to 64 bytes

import { copyLiterals } from './copy'
import { clearMatches, matchAt, matchFrom, matchLength, nextMatch, noteMatch } from './matches'

@inline
function putLiteral(out: usize, from: usize, length: usize): usize {
  const n = length - 1
  if (n < 60) store<u8>(out++, <u8>(n << 2))
  else if (n < 256) {
    store<u8>(out, 60 << 2)
    store<u8>(out, <u8>n, 1)
    out += 2
  } else if (n < 65536) {
    store<u8>(out, 61 << 2)
    store<u16>(out + 1, <u16>n)
    out += 3
  } else {
    store<u8>(out, 63 << 2)
    store<u32>(out + 1, <u32>n)
    out += 5
  }
  copyLiterals(out, from, length)
  return out + length
}

@inline
function putCopies(out: usize, offset: usize, length: usize): usize {
  while (length > 0) {
    const n = length > 64 ? 64 : length
    store<u8>(out, <u8>(((n - 1) << 2) | 2))
    store<u16>(out + 1, <u16>offset)
    out += 3
    length -= n
  }
  return out
}

/** Returns the bytes written, at most bytes + bytes / 6 + 32. `table`: 64 KiB of scratch. */
export function snappyCompress(source: usize, bytes: i32, target: usize, table: usize): i32 {
  const end = source + <usize>bytes
  let out = target
  let rest = <u32>bytes
  while (rest >= 128) {
    store<u8>(out++, <u8>(rest | 128))
    rest >>= 7
  }
  store<u8>(out++, <u8>rest)
  let anchor = source
  if (bytes > 16) {
    const last = end - 12
    clearMatches(table)
    let at = source + 1
    while (nextMatch(source, at, anchor, last, end, table)) {
      at = matchAt
      if (at > anchor) out = putLiteral(out, anchor, at - anchor)
      out = putCopies(out, at - matchFrom, matchLength)
      at += matchLength
      anchor = at
      if (at <= last) noteMatch(source, at - 2, table)
    }
  }
  if (end > anchor) out = putLiteral(out, anchor, end - anchor)
  return <i32>(out - target)
}
