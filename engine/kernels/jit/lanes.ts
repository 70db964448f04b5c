// The unit of all generated code (WebAssembly compiled for the query): the values of four adjacent rows in SIMD
// registers (a lane group).
//
//   Numbers   i32, u32, f32, lengths of strings: one vector of four lanes; i64, f64: two vectors of two lanes
//   Mask      all bits of a lane are set where a condition holds; narrow (four 32-bit lanes) or wide (two vectors of
//             64-bit lanes), converted on demand
//
// NULL is represented by the sentinel of the column's type throughout, so results are corrected where an operand may be
// NULL.

import { nonNull } from '../../base/assert.js'
import type { DataType } from '../../types/column-types.js'
import type { FunctionBuilder } from './assembler.js'
import type { Local } from './code-writer.js'
import type { Kind, Missing, Node } from './lower.js'

export interface Numbers {
  readonly kind: Exclude<Kind, 'mask'>
  readonly parts: readonly Local[]
  readonly missing: Missing
}

export interface Mask {
  readonly kind: 'mask'
  narrow: Local | null
  wide: readonly Local[] | null
}

/** The variables that the code of a function can use. */
export interface Environment {
  readonly f: FunctionBuilder
  readonly columns: readonly DataType[]
  /** Addresses of the current row of each column; loops advance them. */
  readonly pointers: readonly Local[]
  /** Constants of the parameter block. */
  readonly constants: readonly Local[]
  /** Predicate lookup tables by id + 1: address, and the last index in every lane. */
  readonly lookups: readonly { readonly table: Local; readonly last: Local }[]
}

/** Four rows, at an offset from the pointers. Every node is computed only once. */
export interface LaneGroup {
  readonly env: Environment
  readonly row: number
  readonly known: Map<string, Numbers | Mask>
}

export function laneGroupAt(env: Environment, row: number): LaneGroup {
  return { env, row, known: new Map() }
}

export function isWide(kind: Kind): boolean {
  return kind === 'i64' || kind === 'f64'
}

export function narrowMask(local: Local): Mask {
  return { kind: 'mask', narrow: local, wide: null }
}

export function wideMask(locals: readonly Local[]): Mask {
  return { kind: 'mask', narrow: null, wide: locals }
}

const evenWords = [0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27]
const oddWords = evenWords.map((byte) => byte + 4)
const highHalf = [8, 9, 10, 11, 12, 13, 14, 15, 8, 9, 10, 11, 12, 13, 14, 15]

export function asNarrow(f: FunctionBuilder, mask: Mask): Local {
  mask.narrow ??= lowWords(f, mask.wide ?? [])
  return mask.narrow
}

export function asWide(f: FunctionBuilder, mask: Mask): readonly Local[] {
  mask.wide ??= extended(f, mask.narrow ?? 0)
  return mask.wide
}

/** The mask's vectors, in the width of the lanes of that kind. */
export function maskFor(f: FunctionBuilder, mask: Mask, kind: Kind): readonly Local[] {
  return isWide(kind) ? asWide(f, mask) : [asNarrow(f, mask)]
}

/** The low 32 bits of four 64-bit lanes. */
export function lowWords(f: FunctionBuilder, [low, high]: readonly Local[]): Local {
  return f.shuffle(low as Local, high as Local, evenWords)
}

export function highWords(f: FunctionBuilder, [low, high]: readonly Local[]): Local {
  return f.shuffle(low as Local, high as Local, oddWords)
}

/** Sign-extends four 32-bit lanes to 64-bit lanes. */
export function extended(f: FunctionBuilder, narrow: Local): readonly Local[] {
  return [f.apply('i64x2.extend_low_i32x4_s', narrow), f.apply('i64x2.extend_high_i32x4_s', narrow)]
}

/** Moves the upper two of four 32-bit lanes to the lower half. */
export function upperHalf(f: FunctionBuilder, narrow: Local): Local {
  return f.shuffle(narrow, narrow, highHalf)
}

/** Concatenates the lower halves of two vectors. */
export function joinHalves(f: FunctionBuilder, low: Local, high: Local): Local {
  return f.shuffle(low, high, [0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23])
}

// Vectors that are known now ----------------------------------------------------------------------------------------

export function splatInt(f: FunctionBuilder, value: number): Local {
  return f.vector(new Uint8Array(new Int32Array(4).fill(value).buffer))
}

