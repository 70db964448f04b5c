// An aggregation whose groups have places of their own: what its lead and its helpers share.

import type { AggregateFragment } from '../../kernels/jit/jit.js'
import type { FragmentInputs } from '../expression/fragments.js'
import type { BucketKey, DenseKey } from '../fragment/fragment-keys.js'
import type { Piece } from '../scan/pieces.js'
import type { ScanShape } from '../scan/scan-shape.js'
import type { BucketGrid, Buckets } from './buckets.js'

export interface Grouping {
  readonly keys: readonly DenseKey[]
  readonly groups: number
  /** Null: there are none, or they are the groups. */
  readonly buckets: Buckets | null
  /** Buckets that are the groups, where there are no other keys. */
  readonly grid: BucketGrid | null
  /** Where a key that goes by bucket stands among the keys; -1 when none does. */
  readonly bucketPlace: number
  readonly keyOf: BucketKey['keyOf']
}

export interface DenseFragment extends Grouping {
  readonly fragment: AggregateFragment
  /** Finds the first rows of groups; null: there are no keys, and one group. */
  readonly firsts: AggregateFragment | null
  readonly inputs: FragmentInputs
  readonly scan: ScanShape
  readonly aggregates: number
}

export interface DenseQuery extends DenseFragment {
  readonly pieces: readonly Piece[]
  readonly chunkPieces: number
  /** Number of each piece's first row. */
  readonly firstRows: readonly number[]
}
