// Validates UTF-8 in short byte ranges.

/** Whether the bytes are well-formed UTF-8 (no overlong forms, no surrogates, at most U+10FFFF). */
export function validUtf8(p: usize, bytes: i32): bool {
  const end = p + <usize>bytes
  while (p < end) {
    const c = <u32>load<u8>(p)
    if (c < 0x80) {
      p++
      continue
    }
    const n: u32 = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2
    if (c < 0xc2 || c > 0xf4 || p + <usize>n > end) return false
    const d = <u32>load<u8>(p, 1)
    if ((d & 0xc0) != 0x80) return false
    if ((c == 0xe0 && d < 0xa0) || (c == 0xed && d > 0x9f) || (c == 0xf0 && d < 0x90) || (c == 0xf4 && d > 0x8f)) return false
    if (n > 2 && (load<u8>(p, 2) & 0xc0) != 0x80) return false
    if (n > 3 && (load<u8>(p, 3) & 0xc0) != 0x80) return false
    p += <usize>n
  }
  return true
}
