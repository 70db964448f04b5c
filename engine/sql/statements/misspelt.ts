// Suggests a keyword for a statement that begins with a misspelt one. The parser reads `selec 1` as a query of a table,
// so the error would otherwise name a missing table.

import { distance } from '../../base/nearest.js'

const statementWords = [
  ...['select', 'insert', 'update', 'delete', 'create', 'alter', 'drop', 'truncate', 'explain', 'describe', 'show'],
  ...['rename', 'values', 'grant', 'revoke', 'vacuum', 'cancel', 'copy', 'with', 'begin', 'commit', 'rollback'],
]

/** A suggestion to append to the error; null if the first word is a keyword or similar to none. */
export function suggestStatement(sql: string, position: number): string | null {
  const word = /^(?:\s|--[^\n]*\n|\/\*[\s\S]*?\*\/|;)*([a-z]{3,12})(?![\w"'.])/i
    .exec(sql.slice(position))?.[1]
    ?.toLowerCase()
  if (word === undefined || statementWords.includes(word)) return null
  const meant = statementWords.find((known) => isLike(word, known))
  return meant === undefined ? null : `did you mean ${meant.toUpperCase()}?`
}

/**
 * Whether the words differ by one edit: a missing, additional, replaced or swapped letter. Long words may differ by
 * two.
 */
function isLike(word: string, known: string): boolean {
  const distanceMax = known.length > 5 ? 2 : 1
  return (
    Math.abs(word.length - known.length) <= distanceMax && word[0] === known[0] && distance(word, known) <= distanceMax
  )
}
