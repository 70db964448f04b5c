// Which names tables and columns may have. The rules are those of the field's clients, which refuse the same names
// before they send them.

import { nameBytesMax } from '../base/limits.js'

const encoder = new TextEncoder()
/** Never part of a name. A table name may hold dots inside and dashes. */
const forbidden = '?,\'"\\/:)(+*%~\u007f\ufeff'
const lastControl = 0x0f

export function isTableName(name: string): boolean {
  if (!fits(name) || hasForbidden(name, forbidden)) return false
  if (name.startsWith(' ') || name.endsWith(' ')) return false
  return !name.startsWith('.') && !name.endsWith('.') && !name.includes('..')
}

export function isColumnName(name: string): boolean {
  return fits(name) && !hasForbidden(name, `${forbidden}.-`)
}

function hasForbidden(name: string, characters: string): boolean {
  for (let index = 0; index < name.length; index++) {
    if (name.charCodeAt(index) <= lastControl || characters.includes(name.charAt(index))) return true
  }
  return false
}

function fits(name: string): boolean {
  if (name.length === 0 || name.length > nameBytesMax) return false
  return name.length * 3 <= nameBytesMax || encoder.encode(name).length <= nameBytesMax
}
