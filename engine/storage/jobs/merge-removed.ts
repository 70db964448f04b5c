// Compaction without the rows that upserts have removed from the inputs (memtable/removed-rows.ts): marks them in the
// merge order of merge-rows.ts as rows to drop.

import { assert } from '../../base/assert.js'
import type { SharedMemory } from '../../memory/shared-memory.js'
import { marksOf } from '../memtable/removed-rows.js'
import type { TableVersion } from '../schema/schema.js'
import { type Choices, dropped, sliceStart } from './merge-rows.js'
import type { CompactionInput } from './merge-slices.js'

const rowsPerStep = 65_536

/** Returns the choices with the new row count, which may be 0. */
export function* removedChoices(
  { u8, u32 }: SharedMemory,
  inputs: readonly CompactionInput[],
  version: TableVersion,
  choices: Choices,
): Generator<undefined, Choices> {
  const marks = inputs.map(({ handle }) => marksOf(version, handle.descriptor.id) >>> 2)
  if (marks.every((address) => address === 0)) return choices
  const consumed = sliceStart(inputs)
  let { rows } = choices
  for (let at = 0; at < choices.count; at++) {
    const choice = u8[choices.address + at]!
    const input = choice & ~dropped
    const row = consumed[input]!
    consumed[input] = row + 1
    const first = marks[input]!
    if (choice < dropped && first !== 0 && u32[first + row] !== 0) {
      u8[choices.address + at] = input | dropped
      rows--
    }
    if (at % rowsPerStep === rowsPerStep - 1) yield
  }
  assert(rows >= 0, 'S2: a row is removed once')
  return { ...choices, rows }
}
