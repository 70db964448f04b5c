// Finds the item of the select list to which an item of GROUP BY, ORDER BY or DISTINCT ON refers. All three may use the
// name of a result column. ORDER BY and DISTINCT ON may also use the name of a called function (`order by count` finds
// `count(*)`), the text of a call as it is written, or an expression that is equal after binding. There may be
// thousands of items, so there is a map for each kind of look-up, built at its first use.

import { expressionText } from '../parse/text.js'
import type { Scope } from '../scope/scope.js'
import { expressionKey } from '../typing/types.js'
import type { SelectColumn } from './select.js'

export class SelectListIndex {
  readonly #names: readonly string[]
  readonly #items: readonly SelectColumn[]
  readonly #columns: Scope
  #byName: ReadonlyMap<string, number> | null = null
  #byText: ReadonlyMap<string, number> | null = null
  #byKey: ReadonlyMap<string, number> | null = null
  #calls: { readonly all: ReadonlyMap<string, number>; readonly bare: ReadonlyMap<string, number> } | null = null
  #sources: ReadonlySet<string> | null = null

  /** The names and items of the list, and the source columns that its expressions may refer to. */
  constructor(names: readonly string[], items: readonly SelectColumn[], columns: Scope) {
    this.#names = names
    this.#items = items
    this.#columns = columns
  }

  get count(): number {
    return this.#names.length
  }

  /** The first item with that lower-case name. */
  named(wanted: string): number | null {
    this.#byName ??= firstPlaces(this.#names.map((name) => name.toLowerCase()))
    return this.#byName.get(wanted) ?? null
  }

  /** The first call, other than window calls, with that lower-case text. */
  written(text: string): number | null {
    this.#byText ??= firstPlaces(
      this.#items.map(({ expression }) =>
        expression?.kind === 'call' && expression.over === null ? expressionText(expression).toLowerCase() : null,
      ),
    )
    return this.#byText.get(text) ?? null
  }

  /** The first item with the same expression key. */
  computed(key: string): number | null {
    this.#byKey ??= firstPlaces(this.#items.map(({ bound }) => expressionKey(bound)))
    return this.#byKey.get(key) ?? null
  }

  /** The last call of that function: one without arguments if `bare`, else any. */
  lastCall(name: string, bare: boolean): number | null {
    this.#calls ??= callPlaces(this.#items)
    return (bare ? this.#calls.bare : this.#calls.all).get(name) ?? null
  }

  /** Whether a source column has that name. */
  isColumn(name: string): boolean {
    this.#sources ??= new Set(this.#columns.map((column) => column.name.toLowerCase()))
    return this.#sources.has(name)
  }
}

function firstPlaces(strings: readonly (string | null)[]): Map<string, number> {
  const places = new Map<string, number>()
  for (const [index, text] of strings.entries()) if (text !== null && !places.has(text)) places.set(text, index)
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
