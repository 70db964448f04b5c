// Which names tables and columns may have. The rules are those of the field's clients, which refuse the same names
// before they send them.

import { nameBytesMax } from '../base/limits.js'

const encoder = new TextEncoder()
/** Never part of a table name. A dot may stand inside it. */
const forbiddenInTable = /[?,'"\\/:)(+*%~\u0000-\u000f\u007f\ufeff]/
const forbiddenInColumn = /[?.,'"\\/:)(+\-*%~\u0000-\u000f\u007f\ufeff]/

export function isTableName(name: string): boolean {
  if (!fits(name) || forbiddenInTable.test(name)) return false
  if (name.startsWith(' ') || name.endsWith(' ')) return false
  return !name.startsWith('.') && !name.endsWith('.') && !name.includes('..')
}

export function isColumnName(name: string): boolean {
  return fits(name) && !forbiddenInColumn.test(name)
}

function fits(name: string): boolean {
  if (name.length === 0 || name.length > nameBytesMax) return false
  return name.length * 3 <= nameBytesMax || encoder.encode(name).length <= nameBytesMax
}
