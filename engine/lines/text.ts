// Texts of line protocol: bytes of shared memory to strings and to bytes without escapes.

const backslash = 92
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
const lenient = new TextDecoder('utf-8', { ignoreBOM: true })

/** Bytes from start to end without their escapes; a copy, never a view. */
export function copyUnescaped(bytes: Uint8Array, start: number, end: number): Uint8Array {
  const first = bytes.subarray(start, end).indexOf(backslash)
  if (first < 0) return bytes.slice(start, end)
  const copy = new Uint8Array(end - start)
  let length = 0
  for (let at = start; at < end; at++) {
    if (bytes[at] === backslash && at + 1 < end) at++
    copy[length++] = bytes[at] as number
  }
  return copy.subarray(0, length)
}

/** The same as a string; what is not UTF-8 shows as replacement characters. */
export function textOf(bytes: Uint8Array, start: number, end: number): string {
  return lenient.decode(copyUnescaped(bytes, start, end))
}

/** The text as a string, or undefined when it is not valid UTF-8. */
export function utf8Text(text: Uint8Array): string | undefined {
  try {
    return decoder.decode(text)
  } catch {
    return undefined
  }
}

/** Whether the bytes are valid UTF-8. */
export function isUtf8(text: Uint8Array): boolean {
  if (text.every((byte) => byte < 128)) return true
  return utf8Text(text) !== undefined
}
