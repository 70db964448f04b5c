// Parses and formats lists of strings in the syntax of PostgreSQL's arrays, `{a,"b c",NULL}`. This server has no arrays
// of strings as a column type; it stores them as strings of this form.
// https://www.postgresql.org/docs/15/arrays.html#ARRAYS-IO

import type { Value } from './value.js'

/** `{a,"b c"}` */
export function textArray(elements: readonly (string | null)[]): string {
  return `{${elements.map((element) => (element === null ? 'NULL' : arrayElement(element))).join(',')}}`
}

/** Formats one element, quoted where necessary. */
export function arrayElement(text: string): string {
  const plain = text !== '' && !/[{}",\\\s]/.test(text) && text.toUpperCase() !== 'NULL'
  return plain ? text : `"${text.replace(/["\\]/g, '\\$&')}"`
}

/** Elements of `{a,"b c",NULL}`; null when the text is not a list. */
export function textElements(text: string): (string | null)[] | null {
  if (!text.startsWith('{') || !text.endsWith('}')) return null
  const inner = text.slice(1, -1)
  if (inner.trim() === '') return []
  const elements: (string | null)[] = []
  const pattern = /\s*(?:"((?:[^"\\]|\\.)*)"|((?:[^,"\\]|\\.)*))\s*(?:,|$)/gsy
  while (pattern.lastIndex < inner.length || inner.endsWith(',')) {
    const match = pattern.exec(inner)
    if (match === null) return null
    const [, quoted, plain = ''] = match
    const word = plain.trim()
    const isNull = quoted === undefined && word.toUpperCase() === 'NULL'
    elements.push(isNull ? null : (quoted ?? word).replace(/\\(.)/gs, '$1'))
    if (pattern.lastIndex >= inner.length) break
  }
  return elements
}

/** Also accepts `1 2 3`, the form of catalog vectors. */
export function elementsOf(value: Value | undefined): (string | null)[] {
  const text = String(value)
  return textElements(text) ?? text.split(/\s+/).filter((word) => word !== '')
}
