// States of aggregates by group, as operators use them.

import type { DataType } from '../../types/column-types.js'
import type { Value } from '../../types/value.js'
import type { WriteTarget } from '../batch/values.js'
import type { Batch } from '../batch/vector.js'

/** States of one aggregate call, one per group. */
export interface GroupStates {
  /** Adds the rows of a batch; ids are group numbers (u32 at the address), 0 = all rows belong to group 0. */
  add(batch: Batch, ids: number, groups: number): void
  /** Value of a group; of a group that no row reached, the value over nothing. */
  result(group: number): Value
  /** The value over nothing. */
  empty(): Value
  /** Forgets all groups. */
  reset(): void
  /** Missing: other threads cannot help with it. */
  readonly partial?: PartialStates
}

/** States of some rows in shared memory, the same number of bytes for each group: they are added to those of other rows. */
export interface PartialStates {
  /** Of a group, a multiple of 16. */
  readonly bytes: number
  /** Writes the states of the groups that are named; a number names all groups below it. */
  save(groups: readonly number[] | number, out: number): void
  /** Adds saved states to the groups at `ids` (u32); `groups` of them are known. */
  merge(from: number, rows: number, ids: number, groups: number): void
  /** Takes saved states as those of new groups from `first` on. */
  restore(from: number, rows: number, first: number): void
  /** Writes the values of saved states as a column. */
  finish(from: number, rows: number, type: DataType, target: WriteTarget, out: number): void
}

/** Of the states that are no longer than two words. */
export const partialBytes = 16
