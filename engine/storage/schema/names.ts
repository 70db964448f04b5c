// Which names tables and columns may have. The rules are those of the field's clients, which refuse the same names
// before they send them.

import { nameCharactersMax } from '../../base/limits.js'

/** Never part of a name; the last one stands for bytes that are no UTF-8. A table name may hold dots inside and dashes. */
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

/** The name with `replacement` for every character that a name of its kind cannot have. */
export function replaceForbidden(name: string, kind: 'table' | 'column', replacement: string): string {
  const never = kind === 'table' ? forbidden : `${forbidden}.-`
  let replaced = ''
  for (const character of name) replaced += hasForbidden(character, never) ? replacement : character
  // Dots and blanks are fine within a table's name only, and no two dots follow each other.
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
