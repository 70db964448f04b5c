// Strings of line protocol: converts bytes to strings and removes escapes.
//
// A backslash escapes only characters that would end the string, or another backslash. Before any other byte it is
// literal: writers such as Telegraf send `C:\Users\new` unescaped.

import { assert } from '../base/assert.js'

const backslash = 92
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
const lenient = new TextDecoder('utf-8', { ignoreBOM: true })

/** Characters that a backslash escapes: in names, symbols and unquoted values, and between quotes. */
export const escapable = {
  plain: escapes('\\, =\n\r'),
  quoted: escapes('\\"\n\r'),
} as const

export type Escapable = (typeof escapable)[keyof typeof escapable]

/** By byte: 1 if a backslash before it is an escape. */
function escapes(characters: string): Uint8Array {
  const table = new Uint8Array(256)
  for (const character of characters) table[character.charCodeAt(0)] = 1
  return table
}

/** Unescaped copy of the bytes from start to end; never a view. */
export function copyUnescaped(bytes: Uint8Array, start: number, end: number, escaped: Escapable): Uint8Array {
  assert(start <= end, 'P2: a string does not end before its beginning')
  const first = bytes.subarray(start, end).indexOf(backslash)
  if (first < 0) return bytes.slice(start, end)
  const copy = new Uint8Array(end - start)
  let length = 0
  for (let at = start; at < end; at++) {
    if (bytes[at] === backslash && at + 1 < end && escaped[bytes[at + 1]!] === 1) at++
    copy[length++] = bytes[at]!
  }
  return copy.subarray(0, length)
}

/** A name, symbol or unquoted value as a string; invalid UTF-8 becomes replacement characters. */
export function textOf(bytes: Uint8Array, start: number, end: number): string {
  return lenient.decode(copyUnescaped(bytes, start, end, escapable.plain))
}

/** Decodes UTF-8; undefined when it is invalid. */
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
