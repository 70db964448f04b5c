// What a statement that begins with no known word may have been meant as: `selec 1` is read as a table of that name.

const statementWords = [
  ...['select', 'insert', 'update', 'delete', 'create', 'alter', 'drop', 'truncate', 'explain', 'describe', 'show'],
  ...['rename', 'values', 'grant', 'revoke', 'vacuum', 'cancel', 'copy', 'with', 'begin', 'commit', 'rollback'],
]

/** A sentence for the error of a statement; null when its first word is known, or is like none. */
export function meantStatement(sql: string, position: number): string | null {
  const word = /^(?:\s|--[^\n]*\n|\/\*[\s\S]*?\*\/|;)*([a-z]{3,12})(?![\w"'.])/i
    .exec(sql.slice(position))?.[1]
    ?.toLowerCase()
  if (word === undefined || statementWords.includes(word)) return null
  const meant = statementWords.find((known) => isLike(word, known))
  return meant === undefined ? null : `did you mean ${meant.toUpperCase()}?`
}

/** One letter is missing, too much, another one, or has changed places with its neighbour; of long words two. */
function isLike(word: string, known: string): boolean {
  const distanceMax = known.length > 5 ? 2 : 1
  return (
    Math.abs(word.length - known.length) <= distanceMax && word[0] === known[0] && distance(word, known) <= distanceMax
  )
}

/** Of Damerau and Levenshtein, with neighbours that change places. */
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
