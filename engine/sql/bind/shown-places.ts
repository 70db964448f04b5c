// Where the items of a select list are, for GROUP BY, ORDER BY and DISTINCT ON: by name, by text, by what they compute. Each
// map is made once a list, when it is first asked for: those clauses may have thousands of items, as the list may.

import { expressionText } from '../parse/text.js'
import type { Scope } from '../scope/scope.js'
import { expressionKey } from '../typing/types.js'
import type { SelectColumn } from './select.js'

export class ShownPlaces {
  readonly #names: readonly string[]
  readonly #items: readonly SelectColumn[]
  readonly #columns: Scope
  #byName: ReadonlyMap<string, number> | null = null
  #byText: ReadonlyMap<string, number> | null = null
  #byKey: ReadonlyMap<string, number> | null = null
  #calls: { readonly all: ReadonlyMap<string, number>; readonly bare: ReadonlyMap<string, number> } | null = null
  #sources: ReadonlySet<string> | null = null

  /** The list's names and items, and the columns that its expressions may name. */
  constructor(names: readonly string[], items: readonly SelectColumn[], columns: Scope) {
    this.#names = names
    this.#items = items
    this.#columns = columns
  }

  get count(): number {
    return this.#names.length
  }

  /** The first item of that name in lower case. */
  named(wanted: string): number | null {
    this.#byName ??= firstPlaces(this.#names.map((name) => name.toLowerCase()))
    return this.#byName.get(wanted) ?? null
  }

  /** The first call that is written so, in lower case, and is of no window. */
  written(text: string): number | null {
    this.#byText ??= firstPlaces(
      this.#items.map(({ expression }) =>
        expression?.kind === 'call' && expression.over === null ? expressionText(expression).toLowerCase() : null,
      ),
    )
    return this.#byText.get(text) ?? null
  }

  /** The first item that computes the same. */
  computed(key: string): number | null {
    this.#byKey ??= firstPlaces(this.#items.map(({ bound }) => expressionKey(bound)))
    return this.#byKey.get(key) ?? null
  }

  /** The last call of that name: one without arguments, or any. */
  lastCall(name: string, bare: boolean): number | null {
    this.#calls ??= callPlaces(this.#items)
    return (bare ? this.#calls.bare : this.#calls.all).get(name) ?? null
  }

  /** A column of the sources has that name. */
  isColumn(name: string): boolean {
    this.#sources ??= new Set(this.#columns.map((column) => column.name.toLowerCase()))
    return this.#sources.has(name)
  }
}

function firstPlaces(texts: readonly (string | null)[]): Map<string, number> {
  const places = new Map<string, number>()
  for (const [index, text] of texts.entries()) if (text !== null && !places.has(text)) places.set(text, index)
  return places
}

function callPlaces(items: readonly SelectColumn[]): { all: Map<string, number>; bare: Map<string, number> } {
  const [all, bare] = [new Map<string, number>(), new Map<string, number>()]
  for (const [index, { expression }] of items.entries()) {
    if (expression?.kind !== 'call') continue
    const name = expression.name.toLowerCase()
    all.set(name, index)
    if (expression.args.length === 0) bare.set(name, index)
  }
  return { all, bare }
}
