// What an accumulator is: the running state of one aggregate call, for each group.

import type { DataType } from '../../types/column-types.js'
import type { Value } from '../../types/value.js'
import type { WriteTarget } from '../batch/values.js'
import type { Vector } from '../batch/vector.js'

export interface Accumulator {
  /** How many of the arguments, from the first on, it reads as columns. Absent: all. */
  readonly reads?: number
  /** Adds rows. `ids`: address of their group numbers (u32), which are below `groups`; 0: all rows are of group 0. */
  add(columns: readonly Vector[], rows: number, ids: number, groups: number): void
  /** The value of a group; of a group without rows, the value over nothing. */
  result(group: number): Value
  /** Forgets all groups. */
  reset(): void
  /** Absent: the states cannot be merged, so that one thread has to see all rows. */
  readonly partial?: PartialStates
}

/** States as bytes in shared memory, which threads hand to each other: as many bytes for each group. */
export interface PartialStates {
  /** Bytes of one group, a multiple of 8. */
  readonly bytes: number
  /** Writes the states of the listed groups; a number stands for all groups below it. */
  save(groups: readonly number[] | number, out: number): void
  /** Merges saved states, those of later rows, into the groups at `ids` (u32), which are below `groups`. */
  merge(from: number, count: number, ids: number, groups: number): void
  /** Takes saved states over as those of new groups, from `first` on. */
  restore(from: number, count: number, first: number): void
  /** Writes the values of saved states as a column. */
  finish(from: number, count: number, type: DataType, target: WriteTarget, out: number): void
}
