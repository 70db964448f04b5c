// The interface of accumulators: the running state of one aggregate call, for each group. Partial states can be saved,
// sent to another thread and merged.

import type { DataType } from '../../types/column-types.js'
import type { Value } from '../../types/value.js'
import type { WriteTarget } from '../batch/values.js'
import type { Vector } from '../batch/vector.js'

export interface Accumulator {
  /** How many arguments, from the first on, it reads as columns. All if absent. */
  readonly reads?: number
  /** Adds rows. `ids`: address of their group ids (u32), which are below `groups`; 0: all rows are in group 0. */
  add(columns: readonly Vector[], rows: number, ids: number, groups: number): void
  /** The result for a group; for a group without rows, the result over no rows. */
  result(group: number): Value
  /** Discards all groups. */
  reset(): void
  /** Absent when the states cannot be merged, so that one thread has to see all rows. */
  readonly partial?: AccumulatorStates
}

/** Accumulator states as bytes in shared memory, all of the same size, which threads exchange. */
export interface AccumulatorStates {
  /** Bytes of one group, a multiple of 8. */
  readonly bytes: number
  /** Writes the states of the listed groups, or of all groups below a number. */
  save(groups: readonly number[] | number, out: number): void
  /** Merges saved states, of later rows, into the groups at `ids` (u32), which are below `groups`. */
  merge(from: number, count: number, ids: number, groups: number): void
  /** Takes saved states over as those of new groups, beginning with group `first`. */
  restore(from: number, count: number, first: number): void
  /** Writes the results of saved states as a column. */
  finish(from: number, count: number, type: DataType, target: WriteTarget, out: number): void
}
