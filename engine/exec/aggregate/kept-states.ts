// States of first and last: a cell a group in shared memory, the value in its first 8 bytes, then whether there is one.

import type { Expression } from '../../sql/plan/plan.js'
import { isVariable, widthOf } from '../../types/column-types.js'
import type { Value } from '../../types/value.js'
import { CellMemory } from '../batch/cell-memory.js'
import type { ExecContext } from '../batch/context.js'
import { valueReader } from '../batch/values.js'
import { compileVector } from '../expression/expression.js'
import { partialCells } from './accumulate-partials.js'
import { type GroupStates, partialBytes } from './group-states.js'

/** Of a cell: 1 once there is a value. */
const seenWord = 2

/** undefined: values that need more than their bytes (texts, symbols), or more than 8 of them. */
export function keptStates(
  context: ExecContext,
  name: 'first' | 'last',
  argument: Expression,
): GroupStates | undefined {
  const { type } = argument
  const width = widthOf(type)
  if (isVariable(type) || type.name === 'SYMBOL' || width > 8) return undefined
  const { memory, texts } = context
  const { u8, u32 } = memory
  const evaluate = compileVector(argument, context)
  const cells = new CellMemory(context, partialBytes, (from, to) => {
    u8.fill(0, cells.address + from * partialBytes, cells.address + to * partialBytes)
  })
  const isFirst = name === 'first'
  const keep = (cell: number, source: number): void => {
    if (isFirst && u32[(cell >>> 2) + seenWord] === 1) return
    if (width >= 4)
      for (let word = 0; word < width >>> 2; word++) u32[(cell >>> 2) + word] = u32[(source >>> 2) + word]!
    else for (let byte = 0; byte < width; byte++) u8[cell + byte] = u8[source + byte]!
    u32[(cell >>> 2) + seenWord] = 1
  }
  const valueAt = (cell: number): Value => {
    if (u32[(cell >>> 2) + seenWord] !== 1) return null
    return valueReader(memory, texts, { type, address: cell, dictionary: 0 })(0)
  }
  return {
    add: (batch, ids, groups) => {
      const { address } = evaluate(batch)
      cells.grow(ids === 0 ? 1 : groups)
      if (ids === 0) {
        if (batch.rows > 0) keep(cells.address, isFirst ? address : address + (batch.rows - 1) * width)
        return
      }
      for (let row = 0; row < batch.rows; row++)
        keep(cells.address + u32[(ids >>> 2) + row]! * partialBytes, address + row * width)
    },
    result: (group) => (group < cells.groups ? valueAt(cells.address + group * partialBytes) : null),
    empty: () => null,
    reset: () => cells.reset(),
    partial: partialCells(context, cells, partialBytes, {
      combine: (into, source) => {
        if (u32[source * 2 + seenWord] === 1) keep(into * 8, source * 8)
      },
      valueAt: (place) => valueAt(place * 8),
    }),
  }
}
