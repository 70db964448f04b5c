// Suggests the known name that a misspelt one probably means: the nearest by edit distance, or the only one that begins
// with it. Used for settings, tables, columns, functions and keywords.

/** One mistake is allowed per this many characters, and at least one. */
const charactersPerMistake = 5

/** For a shorter name, anything would be near. */
const suggestionCharactersMin = 3
/** More names would delay the error. */
const suggestionNamesMax = 10_000

/** The hint of an error about an unknown name: the nearest known one, or the only one that begins with it; else empty. */
export function suggestion(name: string, known: readonly string[]): string {
  if (name.length < suggestionCharactersMin || known.length > suggestionNamesMax) return ''
  const begun = new Set(known.filter((other) => other.toLowerCase().startsWith(name.toLowerCase())))
  const meant = nearest(name, known) ?? (begun.size === 1 ? [...begun][0] : undefined)
  return meant === undefined ? '' : `did you mean ${meant}?`
}

/** Counts missing, extra, different and swapped characters, ignoring case. Null: no name is near. */
export function nearest(name: string, known: readonly string[]): string | null {
  let found: string | null = null
  let best = Math.max(1, Math.floor(name.length / charactersPerMistake)) + 1
  for (const candidate of known) {
    if (Math.abs(candidate.length - name.length) >= best) continue
    const mistakes = distance(name.toLowerCase(), candidate.toLowerCase())
    if (mistakes >= best) continue
    found = candidate
    best = mistakes
  }
  return found
}

/** Damerau-Levenshtein distance by optimal string alignment: each row needs the two before it. */
export function distance(x: string, y: string): number {
  let [before, last] = [[] as number[], Array.from({ length: y.length + 1 }, (_, index) => index)]
  for (let i = 1; i <= x.length; i++) {
    const row = [i]
    for (let j = 1; j <= y.length; j++) {
      const same = x[i - 1] === y[j - 1] ? 0 : 1
      let least = Math.min((row[j - 1] ?? 0) + 1, (last[j] ?? 0) + 1, (last[j - 1] ?? 0) + same)
      const isExchange = i > 1 && j > 1 && x[i - 1] === y[j - 2] && x[i - 2] === y[j - 1]
      if (isExchange) least = Math.min(least, (before[j - 2] ?? 0) + 1)
      row.push(least)
    }
    before = last
    last = row
  }
  return last[y.length] ?? 0
}