export function splatLong(f: FunctionBuilder, value: bigint): Local {
  return f.vector(new Uint8Array(BigInt64Array.of(value, value).buffer))
}

export function splatDouble(f: FunctionBuilder, value: number): Local {
  return f.vector(new Uint8Array(Float64Array.of(value, value).buffer))
}

export function splatFloat(f: FunctionBuilder, value: number): Local {
  return f.vector(new Uint8Array(new Float32Array(4).fill(value).buffer))
}

export const longMinimum = -0x8000_0000_0000_0000n
export const longMaximum = 0x7fff_ffff_ffff_ffffn
export const intMinimum = -0x8000_0000
export const intMaximum = 0x7fff_ffff

/** The NULL of a numeric kind, in every lane. */
export function nullVector(f: FunctionBuilder, kind: Kind): Local {
  switch (kind) {
    case 'i64':
      return splatLong(f, longMinimum)
    case 'f64':
      return splatDouble(f, Number.NaN)
    case 'f32':
      return splatFloat(f, Number.NaN)
    case 'u32':
      return splatInt(f, 0)
    default:
      return splatInt(f, intMinimum)
  }
}

export function constantMask(f: FunctionBuilder, value: boolean): Mask {
  const bits = splatInt(f, value ? -1 : 0)
  return { kind: 'mask', narrow: bits, wide: [bits, bits] }
}

// NULL --------------------------------------------------------------------------------------------------------------

export function makeMask(kind: Kind, locals: readonly Local[]): Mask {
  return isWide(kind) ? wideMask(locals) : narrowMask(nonNull(locals[0]))
}

/** Mask of the NULL values. */
export function missingMask(f: FunctionBuilder, { kind, parts, missing }: Numbers): Mask {
  const test = (x: Local): Local => {
    if (missing === 'negative') return f.apply('i32x4.lt_s', x, splatInt(f, 0))
    if (missing === 'nan') return f.apply(kind === 'f64' ? 'f64x2.ne' : 'f32x4.ne', x, x)
    return f.apply(kind === 'i64' ? 'i64x2.eq' : 'i32x4.eq', x, nullVector(f, kind))
  }
  return missing === 'never' ? constantMask(f, false) : makeMask(kind, parts.map(test))
}

/** Mask of the values that are not NULL. */
export function presentMask(f: FunctionBuilder, { kind, parts, missing }: Numbers): Mask {
  const test = (x: Local): Local => {
    if (missing === 'negative') return f.apply('i32x4.ge_s', x, splatInt(f, 0))
    if (missing === 'nan') return f.apply(kind === 'f64' ? 'f64x2.eq' : 'f32x4.eq', x, x)
    return f.apply(kind === 'i64' ? 'i64x2.ne' : 'i32x4.ne', x, nullVector(f, kind))
  }
  return missing === 'never' ? constantMask(f, true) : makeMask(kind, parts.map(test))
}

/** The conjunction of two conditions; null means no condition. */
export function bothMasks(f: FunctionBuilder, left: Mask | null, right: Mask | null): Mask | null {
  if (left === null || right === null) return left ?? right
  return combineMasks(f, 'v128.and', left, right)
}

export function combineMasks(
  f: FunctionBuilder,
  operation: 'v128.and' | 'v128.andnot' | 'v128.or' | 'v128.xor',
  left: Mask,
  right: Mask,
): Mask {
  const [a, b] = [left.wide, right.wide]
  if (a !== null && b !== null && (left.narrow === null || right.narrow === null))
    return wideMask(a.map((part, index) => f.apply(operation, part, nonNull(b[index]))))
  return narrowMask(f.apply(operation, asNarrow(f, left), asNarrow(f, right)))
}

export function invertMask(f: FunctionBuilder, mask: Mask): Mask {
  if (mask.narrow !== null) return narrowMask(f.apply('v128.not', mask.narrow))
  return wideMask((mask.wide ?? []).map((part) => f.apply('v128.not', part)))
}

/** Caches the result of a node. */
export function remember<T extends Numbers | Mask>(laneGroup: LaneGroup, { text }: Node, compute: () => T): T {
  const known = laneGroup.known.get(text) as T | undefined
  if (known !== undefined) return known
  const made = compute()
  laneGroup.known.set(text, made)
  return made
}
