// BYTEA in text.

/** `\x0102`, or the older form with octal escapes. */
export function byteaOf(text: string): Uint8Array {
  if (text.startsWith('\\x')) return new Uint8Array(Buffer.from(text.slice(2), 'hex'))
  const unescaped = text.replace(/\\(\\|[0-7]{3})/g, (_, code: string) =>
    code === '\\' ? '\\' : String.fromCharCode(Number.parseInt(code, 8)),
  )
  return new Uint8Array(Buffer.from(unescaped, 'latin1'))
}
