// Vectorised functions of one or two numbers, comparisons of numbers, and boolean logic, in TypeScript loops over
// vectors. Numbers are read as doubles with NaN for NULL, so only types that fit a double are handled: BYTE, SHORT,
// INT, FLOAT and DOUBLE. Generated WebAssembly kernels (kernels/jit) take most of these calls; these loops compute the
// rest.

import type { SharedMemory } from '../../../memory/shared-memory.js'
import { type ColumnType, type DataType, storageOf, widthOf } from '../../../types/column-types.js'
import { intMin } from '../../../types/number.js'
import type { Expression } from '../../plan/plan.js'
import type { ScalarFunction } from '../function-types.js'
import type { Call, ColumnContext, ColumnFunction, ColumnPlan } from './column-function.js'

/** The arguments are not NaN; y is 0 for functions of one argument. A NaN result is NULL. */
type NumberFunction = (x: number, y: number) => number

/** `eval` and `column` of a function of one or two numbers that fit a double. */
export function overNumbers(apply: NumberFunction): Pick<ScalarFunction, 'eval' | 'column' | 'total'> {
  return {
    total: true,
    eval: ([x, y]) => apply(Number(x), Number(y ?? 0)),
    column: numberColumn(apply),
  }
}

function numberColumn(apply: NumberFunction): ColumnFunction {
  return ({ args, type }, { memory, rowsMax }) => {
    const [first, second] = args
    if (first === undefined) return undefined
    const left = new Float64Array(rowsMax)
    const right = new Float64Array(second === undefined ? 0 : rowsMax)
    return {
      args,
      run: (rows, [x = 0, y = 0], out) => {
        readNumbers(memory, first.type, x, left.subarray(0, rows))
        if (second === undefined) applyOne(apply, left, rows)
        else {
          readNumbers(memory, second.type, y, right.subarray(0, rows))
          applyTwo(apply, left, right, rows)
        }
        writeNumbers(memory, type, out, left.subarray(0, rows))
        return 0
      },
    }
  }
}

function applyOne(apply: NumberFunction, values: Float64Array, rows: number): void {
  for (let row = 0; row < rows; row++) {
    const x = values[row]!
    if (!Number.isNaN(x)) values[row] = apply(x, 0)
  }
}

function applyTwo(apply: NumberFunction, values: Float64Array, others: Float64Array, rows: number): void {
  for (let row = 0; row < rows; row++) {
    const x = values[row]!
    const y = others[row]!
    values[row] = Number.isNaN(x) || Number.isNaN(y) ? Number.NaN : apply(x, y)
  }
}

type Numbers = Float64Array | Float32Array | Int32Array | Int16Array | Int8Array

function numbersAt({ f64, f32, i32, i16, i8 }: SharedMemory, type: DataType, address: number, rows: number): Numbers {
  const first = address / widthOf(type)
  switch (storageOf(type)) {
    case 'f64':
      return f64.subarray(first, first + rows)
    case 'f32':
      return f32.subarray(first, first + rows)
    case 'i32':
      return i32.subarray(first, first + rows)
    case 'i16':
      return i16.subarray(first, first + rows)
    default:
      return i8.subarray(first, first + rows)
  }
}

function readNumbers(memory: SharedMemory, type: DataType, address: number, out: Float64Array): void {
  out.set(numbersAt(memory, type, address, out.length))
  if (type.name !== 'INT') return
  for (let row = 0; row < out.length; row++) if (out[row] === intMin) out[row] = Number.NaN
}

/** Infinite results, and those out of the range of an INT, are NULL, as with `eval`. */
function writeNumbers(memory: SharedMemory, type: DataType, address: number, values: Float64Array): void {
  if (type.name === 'INT') {
    for (let row = 0; row < values.length; row++) {
      const value = values[row]!
      if (!(value > intMin && value < -intMin)) values[row] = intMin
    }
  } else {
    const isShort = type.name === 'FLOAT'
    for (let row = 0; row < values.length; row++) {
      const value = values[row]!
      if (!Number.isFinite(isShort ? Math.fround(value) : value)) values[row] = Number.NaN
    }
  }
  numbersAt(memory, type, address, values.length).set(values)
}

// Comparisons -------------------------------------------------------------------------------------------------------

const small: ReadonlySet<ColumnType> = new Set<ColumnType>(['BYTE', 'SHORT', 'INT', 'FLOAT', 'DOUBLE'])

type Holds = (x: number, y: number) => boolean

/** NULL equals NULL, and is neither less nor greater than anything. */
const isEqual: Holds = (x, y) => x === y || (Number.isNaN(x) && Number.isNaN(y))

const comparisons: Readonly<Record<string, Holds>> = {
  '=': isEqual,
  '<>': (x, y) => !isEqual(x, y),
  '<': (x, y) => x < y,
  '>': (x, y) => x > y,
  '<=': (x, y) => x <= y || isEqual(x, y),
  '>=': (x, y) => x >= y || isEqual(x, y),
}

/** A comparison of two numbers that fit a double; undefined for other types. */
export function compareNumbers({ name, args }: Call, { memory, rowsMax }: ColumnContext): ColumnPlan | undefined {
  const [left, right] = args
  const holds = comparisons[name]
  if (left === undefined || right === undefined || holds === undefined) return undefined
  if (!small.has(left.type.name) || left.type.name !== right.type.name) return undefined
  const [x, y] = [new Float64Array(rowsMax), new Float64Array(rowsMax)]
  return {
    args,
    run: (rows, [a = 0, b = 0], out) => {
      readNumbers(memory, left.type, a, x.subarray(0, rows))
      readNumbers(memory, right.type, b, y.subarray(0, rows))
      const { u8 } = memory
      for (let row = 0; row < rows; row++) u8[out + row] = holds(x[row]!, y[row]!) ? 1 : 0
      return 0
    },
  }
}

// Logic -------------------------------------------------------------------------------------------------------------

export const andColumn = logicColumn((bytes, out, rows, other) => {
  for (let row = 0; row < rows; row++) bytes[out + row] = bytes[out + row]! & bytes[other + row]!
})

export const orColumn = logicColumn((bytes, out, rows, other) => {
  for (let row = 0; row < rows; row++) bytes[out + row] = bytes[out + row]! | bytes[other + row]!
})

export const notColumn = logicColumn((bytes, out, rows) => {
  for (let row = 0; row < rows; row++) bytes[out + row] = bytes[out + row]! ^ 1
})

type Combine = (bytes: Uint8Array, out: number, rows: number, other: number) => void

/** The first argument, combined with each further one. */
function logicColumn(combine: Combine): ColumnFunction {
  return ({ args }: { readonly args: readonly Expression[] }, { memory: { u8 } }) => ({
    args,
    run: (rows, [first = 0, ...others], out) => {
      u8.copyWithin(out, first, first + rows)
      for (const other of others.length === 0 ? [first] : others) combine(u8, out, rows, other)
      return 0
    },
  })
}
