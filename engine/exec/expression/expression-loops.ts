// Arithmetic, comparison and logic of small numbers as closures over typed arrays: what a query without generated kernels
// uses before it falls back to the interpreter. A number is a double with NaN as NULL, so only types that fit 2^53 belong
// here: BYTE, SHORT, INT, FLOAT, DOUBLE, and BOOLEAN for conditions. LONG and times go the exact way.

import type { SharedMemory } from '../../memory/shared-memory.js'
import type { Expression } from '../../sql/plan/plan.js'
import { type ColumnType, type DataType, widthOf } from '../../types/column-types.js'
import { intMin } from '../../types/number.js'
import type { ExecContext } from '../batch/context.js'
import { finite } from '../batch/values.js'
import { batchRowsMax, type Vector } from '../batch/vector.js'
import type { VectorEvaluator } from './expression.js'

type NumberAt = (row: number) => number
type TruthAt = (row: number) => boolean

/** Addresses of the current batch's columns, which the closures read through. */
interface Inputs {
  readonly memory: SharedMemory
  readonly addresses: number[]
}

type Call = Extract<Expression, { kind: 'call' }>

const small: ReadonlySet<ColumnType> = new Set(['BYTE', 'SHORT', 'INT', 'FLOAT', 'DOUBLE'])

/** undefined: something in it is of another kind. */
export function compileLoop(expression: Expression, context: ExecContext): VectorEvaluator | undefined {
  const { memory, space } = context
  const { type } = expression
  const inputs: Inputs = { memory, addresses: [] }
  const truth = type.name === 'BOOLEAN' ? truthOf(expression, inputs) : undefined
  const number = small.has(type.name) ? numberOf(expression, inputs) : undefined
  if (truth === undefined && number === undefined) return undefined
  const address = space.take((context.rowsMax ?? batchRowsMax) * widthOf(type))
  const put = number === undefined ? undefined : writerOf(memory, type, address, number)
  return ({ rows, vectors }) => {
    vectors.forEach((vector: Vector | undefined, index) => {
      inputs.addresses[index] = vector?.address ?? 0
    })
    if (truth !== undefined) for (let row = 0; row < rows; row++) memory.u8[address + row] = truth(row) ? 1 : 0
    else for (let row = 0; row < rows; row++) put?.(row)
    return { type, address, dictionary: 0 }
  }
}

function writerOf({ i8, i16, i32, f32, f64 }: SharedMemory, type: DataType, address: number, at: NumberAt) {
  switch (type.name) {
    case 'BYTE':
      return (row: number): void => {
        i8[address + row] = at(row)
      }
    case 'SHORT':
      return (row: number): void => {
        i16[(address >>> 1) + row] = at(row)
      }
    case 'INT':
      return (row: number): void => {
        const value = at(row)
        i32[(address >>> 2) + row] = Number.isNaN(value) ? intMin : value
      }
    case 'FLOAT':
      return (row: number): void => {
        f32[(address >>> 2) + row] = at(row)
      }
    default:
      return (row: number): void => {
        f64[(address >>> 3) + row] = at(row)
      }
  }
}

function numberOf(expression: Expression, inputs: Inputs): NumberAt | undefined {
  if (!small.has(expression.type.name)) return undefined
  if (expression.kind === 'column') return columnAt(expression.index, expression.type, inputs)
  if (expression.kind === 'constant') {
    const value = expression.value === null ? Number.NaN : Number(expression.value)
    return () => value
  }
  return expression.kind === 'call' ? callAt(expression, inputs) : undefined
}

function columnAt(index: number, { name }: DataType, { memory, addresses }: Inputs): NumberAt {
  const { i8, i16, i32, f32, f64 } = memory
  const address = (): number => addresses[index] as number
  switch (name) {
    case 'BYTE':
      return (row) => i8[address() + row]!
    case 'SHORT':
      return (row) => i16[(address() >>> 1) + row]!
    case 'INT':
      return (row) => {
        const value = i32[(address() >>> 2) + row]!
        return value === intMin ? Number.NaN : value
      }
    case 'FLOAT':
      return (row) => f32[(address() >>> 2) + row]!
    default:
      return (row) => f64[(address() >>> 3) + row]!
  }
}

