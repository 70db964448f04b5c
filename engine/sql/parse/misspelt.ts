// Suggests a keyword for a statement that begins with a misspelt one. The parser reads `selec 1` as a query of a table,
// so the error would otherwise name a missing table.

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

/** Damerau-Levenshtein distance (optimal string alignment). */
function distance(a: string, b: string): number {
  let [before, last] = [[] as number[], Array.from({ length: b.length + 1 }, (_, index) => index)]
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const isSame = a[i - 1] === b[j - 1]
      const steps = [(last[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, (last[j - 1] ?? 0) + (isSame ? 0 : 1)]
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) steps.push((before[j - 2] ?? 0) + 1)
      row.push(Math.min(...steps))
    }
    before = last
    last = row
  }
  return last[b.length] ?? 0
}
