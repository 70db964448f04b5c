// Replaces characters that table and column names cannot contain, in a parsed line. Metrics of other systems have such
// names (`0.005`, `km/h`, `node.cpu`). With the setting line.name.replacement, these lines are stored under the changed
// names instead of rejected. Returns an error if two names of a line become equal.

import { nonNull } from '../base/assert.js'
import { isColumnName, replaceForbidden } from '../storage/schema/names.js'
import type { ParsedLine } from './line.js'

/**
 * Replaces invalid characters in the line's names. Returns an error message when two names become the same, because
 * the second value would be lost; otherwise an empty string.
 */
export function replaceNames(line: ParsedLine, replacement: string): string {
  line.table = replaceForbidden(line.table, 'table', replacement)
  if (hasColumnNames(line)) return ''
  const originals = new Map<string, string>()
  for (let index = 0; index < line.count; index++) {
    const entity = nonNull(line.entities[index])
    const original = entity.name
    entity.name = replaceForbidden(original, 'column', replacement)
    const key = entity.name.toLowerCase()
    const other = originals.get(key)
    if (other === undefined) originals.set(key, original)
    else if (other.toLowerCase() !== original.toLowerCase()) {
      return `table: ${line.table}; the names ${other} and ${original} both become ${entity.name}`
    }
  }
  return ''
}

function hasColumnNames(line: ParsedLine): boolean {
  for (let index = 0; index < line.count; index++) {
    if (!isColumnName(nonNull(line.entities[index]).name)) return false
  }
  return true
}
