// Names of other systems' metrics (`0.005`, `km/h`, `node.cpu`) hold characters that names of tables and columns cannot
// have. Where a setting says so they are replaced, and the line is stored instead of refused.

import { isColumnName, replaceForbidden } from '../storage/schema/names.js'
import type { LineEntity, ParsedLine } from './line.js'

/**
 * Replaces what the line's names cannot hold. Returns what is wrong, or nothing: two names that become one would lose a
 * value, since of duplicate names the first one counts.
 */
export function replaceNames(line: ParsedLine, replacement: string): string {
  line.table = replaceForbidden(line.table, 'table', replacement)
  if (hasColumnNames(line)) return ''
  const originals = new Map<string, string>()
  for (let index = 0; index < line.count; index++) {
    const entity = line.entities[index] as LineEntity
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
    if (!isColumnName((line.entities[index] as LineEntity).name)) return false
  }
  return true
}
