// Compresses and decompresses the LZ4 block format (Parquet's LZ4_RAW).
//
//   sequence   token u8 (literal length << 4 | match length - 4) | more literal length bytes while 255 |
//              literals | offset u16 | more match length bytes while 255
//   end        the last sequence has literals only; the last 5 bytes are literals, and no match begins in the last 12

import { copyLiterals } from './copy'
import { clearMatches, matchAt, matchFrom, matchLength, nextMatch, noteMatch } from './matches'

@inline
function putLength(target: usize, rest: usize): usize {
  while (rest >= 255) {
    store<u8>(target++, 255)
    rest -= 255
  }
  store<u8>(target, <u8>rest)
  return target + 1
}

/** Returns the bytes written, or 0 if they exceed `limit`. `table`: 64 KiB of scratch. */
export function lz4Compress(source: usize, bytes: i32, target: usize, limit: i32, table: usize): i32 {
  const end = source + <usize>bytes
  const bound = target + <usize>limit
  let out = target
  let anchor = source
  if (bytes > 12) {
    const last = end - 12
    clearMatches(table)
    let at = source + 1
    while (nextMatch(source, at, anchor, last, end - 5, table)) {
      at = matchAt
      const length = matchLength
      const literals = at - anchor
      if (out + literals + (literals >> 7) + (length >> 7) + 16 > bound) return 0
      const token = out++
      let high: usize = 15
      if (literals >= 15) out = putLength(out, literals - 15)
      else high = literals
      copyLiterals(out, anchor, literals)
      out += literals
      store<u16>(out, <u16>(at - matchFrom))
      out += 2
      let low: usize = 15
      if (length >= 19) out = putLength(out, length - 19)
      else low = length - 4
      store<u8>(token, <u8>((high << 4) | low))
      at += length
      anchor = at
      if (at <= last) noteMatch(source, at - 2, table)
    }
  }
  const literals = end - anchor
  if (out + literals + (literals >> 7) + 16 > bound) return 0
  if (literals >= 15) {
    store<u8>(out, 0xf0)
    out = putLength(out + 1, literals - 15)
  } else store<u8>(out++, <u8>(literals << 4))
  memory.copy(out, anchor, literals)
  return <i32>(out + literals - target)
}

/** Returns the bytes written, which are `targetBytes`, or -1 if the input is not a whole block of that size. */
export function lz4Decompress(source: usize, bytes: i32, target: usize, targetBytes: i32): i32 {
  const end = source + <usize>bytes
  const bound = target + <usize>targetBytes
  let out = target
  while (source < end) {
    const token = <usize>load<u8>(source++)
    let literals = token >> 4
    if (literals == 15) {
      let byte: usize = 255
      while (byte == 255) {
        if (source >= end) return -1
        byte = <usize>load<u8>(source++)
        literals += byte
      }
    }
    if (literals > end - source || literals > bound - out) return -1
    copyLiterals(out, source, literals)
    out += literals
    source += literals
    if (source >= end) break
    if (source + 2 > end) return -1
    const offset = <usize>load<u16>(source)
    source += 2
    let length = (token & 15) + 4
    if (length == 19) {
      let byte: usize = 255
      while (byte == 255) {
        if (source >= end) return -1
        byte = <usize>load<u8>(source++)
        length += byte
      }
    }
    if (offset == 0 || offset > out - target || length > bound - out) return -1
    let from = out - offset
    let i: usize = 0
    if (offset >= 16) {
      // Copies up to 15 bytes too many: the target is writable for 64 bytes after its end.
      for (; i < length; i += 16) v128.store(out + i, v128.load(from + i))
    } else {
      if (offset < 8) {
        for (; i < 8; i++) store<u8>(out + i, load<u8>(from + i))
        // The bytes repeat at each multiple of the offset, so a multiple of at least 8 is used.
        from -= (0x76546670 >> (offset << 2)) & 15
      }
      for (; i < length; i += 8) store<u64>(out + i, load<u64>(from + i))
    }
    out += length
  }
  return out == bound ? targetBytes : -1
}
