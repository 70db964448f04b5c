// Decides for a comparison of a column with constants whether any value between two bounds may satisfy it. By this
// decision scans skip pages, row groups and files. NULL satisfies no comparison.

export type Bound = number | bigint

/** `column name values`: `x >= 5`, `x in (1, 2)`. */
export interface ColumnCondition {
  /** Index of the column in the plan's node. */
  readonly column: number
  readonly name: string
  /** Numbers, or texts in UTF-8. */
  readonly values: readonly Bound[] | readonly Uint8Array[]
}

export function isTextCondition(condition: ColumnCondition): condition is ColumnCondition & { values: Uint8Array[] } {
  return condition.values[0] instanceof Uint8Array
}

/** Whether a value between the bounds, which may be equal to them, may pass; null for other comparisons. */
export function boundsTest(name: string, values: readonly Bound[]): ((min: Bound, max: Bound) => boolean) | null {
  const [a, b = a] = values
  if (a === undefined || b === undefined) return null
  switch (name) {
    case '=':
      return (min, max) => min <= a && a <= max
    case '<':
      return (min) => min < a
    case '<=':
      return (min) => min <= a
    case '>':
      return (_min, max) => max > a
    case '>=':
      return (_min, max) => max >= a
    case 'in':
      return numberBetween(values)
    case 'between':
      return (min, max) => (min <= a || min <= b) && (max >= a || max >= b)
    default:
      return null
  }
}

/**
 * The same for texts, as bytes in UTF-8. Bounds may be cut: a lower one is then smaller than each text, an upper one
 * larger. Other comparisons depend on the order of texts and are not decided.
 */
export function textTest(
  name: string,
  values: readonly Uint8Array[],
): ((min: Uint8Array, max: Uint8Array) => boolean) | null {
  if (name !== '=' && name !== 'in') return null
  const sorted = values.toSorted((a, b) => Buffer.compare(a, b))
  return (min, max) => {
    const value = sorted[firstNotBelow(sorted, min, isTextBelow)]
    return value !== undefined && Buffer.compare(value, max) <= 0
  }
}

/** Whether one of the values is between the bounds. */
function numberBetween(values: readonly Bound[]): (min: Bound, max: Bound) => boolean {
  const bigints = values.filter((value) => typeof value === 'bigint')
  const sorted: ArrayLike<Bound> =
    bigints.length === values.length
      ? BigInt64Array.from(bigints).sort()
      : values.toSorted((a, b) => (a < b ? -1 : a > b ? 1 : 0))
  return (min, max) => {
    const value = sorted[firstNotBelow(sorted, min, isBelow)]
    return value !== undefined && value <= max
  }
}

function isBelow(value: Bound, bound: Bound): boolean {
  return value < bound
}

function isTextBelow(value: Uint8Array, bound: Uint8Array): boolean {
  return Buffer.compare(value, bound) < 0
}

/** The index of the first of ascending values that is not below the bound, by binary search. */
function firstNotBelow<Value>(
  sorted: ArrayLike<Value>,
  bound: Value,
  below: (value: Value, bound: Value) => boolean,
): number {
  let [from, to] = [0, sorted.length]
  while (from < to) {
    const middle = (from + to) >>> 1
    const value = sorted[middle]
    if (value !== undefined && below(value, bound)) from = middle + 1
    else to = middle
  }
  return from
}
