// States of bool_and, bool_or, bit_and, bit_or and bit_xor in shared memory.
//
//   cell   low u32 | high u32 | seen u32 | 0 u32     the value so far; numbers of up to 32 bits are in `low`

import type { AggregateCall, Expression } from '../../sql/plan/plan.js'
import type { DataType } from '../../types/column-types.js'
import type { Value } from '../../types/value.js'
import { CellMemory } from '../batch/cell-memory.js'
import type { ExecContext } from '../batch/context.js'
import type { Batch } from '../batch/vector.js'
import { compileVector, type VectorEvaluator } from '../expression/expression.js'
import { partialCells } from './accumulate-partials.js'
import { type GroupStates, type PartialStates, partialBytes } from './group-states.js'

type Fold = 'and' | 'or' | 'xor'

const folds: Readonly<Record<string, Fold>> = {
  bool_and: 'and',
  bool_or: 'or',
  bit_and: 'and',
  bit_or: 'or',
  bit_xor: 'xor',
}
const types: ReadonlySet<string> = new Set(['BOOLEAN', 'BYTE', 'SHORT', 'INT', 'LONG'])
const lowest = -0x8000_0000

/** undefined: not one of them. */
export function bitStates(context: ExecContext, call: AggregateCall, argument: Expression): GroupStates | undefined {
  const fold = folds[call.name]
  if (fold === undefined || !types.has(argument.type.name)) return undefined
  return new BitStates(context, compileVector(argument, context), fold, argument.type)
}

class BitStates implements GroupStates {
  readonly partial: PartialStates
  readonly #memory: ExecContext['memory']
  readonly #evaluate: VectorEvaluator
  readonly #fold: Fold
  readonly #type: DataType
  readonly #cells: CellMemory

  constructor(context: ExecContext, evaluate: VectorEvaluator, fold: Fold, type: DataType) {
    const { memory } = context
    this.#memory = memory
    this.#evaluate = evaluate
    this.#fold = fold
    this.#type = type
    this.#cells = new CellMemory(context, partialBytes, (from, to) => {
      const first = this.#cells.address >>> 2
      memory.u32.fill(0, first + from * 4, first + to * 4)
    })
    this.partial = partialCells(context, this.#cells, partialBytes, {
      combine: (into, source) => {
        const [low, high, seen] = [source * 2, source * 2 + 1, source * 2 + 2].map((word) => memory.u32[word]!)
        if (seen === 1) this.#offer(into * 2, low as number, high as number)
      },
      valueAt: (place) => this.#valueAt(place * 2),
    })
  }

  add(batch: Batch, ids: number, groups: number): void {
    const { address } = this.#evaluate(batch)
    this.#cells.grow(ids === 0 ? 1 : groups)
    if (this.#type.name === 'LONG') this.#addLongs(address >>> 2, batch.rows, ids >>> 2)
    else this.#addNarrow(address, batch.rows, ids >>> 2)
  }

  result(group: number): Value {
    return group < this.#cells.groups ? this.#valueAt((this.#cells.address >>> 2) + group * 4) : this.empty()
  }

  empty(): Value {
    return this.#type.name === 'BOOLEAN' ? false : null
  }

  reset(): void {
    this.#cells.reset()
  }

  #addNarrow(address: number, rows: number, ids: number): void {
    const { u8, i8, i16, i32, u32 } = this.#memory
    const { name } = this.#type
    const values = name === 'INT' ? i32 : name === 'SHORT' ? i16 : name === 'BYTE' ? i8 : u8
    const first = address / values.BYTES_PER_ELEMENT
    const cells = this.#cells.address >>> 2
    for (let row = 0; row < rows; row++) {
      const value = values[first + row]!
      // The others have no NULL, and no such value.
      if (value === lowest) continue
      this.#offer(cells + (ids === 0 ? 0 : u32[ids + row]! * 4), value, 0)
    }
  }

  #addLongs(first: number, rows: number, ids: number): void {
    const { u32 } = this.#memory
    const cells = this.#cells.address >>> 2
    for (let row = 0; row < rows; row++) {
      const low = u32[first + row * 2]!
      const high = u32[first + row * 2 + 1]!
      if (low === 0 && high === 0x8000_0000) continue
      this.#offer(cells + (ids === 0 ? 0 : u32[ids + row]! * 4), low, high)
    }
  }

  #offer(cell: number, low: number, high: number): void {
    const { u32 } = this.#memory
    if (u32[cell + 2] === 0) {
      u32[cell] = low
      u32[cell + 1] = high
      u32[cell + 2] = 1
      return
    }
    const a = u32[cell]!
    const b = u32[cell + 1]!
    u32[cell] = this.#fold === 'and' ? a & low : this.#fold === 'or' ? a | low : a ^ low
    u32[cell + 1] = this.#fold === 'and' ? b & high : this.#fold === 'or' ? b | high : b ^ high
  }

  #valueAt(cell: number): Value {
    const { u32, i32 } = this.#memory
    if (u32[cell + 2] === 0) return this.empty()
    const { name } = this.#type
    if (name === 'BOOLEAN') return u32[cell] !== 0
    if (name !== 'LONG') return i32[cell]!
    return (BigInt(i32[cell + 1]!) << 32n) | BigInt(u32[cell]!)
  }
}
