// Types of a join's lookup table in its two forms: by key code (join-build.ts), and by hash (join-buckets.ts). Both are
// plain data in shared memory, so every thread of the query can look rows up in them.

import type { Vector } from '../batch/vector.js'

/** Rows listed by key code (join-build.ts). */
export interface Listing {
  readonly rows: number
  readonly vectors: readonly Vector[]
  /** Codes from here on have no rows. */
  readonly codeCount: number
  readonly starts: number
  readonly list: number
  /** The dictionary of a symbol key. */
  readonly base: number
}

/** Rows listed by key value or hash (join-buckets.ts). */
export interface Buckets {
  readonly rows: number
  readonly vectors: readonly Vector[]
  /** Address of the BUCKETS table; 0 without rows, or with a range. */
  readonly table: number
  /** Address of the RANGE table, an array indexed by key; 0 = none. */
  readonly range: number
  /** Addresses of the key columns. */
  readonly keys: readonly number[]
  /** Dictionaries of the symbol keys. */
  readonly bases: readonly number[]
  /** Whether no key has two rows. */
  readonly unique: boolean
}

export interface BuiltJoin {
  readonly listing?: Listing
  readonly buckets?: Buckets
}