function callAt({ name, args, type }: Call, inputs: Inputs): NumberAt | undefined {
  const [left, right] = args
  const a = left === undefined ? undefined : numberOf(left, inputs)
  if (left === undefined || a === undefined) return undefined
  const widens = small.has(left.type.name) && (type.name === 'DOUBLE' || left.type.name === type.name)
  if (name === 'cast' && widens) return a
  const b = right === undefined || args.length !== 2 ? undefined : numberOf(right, inputs)
  if (b === undefined || left.type.name !== type.name || right?.type.name !== type.name) return undefined
  if (type.name === 'INT') return intAt(name, a, b)
  const exact = doubleAt(name, a, b)
  if (exact === undefined) return undefined
  if (type.name === 'DOUBLE') return (row) => finite(exact(row))
  return type.name === 'FLOAT' ? (row) => finite(Math.fround(exact(row))) : undefined
}

function doubleAt(name: string, a: NumberAt, b: NumberAt): NumberAt | undefined {
  switch (name) {
    case '+':
      return (row) => a(row) + b(row)
    case '-':
      return (row) => a(row) - b(row)
    case '*':
      return (row) => a(row) * b(row)
    case '/':
      return (row) => a(row) / b(row)
    default:
      return undefined
  }
}

/** What is beyond 32 bits is NULL, and so is division by zero. Products are rounded beyond 2^53, which is out of range anyway. */
function intAt(name: string, a: NumberAt, b: NumberAt): NumberAt | undefined {
  const apply = { '+': addInt, '-': subtractInt, '*': multiplyInt, '/': divideInt }[name]
  if (apply === undefined) return undefined
  return (row) => {
    const [x, y] = [a(row), b(row)]
    if (Number.isNaN(x) || Number.isNaN(y)) return Number.NaN
    const value = apply(x, y)
    return value > intMin && value < -intMin ? value : Number.NaN
  }
}

const addInt = (a: number, b: number): number => a + b
const subtractInt = (a: number, b: number): number => a - b
const multiplyInt = (a: number, b: number): number => a * b + 0
const divideInt = (a: number, b: number): number => (b === 0 ? Number.NaN : (a / b) | 0)

function truthOf(expression: Expression, inputs: Inputs): TruthAt | undefined {
  if (expression.type.name !== 'BOOLEAN') return undefined
  if (expression.kind === 'constant') {
    const holds = expression.value === true
    return () => holds
  }
  if (expression.kind === 'column') {
    const { u8 } = inputs.memory
    return (row) => u8[(inputs.addresses[expression.index] as number) + row] !== 0
  }
  return expression.kind === 'call' ? conditionOf(expression, inputs) : undefined
}

function conditionOf({ name, args }: Call, inputs: Inputs): TruthAt | undefined {
  if (name === 'and' || name === 'or' || name === 'not') {
    const parts = args.map((argument) => truthOf(argument, inputs))
    if (parts.some((part) => part === undefined)) return undefined
    return logicOf(name, parts as TruthAt[])
  }
  const [left, right, ...more] = args
  if (left === undefined || right === undefined || more.length > 0 || left.type.name !== right.type.name)
    return undefined
  const [a, b] = [numberOf(left, inputs), numberOf(right, inputs)]
  return a === undefined || b === undefined ? undefined : comparisonOf(name, a, b)
}

function logicOf(name: 'and' | 'or' | 'not', parts: readonly TruthAt[]): TruthAt {
  const [first] = parts as [TruthAt]
  if (name === 'not') return (row) => !first(row)
  return name === 'and' ? (row) => parts.every((part) => part(row)) : (row) => parts.some((part) => part(row))
}

/** NULL equals NULL, and is neither less nor greater than anything. */
function comparisonOf(name: string, a: NumberAt, b: NumberAt): TruthAt | undefined {
  const equal = (x: number, y: number): boolean => x === y || (Number.isNaN(x) && Number.isNaN(y))
  switch (name) {
    case '=':
      return (row) => equal(a(row), b(row))
    case '<>':
      return (row) => !equal(a(row), b(row))
    case '<':
      return (row) => a(row) < b(row)
    case '>':
      return (row) => a(row) > b(row)
    case '<=':
      return (row) => a(row) <= b(row) || equal(a(row), b(row))
    case '>=':
      return (row) => a(row) >= b(row) || equal(a(row), b(row))
    default:
      return undefined
  }
}
