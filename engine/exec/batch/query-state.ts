// What the operators of one query have found out about its conditions, so that each is worked out once however many
// operators, kernels and child contexts ask. Tables live in the memory of the query itself.

import type { NumberBits, WholeNumbers } from '../../sql/functions/column/whole-numbers.js'
import type { Expression } from '../../sql/plan/plan.js'
import type { QuerySpace } from './query-space.js'

/** A BOOLEAN over one symbol column and constants: a lookup table by id + 1. */
export interface SymbolPredicate {
  readonly column: number
  /** Bytes by id + 1: 0 or 1. The address may change when the dictionary has grown: ask again for every batch. */
  tableFor(dictionary: number, count: number): number
}

/** What a condition asks of its column of symbols. */
export interface WantedSymbols {
  readonly column: number
  /** How many texts there are, in the dictionary or not. */
  readonly texts: number
  /** Ascending ids of those that are among the first `count` entries of the dictionary. */
  idsIn(dictionary: number, count: number): readonly number[]
}

/** undefined in a map: the expression is known to be none of that kind. */
export interface QueryState {
  readonly space: QuerySpace
  /** expression/symbol-predicate.ts */
  readonly predicates: Map<Expression, SymbolPredicate | undefined>
  /** symbol-matches.ts: symbols that a condition wants, or that it excludes. */
  readonly wanted: Map<Expression, WantedSymbols | undefined>
  readonly unwanted: Map<Expression, WantedSymbols | undefined>
  /** Of the lists of sub-queries and constants. */
  readonly numberBits: Map<WholeNumbers, NumberBits | undefined>
}

export function newQueryState(space: QuerySpace): QueryState {
  return { space, predicates: new Map(), wanted: new Map(), unwanted: new Map(), numberBits: new Map() }
}

/** The value of a key, made when it is asked for first. */
export function onceIn<K, V>(map: Map<K, V | undefined>, key: K, make: () => V | undefined): V | undefined {
  if (!map.has(key)) map.set(key, make())
  return map.get(key)
}
