// QueryState: state that all operators of a query share on a thread. It caches what the thread has derived from the
// query's conditions, such as which symbols (dictionary-encoded strings) satisfy a condition; generated WebAssembly
// kernels use the cached tables, too, which are in the query's memory. It also says whether operators can or must use
// temporary files instead of memory.

import { LazyMap } from '../../base/lazy-map.js'
import type { NumberBits, WholeNumbers } from '../../sql/functions/column/whole-numbers.js'
import type { Expression } from '../../sql/plan/plan.js'
import type { QueryArena } from './query-arena.js'

/** A BOOLEAN expression over one symbol column and constants, as a predicate lookup table. */
export interface SymbolPredicate {
  readonly column: number
  /**
   * Address of the table: a byte (0 or 1) at index id + 1. Call this for every batch, since the table moves when the
   * dictionary has grown.
   */
  tableFor(dictionary: number, count: number): number
}

/** The symbols that a condition compares its column with. */
export interface WantedSymbols {
  readonly column: number
  /** Number of strings, whether the dictionary has them or not. */
  readonly strings: number
  /** Ascending ids of those that are among the first `count` entries of the dictionary. */
  idsIn(dictionary: number, count: number): readonly number[]
}

/** A value of undefined in a map: the expression is not of that kind. */
export interface QueryState {
  readonly arena: QueryArena
  /** Of expression/symbol-predicate.ts. */
  readonly predicates: LazyMap<Expression, SymbolPredicate | undefined>
  /** Of symbol-matches.ts: symbols that a condition requires, or excludes. */
  readonly wanted: LazyMap<Expression, WantedSymbols | undefined>
  readonly unwanted: LazyMap<Expression, WantedSymbols | undefined>
  /** Bitmaps over the whole numbers of IN lists, of sub-queries and constants. */
  readonly numberBits: LazyMap<WholeNumbers, NumberBits | undefined>
  /** The query has an operator that could use temporary files instead of memory. */
  canSpill: boolean
  /** The query has such an operator that keeps values on the heap. */
  canSpillHeap: boolean
  /** The next of these that still works in memory begins again with temporary files. */
  heapFull: boolean
  /** Operators that can use temporary files do so from the beginning. */
  readonly spills: boolean
}

export function newQueryState(arena: QueryArena, spills = false): QueryState {
  return {
    arena,
    predicates: new LazyMap(),
    wanted: new LazyMap(),
    unwanted: new LazyMap(),
    numberBits: new LazyMap(),
    canSpill: false,
    canSpillHeap: false,
    heapFull: false,
    spills,
  }
}

/** The value of the key, computed on first use. */
export function computeIfAbsent<K, V>(
  map: LazyMap<K, V | undefined>,
  key: K,
  make: () => V | undefined,
): V | undefined {
  if (!map.has(key)) map.set(key, make())
  return map.get(key)
}
