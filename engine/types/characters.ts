// String functions that count characters (code points) where JavaScript counts UTF-16 units: an emoji is one
// character of two units. Strings without such characters take a fast path.

import { SqlError } from '../base/errors.js'
import { valueBytesMax } from '../base/limits.js'

const paired = /[\ud800-\udbff]/

/** The characters of a string; the string itself if each is one unit. */
function charactersOf(text: string): string | readonly string[] {
  return paired.test(text) ? Array.from(text) : text
}

export function characterCount(text: string): number {
  return charactersOf(text).length
}

/** Like String.slice, in characters. */
export function sliceCharacters(text: string, from: number, to?: number): string {
  const characters = charactersOf(text)
  return typeof characters === 'string' ? characters.slice(from, to) : characters.slice(from, to).join('')
}

/** Position from 1; 0: not found. */
export function placeOf(text: string, wanted: string): number {
  const at = text.indexOf(wanted)
  return at < 0 ? 0 : characterCount(text.slice(0, at)) + 1
}

/** A negative count drops that many characters at the other end. */
export function leftPart(value: string, count: number): string {
  return sliceCharacters(value, 0, count >= 0 ? count : Math.max(0, characterCount(value) + count))
}

export function rightPart(value: string, count: number): string {
  return count === 0 ? '' : sliceCharacters(value, -count)
}

export function padText(value: string, length: number, fill: string, atStart: boolean): string | null {
  if (length < 0) return null
  if (length > valueBytesMax) throw new SqlError('padded text is too long', 0)
  if (fill === '') return null
  const missing = length - characterCount(value)
  if (missing <= 0) return sliceCharacters(value, 0, length)
  const width = characterCount(fill)
  const padding = sliceCharacters(fill.repeat(Math.ceil(missing / width)), 0, missing)
  return atStart ? padding + value : value + padding
}

export function substring(value: string, start: number, length: number): string | null {
  if (length < 0) throw new SqlError('negative substring length is not allowed', 0)
  const end = start - 1 + length
  if (end < 0 && length > 0) return null
  const from = Math.max(0, start - 1)
  return sliceCharacters(value, from, Math.max(from, end))
}

/** Trims any of the characters from the ends. */
export function cutCharacters(text: string, characters: string, start: boolean, end: boolean): string {
  const all = charactersOf(text)
  const gone = new Set(charactersOf(characters))
  let from = 0
  let to = all.length
  while (start && from < to && gone.has(all[from] ?? '')) from++
  while (end && to > from && gone.has(all[to - 1] ?? '')) to--
  return typeof all === 'string' ? all.slice(from, to) : all.slice(from, to).join('')
}
