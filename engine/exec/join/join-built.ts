// What is built of one side of a join: plain data, so that every thread of the query can probe it.

import type { Vector } from '../batch/vector.js'

/** Rows listed by the codes of their keys (join-build.ts). */
export interface Listing {
  readonly rows: number
  readonly vectors: readonly Vector[]
  /** Codes at or above have no rows. */
  readonly codeCount: number
  readonly starts: number
  readonly list: number
  /** Dictionary of a symbol key. */
  readonly base: number
}

/** Rows listed by their keys themselves (join-buckets.ts). */
export interface Buckets {
  readonly rows: number
  readonly vectors: readonly Vector[]
  /** Address of the BUCKETS table, 0 without rows, or with a range. */
  readonly table: number
  /** Address of the RANGE table; 0 = none. */
  readonly range: number
  /** Addresses of the keys, by key. */
  readonly keys: readonly number[]
  /** Dictionaries of symbol keys. */
  readonly bases: readonly number[]
  /** No key has two rows. */
  readonly unique: boolean
}

export interface BuiltJoin {
  readonly listing?: Listing
  readonly buckets?: Buckets
}
