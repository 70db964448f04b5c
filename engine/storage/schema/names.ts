// Checks names of tables and columns, and replaces characters that they cannot contain. The rules are those of the line
// protocol client libraries, which reject invalid names before they send them.

import { nameCharactersMax } from '../../base/limits.js'

/**
 * Never allowed in a name; the last one replaces invalid UTF-8. Only table names may contain inner dots, and dashes.
 */
const forbidden = '?,\'"\\/:)(+*%~\u007f\ufeff\ufffd'
const lastControl = 0x0f

export function isTableName(name: string): boolean {
  if (!fits(name) || hasForbidden(name, forbidden)) return false
  if (name.startsWith(' ') || name.endsWith(' ')) return false
  return !name.startsWith('.') && !name.endsWith('.') && !name.includes('..')
}

export function isColumnName(name: string): boolean {
  return fits(name) && !hasForbidden(name, `${forbidden}.-`)
}

/** Replaces every character that is not allowed in a name of this kind by `replacement`. */
export function replaceForbidden(name: string, kind: 'table' | 'column', replacement: string): string {
  const never = kind === 'table' ? forbidden : `${forbidden}.-`
  let replaced = ''
  for (const character of name) replaced += hasForbidden(character, never) ? replacement : character
  // In table names, dots and blanks are allowed inside, but no two dots in a row.
  return kind === 'column' ? replaced : replaced.replace(/^[. ]|[. ]$|\.(?=\.)/g, replacement)
}

function hasForbidden(name: string, characters: string): boolean {
  for (let index = 0; index < name.length; index++) {
    if (name.charCodeAt(index) <= lastControl || characters.includes(name.charAt(index))) return true
  }
  return false
}

function fits(name: string): boolean {
  return name.length > 0 && name.length <= nameCharactersMax
}
