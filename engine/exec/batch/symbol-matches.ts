// Recognises conditions that compare a symbol column (dictionary-encoded strings) with constant strings, such as `city
// = 'Oslo'`, and finds the symbol ids of the strings (symbol-index.ts), so that the condition can be evaluated by
// comparing ids. The ids are cached in the QueryState, for all filters and generated WebAssembly kernels of the query.

import type { SharedMemory } from '../../memory/shared-memory.js'
import type { Expression } from '../../sql/plan/plan.js'
import type { ExecContext } from './context.js'
import { computeIfAbsent, type WantedSymbols } from './query-state.js'
import { findSymbols } from './symbol-index.js'

type Column = Extract<Expression, { kind: 'column' }>

/** Longer lists of strings are not resolved. */
const wantedMax = 64
const strings: ReadonlySet<string> = new Set(['STRING', 'VARCHAR', 'SYMBOL'])

export interface WantedStrings {
  /** The symbol column. */
  readonly column: Column
  readonly strings: readonly Buffer[]
}

/**
 * The column and strings of `column = 'text'`, `column in ('text', …)`, or several of these joined by OR; undefined for
 * any other expression.
 */
export function wantedStrings(expression: Expression): WantedStrings | undefined {
  if (expression.kind !== 'call') return undefined
  const { name, args } = expression
  if (name === 'or') return wantedOfEither(args)
  const constants = args.filter(({ kind }) => kind === 'constant')
  if (constants.length !== args.length - 1 || constants.length > wantedMax) return undefined
  if (name === 'in' ? args[0]?.kind !== 'column' : name !== '=' || args.length !== 2) return undefined
  const found: Buffer[] = []
  for (const part of constants) {
    if (part.kind !== 'constant' || typeof part.value !== 'string' || !strings.has(part.type.name)) return undefined
    found.push(Buffer.from(part.value, 'utf8'))
  }
  const column = args.find((part): part is Column => part.kind === 'column' && part.type.name === 'SYMBOL')
  return column === undefined ? undefined : { column, strings: found }
}

function wantedOfEither([left, right]: readonly Expression[]): WantedStrings | undefined {
  const first = left === undefined ? undefined : wantedStrings(left)
  const second = first === undefined || right === undefined ? undefined : wantedStrings(right)
  if (first === undefined || second === undefined) return undefined
  const all = [...first.strings, ...second.strings]
  return first.column.index === second.column.index && all.length <= wantedMax
    ? { column: first.column, strings: all }
    : undefined
}

/** The symbols that a condition of these forms requires; undefined for any other expression. */
export function wantedSymbols(expression: Expression, context: ExecContext): WantedSymbols | undefined {
  return computeIfAbsent(context.state.wanted, expression, () => newWanted(wantedStrings(expression), context.memory))
}

/** The symbols that `column <> 'text'` excludes; undefined for any other expression. */
export function unwantedSymbols(expression: Expression, context: ExecContext): WantedSymbols | undefined {
  if (expression.kind !== 'call' || expression.name !== '<>') return undefined
  return computeIfAbsent(context.state.unwanted, expression, () =>
    newWanted(wantedStrings({ ...expression, name: '=' }), context.memory),
  )
}

function newWanted(found: WantedStrings | undefined, memory: SharedMemory): WantedSymbols | undefined {
  if (found === undefined) return undefined
  const wanted = found.strings
  let known = { dictionary: -1, count: 0, ids: [] as number[] }
  const idsIn = (dictionary: number, count: number): readonly number[] => {
    if (known.dictionary !== dictionary) known = { dictionary, count: 0, ids: [] }
    if (known.count < count) {
      known.ids.push(...findSymbols(memory, dictionary, known.count, count, wanted))
      known.count = count
    }
    return known.count === count ? known.ids : known.ids.filter((id) => id < count)
  }
  return { column: found.column.index, strings: wanted.length, idsIn }
}
