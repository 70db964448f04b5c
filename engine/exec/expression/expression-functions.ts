// Functions of the tables that take one or two numbers (ScalarFunction.numbers), in loops over columns: the arguments are
// vectors, each made in its own fastest way, and nothing is made for a row.

import type { SharedMemory } from '../../memory/shared-memory.js'
import { scalarOf } from '../../sql/functions/registry/evaluate.js'
import type { Expression } from '../../sql/plan/plan.js'
import { type DataType, storageOf, widthOf } from '../../types/column-types.js'
import { intMin } from '../../types/number.js'
import type { ExecContext } from '../batch/context.js'
import { batchRowsMax, type Vector } from '../batch/vector.js'
import type { VectorEvaluator } from './expression.js'
import { partsOf } from './expression-shape.js'

type Call = Extract<Expression, { kind: 'call' }>

/** Each argument takes a vector. */
const partsMax = 64

/** undefined: not of that kind. `compile` compiles an argument. */
export function compileFunction(
  call: Call,
  context: ExecContext,
  compile: (expression: Expression) => VectorEvaluator,
): VectorEvaluator | undefined {
  const apply = scalarOf(call)?.numbers
  const [first, second] = call.args
  if (apply === undefined || first === undefined || partsOf(call, partsMax) > partsMax) return undefined
  const { memory, space } = context
  const { type } = call
  const [x, y] = [compile(first), second === undefined ? undefined : compile(second)]
  const rowsMax = context.rowsMax ?? batchRowsMax
  const [left, right] = [new Float64Array(rowsMax), new Float64Array(y === undefined ? 0 : rowsMax)]
  const address = space.take(rowsMax * widthOf(type))
  return (batch) => {
    read(memory, x(batch), batch.rows, left)
    if (y === undefined) applyOne(apply, left, batch.rows)
    else {
      read(memory, y(batch), batch.rows, right)
      applyTwo(apply, left, right, batch.rows)
    }
    write(memory, type, address, left.subarray(0, batch.rows))
    return { type, address, dictionary: 0 }
  }
}

function applyOne(apply: (x: number, y: number) => number, values: Float64Array, rows: number): void {
  for (let row = 0; row < rows; row++) {
    const x = values[row]!
    if (!Number.isNaN(x)) values[row] = apply(x, 0)
  }
}

function applyTwo(
  apply: (x: number, y: number) => number,
  values: Float64Array,
  others: Float64Array,
  rows: number,
): void {
  for (let row = 0; row < rows; row++) {
    const x = values[row]!
    const y = others[row]!
    values[row] = Number.isNaN(x) || Number.isNaN(y) ? Number.NaN : apply(x, y)
  }
}

type Numbers = Float64Array | Float32Array | Int32Array | Int16Array | Int8Array

function view({ f64, f32, i32, i16, i8 }: SharedMemory, type: DataType, address: number, rows: number): Numbers {
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

/** Values as doubles, NaN for NULL. */
function read(memory: SharedMemory, { type, address }: Vector, rows: number, out: Float64Array): void {
  out.set(view(memory, type, address, rows))
  if (type.name !== 'INT') return
  for (let row = 0; row < rows; row++) if (out[row] === intMin) out[row] = Number.NaN
}

/** What is infinite is NULL, as it is where values are computed one by one. */
function write(memory: SharedMemory, type: DataType, address: number, values: Float64Array): void {
  const missing = type.name === 'INT' ? intMin : Number.NaN
  const isShort = type.name === 'FLOAT'
  for (let row = 0; row < values.length; row++) {
    const value = values[row]!
    if (!Number.isFinite(isShort ? Math.fround(value) : value)) values[row] = missing
  }
  view(memory, type, address, values.length).set(values)
}
