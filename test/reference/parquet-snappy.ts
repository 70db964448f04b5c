// A Snappy compressor in plain TypeScript, for tests: it emits literals only, which every decoder reads.

/** Bytes written. */
export function snappyLiterals(u8: Uint8Array, source: number, bytes: number, target: number): number {
  let out = target
  let rest = bytes
  for (; rest >= 128; rest = Math.floor(rest / 128)) u8[out++] = (rest & 127) | 128
  u8[out++] = rest
  if (bytes === 0) return out - target
  u8[out++] = 63 << 2
  for (let byte = 0; byte < 4; byte++) u8[out++] = ((bytes - 1) >>> (byte * 8)) & 255
  u8.copyWithin(out, source, source + bytes)
  return out + bytes - target
}
