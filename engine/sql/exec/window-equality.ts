// Equality of two values of one column, as ORDER BY sees it: NULL equals NULL, and zero has one sign.

import type { SharedMemory } from '../../memory/shared-memory.js'
import { storageOf, widthOf } from '../../types/column-types.js'
import { bufferOf } from './text-at.js'
import type { Vector } from './vector.js'

export type SameValues = (row: number, other: number) => boolean

export function sameNeighbours(memory: SharedMemory, vector: Vector): SameValues {
  const { address, type } = vector
  switch (storageOf(type)) {
    case 'f64':
      return sameFloats(memory.f64, address >>> 3)
    case 'f32':
      return sameFloats(memory.f32, address >>> 2)
    case 'i8':
      return sameWords(memory.u8, address, 1)
    case 'i16':
    case 'u16':
      return sameWords(memory.u16, address >>> 1, 1)
    case 'entry':
      return sameBytes(memory, address >>> 2)
    default:
      return sameWords(memory.u32, address >>> 2, widthOf(type) / 4)
  }
}

function sameFloats(values: Float64Array | Float32Array, first: number): SameValues {
  return (row, other) => {
    const a = values[first + row] as number
    const b = values[first + other] as number
    return a === b || (Number.isNaN(a) && Number.isNaN(b))
  }
}

function sameWords(values: Uint8Array | Uint16Array | Uint32Array, first: number, words: number): SameValues {
  if (words === 1) return (row, other) => values[first + row] === values[first + other]
  return (row, other) => {
    for (let word = 0; word < words; word++) {
      if (values[first + row * words + word] !== values[first + other * words + word]) return false
    }
    return true
  }
}

function sameBytes(memory: SharedMemory, first: number): SameValues {
  const { u32, i32 } = memory
  const bytes = bufferOf(memory)
  return (row, other) => {
    const length = i32[first + row * 2 + 1] as number
    if (length !== i32[first + other * 2 + 1]) return false
    if (length <= 0) return true
    const a = u32[first + row * 2] as number
    const b = u32[first + other * 2] as number
    return a === b || bytes.compare(bytes, b, b + length, a, a + length) === 0
  }
}
