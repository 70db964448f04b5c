// Types that describe an aggregation without a hash table (dense): the id of a group is computed from small keys, such
// as symbols (dictionary-encoded strings) and time buckets, and is its index in an array of accumulators. The threads
// that execute the aggregation together share the description.

import type { AggregateFragment } from '../../kernels/jit/jit.js'
import type { FragmentInputs } from '../expression/fragments.js'
import type { BucketKey, DenseKey } from '../fragment/fragment-keys.js'
import type { ScanMorsel } from '../scan/morsels.js'
import type { ScanShape } from '../scan/scan-shape.js'
import type { BucketGrid, Buckets } from './buckets.js'

export interface Grouping {
  readonly keys: readonly DenseKey[]
  readonly groups: number
  /** null when there are no time buckets, or the buckets are the groups. */
  readonly buckets: Buckets | null
  /** The buckets, when they are the groups, without other keys. */
  readonly grid: BucketGrid | null
  /** Position of the key that depends on the bucket among the keys; -1 if there is none. */
  readonly bucketPlace: number
  readonly keyOf: BucketKey['keyOf']
}

export interface DenseFragment extends Grouping {
  readonly fragment: AggregateFragment
  /** Finds the first row of each group; null without keys, when there is only one group. */
  readonly firsts: AggregateFragment | null
  readonly inputs: FragmentInputs
  readonly scan: ScanShape
  readonly aggregates: number
}

export interface DenseQuery extends DenseFragment {
  readonly morsels: readonly ScanMorsel[]
  readonly chunkMorsels: number
  /** Number of each morsel's first row. */
  readonly firstRows: readonly number[]
}
