// Builds each generated query as two texts: one for this server and an equivalent one for DuckDB. In this server NULL
// equals NULL and a comparison with NULL is never unknown, so DuckDB's text has additional conditions where standard
// SQL would give a different result.

export type PairType = 'int' | 'long' | 'double' | 'text' | 'time' | 'truth'

export interface Pair {
  readonly ours: string
  readonly duck: string
  readonly type: PairType
}

/** `$` stands for the parts in order, in both texts. */
export function pair(type: PairType, parts: readonly Pair[], ours: string, duck = ours): Pair {
  return { type, ours: filled(ours, parts, 'ours'), duck: filled(duck, parts, 'duck') }
}

/** `$1` to `$9` name a part; they may be repeated. */
function filled(text: string, parts: readonly Pair[], side: 'ours' | 'duck'): string {
  return text.replace(/\$([1-9])/g, (whole, digit) => parts[Number(digit) - 1]?.[side] ?? whole)
}

export function same(type: PairType, text: string): Pair {
  return { type, ours: text, duck: text }
}

/** Parts divided by commas, for both. */
export function listed(parts: readonly { readonly ours: string; readonly duck: string }[]): {
  ours: string
  duck: string
} {
  return { ours: parts.map(({ ours }) => ours).join(', '), duck: parts.map(({ duck }) => duck).join(', ') }
}

const comparisons: Readonly<Record<string, string>> = {
  '=': '($1 is not distinct from $2)',
  '<>': '($1 is distinct from $2)',
  '<': 'coalesce($1 < $2, false)',
  '>': 'coalesce($1 > $2, false)',
  '<=': 'coalesce($1 <= $2, $1 is null and $2 is null)',
  '>=': 'coalesce($1 >= $2, $1 is null and $2 is null)',
}

export const comparisonOperators = Object.keys(comparisons)

export function compared(operator: string, left: Pair, right: Pair): Pair {
  return pair('truth', [left, right], `$1 ${operator} $2`, comparisons[operator] ?? '')
}
