// Reference implementation of LZ4 blocks in plain TypeScript. Its compressor finds other matches than the WebAssembly
// kernel's, but each decompresses the other's blocks.

const hashBits = 14

/** Bytes written, or 0 when they may exceed the limit. */
export function lz4Compress(u8: Uint8Array, source: number, bytes: number, target: number, limit: number): number {
  const end = source + bytes
  const table = new Int32Array(1 << hashBits).fill(-1)
  let out = target
  let anchor = source
  for (let at = source; at <= end - 13; ) {
    const slot = Math.imul(wordAt(u8, at), 2_654_435_761) >>> (32 - hashBits)
    const candidate = source + table[slot]!
    const known = table[slot]! >= 0
    table[slot] = at - source
    if (!known || candidate + 65_535 < at || wordAt(u8, candidate) !== wordAt(u8, at)) {
      at++
      continue
    }
    let length = 4
    while (at + length < end - 5 && u8[at + length] === u8[candidate + length]) length++
    const literals = at - anchor
    if (out + literals + (literals >>> 7) + (length >>> 7) + 16 > target + limit) return 0
    out = putSequence(u8, out, { anchor, literals, offset: at - candidate, length })
    at += length
    anchor = at
  }
  const literals = end - anchor
  if (out + literals + (literals >>> 7) + 16 > target + limit) return 0
  return putSequence(u8, out, { anchor, literals, offset: 0, length: 0 }) - target
}

interface Sequence {
  readonly anchor: number
  readonly literals: number
  /** 0 in the last sequence, which has no match. */
  readonly offset: number
  readonly length: number
}

function putSequence(u8: Uint8Array, target: number, { anchor, literals, offset, length }: Sequence): number {
  let out = target
  const match = offset === 0 ? 0 : length - 4
  u8[out++] = (Math.min(literals, 15) << 4) | Math.min(match, 15)
  out = putRest(u8, out, literals)
  u8.copyWithin(out, anchor, anchor + literals)
  out += literals
  if (offset === 0) return out
  u8[out++] = offset & 255
  u8[out++] = offset >>> 8
  return putRest(u8, out, match)
}

function putRest(u8: Uint8Array, target: number, length: number): number {
  if (length < 15) return target
  let out = target
  let rest = length - 15
  for (; rest >= 255; rest -= 255) u8[out++] = 255
  u8[out++] = rest
  return out
}

function wordAt(u8: Uint8Array, at: number): number {
  return (u8[at]! | (u8[at + 1]! << 8) | (u8[at + 2]! << 16) | (u8[at + 3]! << 24)) >>> 0
}

/** targetBytes, or -1 when the input is not a block of that size. */
export function lz4Decompress(
  u8: Uint8Array,
  source: number,
  bytes: number,
  target: number,
  targetBytes: number,
): number {
  const input = { at: source, end: source + bytes }
  const bound = target + targetBytes
  let out = target
  while (input.at < input.end) {
    const token = u8[input.at++]!
    const literals = lengthOf(u8, input, token >>> 4)
    if (literals < 0 || literals > input.end - input.at || literals > bound - out) return -1
    u8.copyWithin(out, input.at, input.at + literals)
    out += literals
    input.at += literals
    if (input.at >= input.end) break
    if (input.at + 2 > input.end) return -1
    const offset = u8[input.at]! | (u8[input.at + 1]! << 8)
    input.at += 2
    const rest = lengthOf(u8, input, token & 15)
    if (rest < 0 || offset === 0 || offset > out - target || rest + 4 > bound - out) return -1
    for (const end = out + rest + 4; out < end; out++) u8[out] = u8[out - offset]!
  }
  return out === bound ? targetBytes : -1
}

/** The length that a half token begins; -1 when it does not end. */
function lengthOf(u8: Uint8Array, input: { at: number; readonly end: number }, half: number): number {
  if (half < 15) return half
  let length = half
  for (;;) {
    if (input.at >= input.end) return -1
    const byte = u8[input.at++]!
    length += byte
    if (byte < 255) return length
  }
}
