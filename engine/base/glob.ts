// Matches strings, such as file names, against patterns: `*` is any string, `?` one character, `[a-c]` one of a set,
// `[!a-c]` one of all others. Takes linear time for each star, since only the last star is ever retried.

interface Part {
  readonly kind: 'star' | 'any' | 'set'
  readonly negated: boolean
  readonly ranges: readonly (readonly [string, string])[]
}

const star: Part = { kind: 'star', negated: false, ranges: [] }
const any: Part = { kind: 'any', negated: false, ranges: [] }

export function matchesGlob(text: string, pattern: string): boolean {
  const parts = partsOf(pattern)
  const characters = [...text]
  let at = 0
  let part = 0
  let retry: { readonly part: number; at: number } | null = null
  while (at < characters.length) {
    const next = parts[part]
    if (next?.kind === 'star') retry = { part: ++part, at }
    else if (next !== undefined && accepts(next, characters[at] as string)) {
      at++
      part++
    } else if (retry !== null) {
      at = ++retry.at
      part = retry.part
    } else return false
  }
  return parts.slice(part).every(({ kind }) => kind === 'star')
}

function accepts({ kind, negated, ranges }: Part, character: string): boolean {
  return kind === 'any' || ranges.some(([low, high]) => low <= character && character <= high) !== negated
}

function partsOf(pattern: string): Part[] {
  const characters = [...pattern]
  const parts: Part[] = []
  for (let at = 0; at < characters.length; at++) {
    const character = characters[at] as string
    const close = character === '[' ? characters.indexOf(']', at + 2) : -1
    if (character === '*') parts.push(star)
    else if (character === '?') parts.push(any)
    else if (close > 0) {
      parts.push(setOf(characters.slice(at + 1, close)))
      at = close
    } else parts.push({ kind: 'set', negated: false, ranges: [[character, character]] })
  }
  return parts
}

function setOf(written: readonly string[]): Part {
  const negated = written[0] === '!'
  const ranges: [string, string][] = []
  for (let at = negated ? 1 : 0; at < written.length; at++) {
    const low = written[at] as string
    const isRange = written[at + 1] === '-' && at + 2 < written.length
    ranges.push([low, isRange ? (written[at + 2] as string) : low])
    if (isRange) at += 2
  }
  return { kind: 'set', negated, ranges }
}
