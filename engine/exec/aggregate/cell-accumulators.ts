// Accumulators that need only a state of a few bytes for each group, which is updated row by row: statistics such as
// variance and correlation, bitwise AND, OR and XOR, and first and last values. The states are stored in GroupCells
// (group-cells.ts).

import type { DoublesState, NumberRows } from '../../sql/functions/function-types.js'
import { type DataType, widthOf } from '../../types/column-types.js'
import { intMin } from '../../types/number.js'
import type { Value } from '../../types/value.js'
import type { ExecContext } from '../batch/context.js'
import { valueReader } from '../batch/values.js'
import type { Vector } from '../batch/vector.js'
import type { Accumulator } from './accumulator.js'
import { GroupCells } from './group-cells.js'

/** State of a few doubles, as the aggregate's row in sql/functions defines it. */
export class DoublesAccumulator implements Accumulator {
  readonly partial: GroupCells
  readonly #memory: ExecContext['memory']
  readonly #state: DoublesState

  constructor(context: ExecContext, state: DoublesState) {
    const { memory } = context
    this.#memory = memory
    this.#state = state
    const { words, merge, result } = state
    this.partial = new GroupCells(context, {
      bytes: words * 8,
      merge: (into, source) => merge(memory.f64, into, memory.f64, source),
      valueAt: (place) => finiteOrNull(result(memory.f64, place)),
      empty: finiteOrNull(result(new Float64Array(words), 0)),
    })
  }

  /** The columns are DOUBLE. */
  add([first, second = first]: readonly [Vector, ...Vector[]], rows: number, ids: number, groups: number): void {
    this.partial.grow(ids === 0 ? 1 : groups)
    const { f64, u32 } = this.#memory
    const [x, y] = [first.address >>> 3, second.address >>> 3]
    const added = { count: rows, numbers: f64, x, y, groups: u32, ids: ids >>> 2 }
    const cells = this.partial.address >>> 3
    if (this.#state.addRows === undefined) this.#addEach(cells, added)
    else this.#state.addRows(f64, cells, added)
  }

  result(group: number): Value {
    return this.partial.value(group)
  }

  reset(): void {
    this.partial.reset()
  }

  #addEach(cells: number, { count, numbers, x, y, groups, ids }: NumberRows): void {
    const { words, add } = this.#state
    for (let row = 0; row < count; row++) {
      const left = numbers[x + row]!
      const right = numbers[y + row]!
      if (Number.isNaN(left) || Number.isNaN(right)) continue
      add(numbers, ids === 0 ? cells : cells + groups[ids + row]! * words, left, right)
    }
  }
}

function finiteOrNull(value: number | null): number | null {
  return value !== null && Number.isFinite(value) ? value : null
}

/**
 * Bitwise AND, OR and XOR of integers and BOOLEAN. The state: low u32, high u32, seen u32, 0; values of up to 32 bits
 * are in `low`.
 */
export class BitAccumulator implements Accumulator {
  readonly partial: GroupCells
  readonly #memory: ExecContext['memory']
  readonly #type: DataType
  readonly #fold: 'and' | 'or' | 'xor'

  constructor(context: ExecContext, type: DataType, fold: 'and' | 'or' | 'xor') {
    const { memory } = context
    this.#memory = memory
    this.#type = type
    this.#fold = fold
    this.partial = new GroupCells(context, {
      bytes: 16,
      merge: (into, source) => {
        const { u32 } = memory
        if (u32[source * 2 + 2] === 1) this.#offer(into * 2, u32[source * 2]!, u32[source * 2 + 1]!)
      },
      valueAt: (place) => this.#valueAt(place * 2),
      empty: this.#empty,
    })
  }

  add([column]: readonly [Vector], rows: number, ids: number, groups: number): void {
    const { address } = column
    this.partial.grow(ids === 0 ? 1 : groups)
    if (this.#type.name === 'LONG') this.#addLongs(address >>> 2, rows, ids >>> 2)
    else this.#addNarrow(address, rows, ids >>> 2)
  }

  result(group: number): Value {
    return this.partial.value(group)
  }

  reset(): void {
    this.partial.reset()
  }

  get #empty(): Value {
    return this.#type.name === 'BOOLEAN' ? false : null
  }

  #addNarrow(address: number, rows: number, ids: number): void {
    const { u8, i8, i16, i32, u32 } = this.#memory
    const { name } = this.#type
    const values = name === 'INT' ? i32 : name === 'SHORT' ? i16 : name === 'BYTE' ? i8 : u8
    const first = address / values.BYTES_PER_ELEMENT
    const cells = this.partial.address >>> 2
    for (let row = 0; row < rows; row++) {
      const value = values[first + row]!
      // Narrower types have no NULL, and cannot have this value.
      if (value === intMin) continue
      this.#offer(cells + (ids === 0 ? 0 : u32[ids + row]! * 4), value, 0)
    }
  }

  #addLongs(first: number, rows: number, ids: number): void {
    const { u32 } = this.#memory
    const cells = this.partial.address >>> 2
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
    if (u32[cell + 2] === 0) return this.#empty
    const { name } = this.#type
    if (name === 'BOOLEAN') return u32[cell] !== 0
    if (name !== 'LONG') return i32[cell]!
    return (BigInt(i32[cell + 1]!) << 32n) | BigInt(u32[cell]!)
  }
}

/** Word of the state of a FirstLastAccumulator that is 1 once there is a value. */
const seenWord = 2

/** first() and last(). The state: the value in 8 bytes, seen u32, 0. */
export class FirstLastAccumulator implements Accumulator {
  readonly partial: GroupCells
  readonly #memory: ExecContext['memory']
  readonly #width: number
  readonly #isFirst: boolean

  constructor(context: ExecContext, type: DataType, end: 'first' | 'last') {
    const { memory, strings } = context
    this.#memory = memory
    this.#width = widthOf(type)
    this.#isFirst = end === 'first'
    this.partial = new GroupCells(context, {
      bytes: 16,
      merge: (into, source) => {
        if (memory.u32[source * 2 + seenWord] === 1) this.#keep(into * 8, source * 8)
      },
      valueAt: (place) =>
        memory.u32[place * 2 + seenWord] === 1
          ? valueReader(memory, strings, { type, address: place * 8, dictionary: 0 })(0)
          : null,
      empty: null,
    })
  }

  add([column]: readonly [Vector], rows: number, ids: number, groups: number): void {
    const { address } = column
    const { u32 } = this.#memory
    this.partial.grow(ids === 0 ? 1 : groups)
    const cells = this.partial.address
    if (ids === 0) {
      if (rows > 0) this.#keep(cells, this.#isFirst ? address : address + (rows - 1) * this.#width)
      return
    }
    for (let row = 0; row < rows; row++) this.#keep(cells + u32[(ids >>> 2) + row]! * 16, address + row * this.#width)
  }

  result(group: number): Value {
    return this.partial.value(group)
  }

  reset(): void {
    this.partial.reset()
  }

  #keep(cell: number, source: number): void {
    const { u8, u32 } = this.#memory
    const width = this.#width
    if (this.#isFirst && u32[(cell >>> 2) + seenWord] === 1) return
    if (width >= 4)
      for (let word = 0; word < width >>> 2; word++) u32[(cell >>> 2) + word] = u32[(source >>> 2) + word]!
    else for (let byte = 0; byte < width; byte++) u8[cell + byte] = u8[source + byte]!
    u32[(cell >>> 2) + seenWord] = 1
  }
}
