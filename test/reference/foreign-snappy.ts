// Reference implementation of Snappy decompression (raw format) in plain TypeScript.

export function snappyDecompress(
  u8: Uint8Array,
  source: number,
  bytes: number,
  target: number,
  targetBytes: number,
): number {
  const end = source + bytes
  const bound = target + targetBytes
  const byteAt = (at: number): number => u8[at]!
  let at = source
  let size = 0
  for (let shift = 0; ; shift += 7) {
    if (at >= end || shift > 28) return -1
    const byte = byteAt(at++)
    size += (byte & 127) * 2 ** shift
    if (byte < 128) break
  }
  if (size !== targetBytes) return -1
  let out = target
  while (at < end) {
    const tag = byteAt(at++)
    const kind = tag & 3
    const extra = kind === 0 ? Math.max(0, (tag >>> 2) - 59) : kind === 3 ? 4 : kind
    if (at + extra > end) return -1
    let rest = 0
    for (let i = 0; i < extra; i++) rest += byteAt(at + i) * 2 ** (i * 8)
    at += extra
    const length = kind === 0 && extra > 0 ? rest + 1 : kind === 1 ? ((tag >>> 2) & 7) + 4 : (tag >>> 2) + 1
    if (length > bound - out) return -1
    if (kind === 0) {
      if (length > end - at) return -1
      u8.copyWithin(out, at, at + length)
      at += length
    } else {
      const offset = kind === 1 ? (tag >>> 5) * 256 + rest : rest
      if (offset === 0 || offset > out - target) return -1
      for (let i = 0; i < length; i++) u8[out + i] = byteAt(out + i - offset)
    }
    out += length
  }
  return out === bound ? targetBytes : -1
}
