// Vectorised string functions on characters: length, position, substrings, trimming and case. WebAssembly kernels
// handle ASCII strings; some functions evaluate other strings row by row by `eval`, the general implementation.

import { undecidedBytes } from '../../../kernels/text.js'
import type { Expression } from '../../plan/plan.js'
import {
  type ColumnContext,
  type ColumnFunction,
  type ColumnPlan,
  constantBytes,
  isTextVector,
} from './column-function.js'

export const lengthColumn: ColumnFunction = ({ args: [text] }, { kernels }) => {
  if (!isTextVector(text)) return undefined
  return {
    args: [text],
    run: (rows, [strings = 0], out) => {
      kernels.text.textUnits(strings, rows, out)
      return 0
    },
  }
}

export const positionColumn: ColumnFunction = ({ args: [text, wanted] }, context) => {
  if (!isTextVector(text) || wanted?.kind !== 'constant' || typeof wanted.value !== 'string') return undefined
  const { address, bytes } = constantBytes(wanted.value, context)
  return {
    args: [text],
    run: (rows, [strings = 0], out) => {
      context.kernels.text.findInStrings(strings, rows, address, bytes, out)
      return 0
    },
  }
}

/** `sides`: 1 trims the start, 2 the end, 3 both. */
export function trimColumn(sides: 1 | 2 | 3): ColumnFunction {
  return ({ args: [text] }, { kernels }) => {
    if (!isTextVector(text)) return undefined
    return {
      args: [text],
      run: (rows, [strings = 0], out) => {
        kernels.text.trimStrings(strings, rows, sides, out)
        return 0
      },
    }
  }
}

export function caseColumn(to: 'lower' | 'upper'): ColumnFunction {
  return ({ args: [text] }, context) => {
    const { text: kernel } = context.kernels
    if (!isTextVector(text)) return undefined
    return leavingOthers(context, text, (strings, rows, out) =>
      kernel.foldStrings(
        strings,
        rows,
        to === 'upper' ? 1 : 0,
        context.reserve(kernel.stringsBytes(strings, rows)),
        out,
      ),
    )
  }
}

/** Bounds as in Array.slice: negative ones count from the end. */
type Slice = readonly [from: number, to: number]

const toEnd = 2 ** 31 - 1

/** left(text, count) */
export const leftColumn = sliceColumn((count) => [0, count])

/** right(text, count) */
export const rightColumn = sliceColumn((count) => (count === 0 ? [0, 0] : [-count, toEnd]))

/** substring(text, from), substring(text, from, count) */
export const substringColumn = sliceColumn((first, count) => {
  // `eval` reports the error.
  if ((count ?? 0) < 0) return undefined
  const from = Math.max(0, first - 1)
  return [from, count === undefined ? toEnd : Math.max(from, first - 1 + count)]
})

function sliceColumn(sliceOf: (first: number, count?: number) => Slice | undefined): ColumnFunction {
  return ({ args: [text, ...places] }, context) => {
    const [first, count] = places.map((place) => (place.kind === 'constant' ? place.value : undefined))
    if (!isTextVector(text) || typeof first !== 'number') return undefined
    if (places.length > 1 && typeof count !== 'number') return undefined
    if (Math.abs(first) + Math.abs(typeof count === 'number' ? count : 0) >= toEnd) return undefined
    const slice = typeof count === 'number' ? sliceOf(first, count) : sliceOf(first)
    if (slice === undefined) return undefined
    const [from, to] = slice
    return leavingOthers(context, text, (strings, rows, out) =>
      context.kernels.text.sliceStrings(strings, rows, from, to, out),
    )
  }
}

/** `run` returns the number of strings that are not ASCII. */
function leavingOthers(
  { memory }: ColumnContext,
  text: Expression,
  run: (strings: number, rows: number, out: number) => number,
): ColumnPlan {
  return {
    args: [text],
    run: (rows, [strings = 0], out) => run(strings, rows, out),
    isLeft: (out, row) => memory.i32[(out >>> 2) + row * 2 + 1] === undecidedBytes,
  }
}
