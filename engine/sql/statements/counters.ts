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

/** Which column has the counter of that name (in lower case), as a text that no other column ever has. */
export type CounterColumn = (name: string) => string | undefined

/** The last numbers. Names match without case, with their schema or without it. */
export class Counters {
  /** By column: one that is dropped and made again begins anew. */
  readonly #last = new Map<string, bigint>()
  readonly #columnOf: CounterColumn
  readonly #demandWrite: () => void

  /** `demandWrite` throws AccessError. */
  constructor(columnOf: CounterColumn, demandWrite: () => void) {
    this.#columnOf = columnOf
    this.#demandWrite = demandWrite
  }

  /** undefined: there is no such counter. */
  next(written: string): bigint | undefined {
    const last = this.last(written)
    return last === undefined ? undefined : this.set(written, last + 1n)
  }

  /** 0: it has given none; undefined: there is no such counter. */
  last(written: string): bigint | undefined {
    const column = this.#columnOf(nameOf(written))
    return column === undefined ? undefined : (this.#last.get(column) ?? 0n)
  }

  /** undefined: there is no such counter. */
  set(written: string, value: bigint): bigint | undefined {
    this.#demandWrite()
    const column = this.#columnOf(nameOf(written))
    if (column === undefined) return undefined
    this.#last.set(column, value)
    return value
  }
}

function nameOf(written: string): string {
  return written
    .replace(/^"?public"?\./i, '')
    .replace(/^"(.*)"$/, '$1')
    .toLowerCase()
}
