// Columns that INSERT numbers (`serial`, `generated .. as identity`): their default asks a counter for its next number. A
// counter is known by the column that it belongs to; nothing of it is stored. Behind a start it goes on from the largest
// number of its column, which whoever opens the engine tells it by setval().

import type { ColumnSchema } from '../../storage/schema.js'

const callPattern = /^nextval\('((?:[^']|'')*)'\)$/

/** The default of a counted column. */
export function counterText(table: string, column: string): string {
  return `nextval('${`${table}_${column}_seq`.replaceAll("'", "''")}')`
}

/** The counter of a column, as nextval() names it; null: it has none. */
export function counterOf({
  default: text,
}: {
  readonly default?: ColumnSchema['default'] | undefined
}): string | null {
  return (text === undefined ? null : callPattern.exec(text)?.[1]?.replaceAll("''", "'")) ?? null
}

/** The last numbers. Names match without case, with their schema or without it. */
export class Counters {
  readonly #last = new Map<string, bigint>()
  readonly #isKnown: (name: string) => boolean

  /** `isKnown`: whether a column has the counter of that name (in lower case). */
  constructor(isKnown: (name: string) => boolean) {
    this.#isKnown = isKnown
  }

  /** undefined: there is no such counter. */
  next(written: string): bigint | undefined {
    const last = this.last(written)
    return last === undefined ? undefined : this.set(written, last + 1n)
  }

  /** 0: it has given none. */
  last(written: string): bigint | undefined {
    const name = nameOf(written)
    return this.#last.get(name) ?? (this.#isKnown(name) ? 0n : undefined)
  }

  set(written: string, value: bigint): bigint {
    this.#last.set(nameOf(written), value)
    return value
  }
}

function nameOf(written: string): string {
  return written
    .replace(/^"?public"?\./i, '')
    .replace(/^"(.*)"$/, '$1')
    .toLowerCase()
}
