// SQL functions on arrays of doubles: aggregation of elements, element-wise functions, access, construction, matrix
// algebra. NaN represents a NULL element. Indexes count from 1.

import { SqlError } from '../../base/errors.js'
import { arrayDimensionsMax, valueBytesMax } from '../../base/limits.js'
import { dataType } from '../../types/column-types.js'
import { type ArrayValue, isArrayValue, type Value } from '../../types/value.js'
import { combineElements, elementWise } from './array-elements.js'
import type { BoundArgument, ScalarFunction } from './function-types.js'

const array = (value: Value | undefined): ArrayValue => value as ArrayValue

function present(data: Float64Array): number[] {
  return Array.from(data).filter((value) => Number.isFinite(value))
}

function fold(
  name: string,
  description: string,
  example: readonly [string, string],
  apply: (values: readonly number[]) => number | null,
): ScalarFunction {
  return { name, takes: ['ARRAY'], gives: 'DOUBLE', description, example, eval: ([a]) => apply(present(array(a).data)) }
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0)

function deviation(values: readonly number[], population: boolean): number | null {
  const count = values.length - (population ? 0 : 1)
  if (count <= 0) return null
  const mean = sum(values) / values.length
  return Math.sqrt(sum(values.map((value) => (value - mean) ** 2)) / count)
}

const folds: ScalarFunction[] = [
  fold('array_sum', 'Sum of the elements.', ['array_sum(ARRAY[1.0, 2.0])', '3.0'], (v) =>
    v.length === 0 ? null : sum(v),
  ),
  fold('array_avg', 'Mean of the elements.', ['array_avg(ARRAY[1.0, 2.0])', '1.5'], (v) =>
    v.length === 0 ? null : sum(v) / v.length,
  ),
  fold('array_min', 'Smallest element.', ['array_min(ARRAY[1.0, 2.0])', '1.0'], (v) =>
    v.length === 0 ? null : v.reduce((least, value) => Math.min(least, value)),
  ),
  fold('array_max', 'Largest element.', ['array_max(ARRAY[1.0, 2.0])', '2.0'], (v) =>
    v.length === 0 ? null : v.reduce((most, value) => Math.max(most, value)),
  ),
  fold('array_stddev', 'Sample standard deviation.', ['array_stddev(ARRAY[1.0, 3.0])', '1.4142135623730951'], (v) =>
    deviation(v, false),
  ),
  fold(
    'array_stddev_samp',
    'Sample standard deviation.',
    ['array_stddev_samp(ARRAY[1.0, 3.0])', '1.4142135623730951'],
    (v) => deviation(v, false),
  ),
  fold('array_stddev_pop', 'Population standard deviation.', ['array_stddev_pop(ARRAY[1.0, 3.0])', '1.0'], (v) =>
    deviation(v, true),
  ),
  {
    name: 'array_count',
    takes: ['ARRAY'],
    gives: 'INT',
    description: 'Number of elements that are not NULL.',
    example: ['array_count(ARRAY[1.0, null])', '1'],
    seesNull: true,
    eval: ([a]) => (a === null ? 0 : present(array(a).data).length),
  },
]

function mapRow(
  name: string,
  description: string,
  example: readonly [string, string] | null,
  apply: (data: Float64Array) => Float64Array,
): ScalarFunction {
  return {
    name,
    takes: ['ARRAY'],
    gives: 'FIRST',
    description,
    example,
    eval: ([a]) => mapLast(array(a), apply),
  }
}

/** Applies the function to each one-dimensional array of the last dimension. */
function mapLast({ shape, data }: ArrayValue, apply: (data: Float64Array) => Float64Array): ArrayValue {
  const width = shape[shape.length - 1] ?? 0
  const result = new Float64Array(data.length)
  for (let start = 0; start < data.length; start += width) result.set(apply(data.subarray(start, start + width)), start)
  return { shape, data: result }
}

function cumulative(data: Float64Array): Float64Array {
  let total = Number.NaN
  return data.map((value) => {
    if (Number.isFinite(value)) total = (Number.isNaN(total) ? 0 : total) + value
    return total
  })
}

/** The elements in order, with NULLs (NaN) first or last. */
function orderedElements(data: Float64Array, descending: boolean, nullsFirst: boolean): Float64Array {
  const values = data.filter((value) => !Number.isNaN(value)).sort()
  const result = new Float64Array(data.length).fill(Number.NaN)
  result.set(descending ? values.reverse() : values, nullsFirst ? data.length - values.length : 0)
  return result
}

const maps: ScalarFunction[] = [
  {
    name: 'array_cum_sum',
    takes: ['ARRAY'],
    gives: () => dataType('ARRAY', 1),
    description: 'Running sum over all elements, in one dimension.',
    example: ['array_cum_sum(ARRAY[1.0, 2.0])', '[1.0,3.0]'],
    eval: ([a]) => ({ shape: [array(a).data.length], data: cumulative(array(a).data) }),
  },
  mapRow(
    'array_reverse',
    'Elements of the last dimension in reverse order.',
    ['array_reverse(ARRAY[1.0, 2.0])', '[2.0,1.0]'],
    (data) => data.slice().reverse(),
  ),
  mapRow(
    'array_sort',
    'Elements of the last dimension in ascending order.',
    ['array_sort(ARRAY[2.0, 1.0])', '[1.0,2.0]'],
    (data) => data.slice().sort(),
  ),
  ...([['BOOLEAN'], ['BOOLEAN', 'BOOLEAN']] as const).map(
    (flags): ScalarFunction => ({
      name: 'array_sort',
      takes: ['ARRAY', ...flags],
      gives: 'FIRST',
      description:
        'Sorted elements: descending if the first flag is true; NULLs first if the second is, by default when descending.',
      example: ['array_sort(ARRAY[2.0, 1.0, 3.0], true)', '[3.0,2.0,1.0]'],
      eval: ([a, descending, nullsFirst = descending]) =>
        mapLast(array(a), (data) => orderedElements(data, descending === true, nullsFirst === true)),
    }),
  ),
  {
    name: 'flatten',
    takes: ['ARRAY'],
    gives: () => dataType('ARRAY', 1),
    description: 'All elements in one dimension.',
    example: ['flatten(ARRAY[[1.0, 2.0]])', '[1.0,2.0]'],
    eval: ([a]) => ({ shape: [array(a).data.length], data: array(a).data }),
  },
  {
    name: 'transpose',
    takes: ['ARRAY'],
    gives: 'FIRST',
    description: 'Dimensions in reverse order.',
    example: ['transpose(ARRAY[[1.0, 2.0]])', '[[1.0],[2.0]]'],
    eval: ([a]) => transpose(array(a)),
  },
  {
    name: 'round',
    takes: ['ARRAY', 'INT'],
    gives: 'FIRST',
    description: 'Rounds every element.',
    example: null,
    seesNull: true,
    eval: ([a, places]: readonly [Value, number | null]) => {
      if (a === null) return null
      const factor = places === null ? Number.NaN : 10 ** places
      return { shape: array(a).shape, data: array(a).data.map((value) => Math.round(value * factor) / factor) }
    },
  },
]

/** Row-major strides: distance between neighbouring elements of each dimension. */
function strides(shape: readonly number[]): number[] {
  const result = new Array<number>(shape.length).fill(1)
  for (let index = shape.length - 2; index >= 0; index--)
    result[index] = (result[index + 1] ?? 1) * (shape[index + 1] ?? 1)
  return result
}

function transpose({ shape, data }: ArrayValue): ArrayValue {
  const newShape = [...shape].reverse()
  const from = strides(shape).reverse()
  const to = strides(newShape)
  const source = (target: number): number => {
    let rest = target
    let position = 0
    for (const [index, step] of to.entries()) {
      position += Math.floor(rest / step) * (from[index] ?? 0)
      rest %= step
    }
    return position
  }
  return { shape: newShape, data: data.map((_, index) => data[source(index)] ?? Number.NaN) }
}

const lookups: ScalarFunction[] = [
  {
    name: 'array_position',
    takes: ['ARRAY', 'DOUBLE'],
    gives: 'INT',
    description: 'Position of the first equal element (NULL equals NULL); NULL if there is none.',
    example: ['array_position(ARRAY[1.0, 2.0], 2.0)', '2'],
    seesNull: true,
    eval: ([a, value]) => {
      if (a === null) return null
      const { data } = array(a)
      return (typeof value === 'number' ? data.indexOf(value) : data.findIndex(Number.isNaN)) + 1 || null
    },
  },
  {
    name: 'insertion_point',
    takes: ['ARRAY', 'DOUBLE'],
    gives: 'INT',
    description: 'Index at which the value would be inserted into a sorted array, after equal elements.',
    example: ['insertion_point(ARRAY[1.0, 3.0], 2.0)', '2'],
    eval: ([a, value]: readonly [Value, number]) => array(a).data.filter((element) => element <= value).length + 1,
  },
  {
    name: 'insertion_point',
    takes: ['ARRAY', 'DOUBLE', 'BOOLEAN'],
    gives: 'INT',
    description:
      'Index at which the value would be inserted into a sorted array, before equal elements if the flag is true.',
    example: ['insertion_point(ARRAY[1.0, 3.0], 3.0, true)', '2'],
    eval: ([a, value, before]: readonly [Value, number, Value]) => {
      const isLower = (element: number): boolean => (before === true ? element < value : element <= value)
      return array(a).data.filter(isLower).length + 1
    },
  },
  {
    name: 'dim_length',
    takes: ['ARRAY', 'INT'],
    gives: 'INT',
    description: 'Length of a dimension.',
    example: ['dim_length(ARRAY[[1.0, 2.0]], 2)', '2'],
    check: ([operand, dimension]) => {
      if (typeof dimension?.constant !== 'number' || operand?.type.name !== 'ARRAY') return
      const { constant, position } = dimension
      if (constant < 1) throw new SqlError(`array dimension out of bounds [dim=${constant}]`, position)
      if (constant > operand.type.a)
        throw new SqlError(`array dimension out of bounds [dim=${constant}, dims=${operand.type.a}]`, position)
    },
    eval: ([a, dimension]: readonly [Value, number]) => {
      const length = array(a).shape[dimension - 1]
      if (length === undefined) throw new SqlError(`array dimension out of bounds [dim=${String(dimension)}]`, 0)
      return length
    },
  },
  {
    name: 'array_length',
    takes: ['ARRAY', 'INT'],
    gives: 'INT',
    description: 'Length of a dimension; NULL if it does not exist.',
    example: ['array_length(ARRAY[[1.0, 2.0]], 2)', '2'],
    eval: ([a, dimension]: readonly [Value, number]) => array(a).shape[dimension - 1] || null,
  },
  {
    name: 'cardinality',
    takes: ['ARRAY'],
    gives: 'INT',
    description: 'Number of elements in all dimensions.',
    example: ['cardinality(ARRAY[[1.0, 2.0], [3.0, 4.0]])', '4'],
    eval: ([a]) => array(a).data.length,
  },
  {
    name: 'array_element',
    takes: ['ARRAY', 'INT'],
    more: 'INT',
    gives: (args) => {
      const left = (args[0]?.type.a ?? 1) - (args.length - 1)
      return left > 0 ? dataType('ARRAY', left) : dataType('DOUBLE')
    },
    description: 'An element or sub-array; written `a[1]` or `a[1, 2]`. NULL beyond the end.',
    example: ['ARRAY[1.0, 2.0][1]', '1.0'],
    eval: ([a, ...indexes]) => element(array(a), indexes as number[]),
  },
]

function element({ shape, data }: ArrayValue, indexes: readonly number[]): Value {
  const steps = strides(shape)
  let start = 0
  for (const [dimension, index] of indexes.entries()) {
    const length = shape[dimension]
    if (length === undefined) return null
    const at = index < 0 ? length + index : index - 1
    if (at < 0 || at >= length) return null
    start += at * (steps[dimension] ?? 1)
  }
  const rest = shape.slice(indexes.length)
  if (rest.length === 0) return data[start] ?? null
  return { shape: rest, data: data.slice(start, start + rest.reduce((product, size) => product * size, 1)) }
}

// Building ----------------------------------------------------------------------------------------------------------

function arrayOf(args: readonly BoundArgument[]): ReturnType<typeof dataType> {
  const inner = args[0]?.type
  const dimensions = inner?.name === 'ARRAY' ? inner.a + 1 : 1
  if (dimensions > arrayDimensionsMax) throw new SqlError('too many array dimensions', args[0]?.position ?? 0)
  return dataType('ARRAY', dimensions)
}

function checkBuild(args: readonly BoundArgument[], position: number): void {
  const [count, size, ...fillers] = args
  if (count?.constant === undefined)
    throw new SqlError('expression type mismatch, expected: LONG constant, actual: LONG', count?.position ?? position)
  const arrays = Number(count.constant ?? 0)
  if (!Number.isInteger(arrays) || arrays < 1) throw new SqlError('nArrays must be a positive integer', count.position)
  if (fillers.length !== arrays) {
    const message = `array_build with nArrays=${arrays} requires ${arrays + 2} arguments, got ${args.length}`
    throw new SqlError(message, position)
  }
  if (typeof size?.constant === 'number' && size.constant < 0)
    throw new SqlError(`size must not be negative [size=${size.constant}]`, size.position)
}

function buildArray(count: number, size: Value, fillers: readonly Value[]): ArrayValue | null {
  if (size === null) return null
  const length = typeof size === 'object' && 'data' in size ? size.data.length : Number(size)
  if (length * count * 8 > valueBytesMax || length < 0) throw new SqlError('array is too long', 0)
  const data = new Float64Array(length * count).fill(Number.NaN)
  for (const [index, filler] of fillers.entries()) {
    const row = data.subarray(index * length, (index + 1) * length)
    if (isArrayValue(filler)) row.set(filler.data.subarray(0, length))
    else if (filler !== null) row.fill(Number(filler))
  }
  return { shape: count > 1 ? [count, length] : [length], data }
}

/** An array of arrays of equal shape; null if their shapes differ. */
export function joinedArrays(values: readonly Value[]): ArrayValue | null {
  const parts = values.filter(isArrayValue)
  const [first] = parts
  if (first === undefined || parts.length < values.length) return null
  const shape = first.shape.join()
  if (!parts.every((part) => part.shape.join() === shape)) return null
  const data = new Float64Array(parts.length * first.data.length)
  for (const [index, part] of parts.entries()) data.set(part.data, index * first.data.length)
  return { shape: [parts.length, ...first.shape], data }
}

const building: ScalarFunction[] = [
  {
    name: 'array',
    takes: ['ANY'],
    more: 'ANY',
    gives: arrayOf,
    description: 'An array of numbers, or of arrays of equal shape; written `ARRAY[1, 2]`.',
    example: ['ARRAY[1, 2]', '[1.0,2.0]'],
    seesNull: true,
    eval: (args) => {
      if (isArrayValue(args[0])) return joinedArrays(args)
      return {
        shape: [args.length],
        data: Float64Array.from(args, (value) => (value === null ? Number.NaN : Number(value))),
      }
    },
  },
  {
    name: 'array_build',
    takes: ['LONG', 'ANY', 'ANY'],
    more: 'ANY',
    gives: ([count]) => dataType('ARRAY', Number(count?.constant) > 1 ? 2 : 1),
    description:
      'A number of arrays of one length (a number, or the length of an array), each filled with a number or the elements of an array.',
    example: ['array_build(2, 3, 0, 1)', '[[0.0,0.0,0.0],[1.0,1.0,1.0]]'],
    seesNull: true,
    check: checkBuild,
    eval: ([count, size, ...fillers]) => buildArray(Number(count), size ?? null, fillers),
  },
]

// Algebra -------------------------------------------------------------------------------------------------------

const algebra: ScalarFunction[] = [
  {
    name: 'dot_product',
    takes: ['ARRAY', 'ARRAY'],
    gives: 'DOUBLE',
    description: 'Sum of the products of elements; NULLs are ignored.',
    example: ['dot_product(ARRAY[1.0, 2.0], ARRAY[3.0, 4.0])', '11.0'],
    check: ([left, right]) => {
      const [a, b] = [left?.constant, right?.constant].map((value) => (value ? `[${array(value).shape.join()}]` : ''))
      if (a !== b && a !== '' && b !== '')
        throw new SqlError(`arrays have different shapes [leftShape=${a}, rightShape=${b}]`, left?.position ?? 0)
    },
    eval: ([a, b]) => sum(present(array(a).data.map((value, index) => value * (array(b).data[index] ?? Number.NaN)))),
  },
  ...(
    [
      ['ARRAY', 'DOUBLE'],
      ['DOUBLE', 'ARRAY'],
    ] as const
  ).map(
    (takes): ScalarFunction => ({
      name: 'dot_product',
      takes,
      gives: 'DOUBLE',
      description: 'Sum of the elements multiplied by the number.',
      example: takes[0] === 'ARRAY' ? ['dot_product(ARRAY[1.0, 2.0], 3.0)', '9.0'] : null,
      eval: (args) => {
        const [elements, factor] = takes[0] === 'ARRAY' ? args : [args[1], args[0]]
        return sum(present(array(elements).data.map((value) => value * (factor as number))))
      },
    }),
  ),
  {
    name: 'matmul',
    takes: ['ARRAY', 'ARRAY'],
    gives: () => dataType('ARRAY', 2),
    description: 'Product of two matrices; an array of one dimension is a row on the left, a column on the right.',
    example: ['matmul(ARRAY[[1.0]], ARRAY[[2.0]])', '[[2.0]]'],
    check: ([a, b]) => {
      if (isArrayValue(a?.constant) && isArrayValue(b?.constant)) matrixSizes(a.constant, b.constant, a.position)
    },
    eval: ([a, b], { position }) => multiply(array(a), array(b), position),
  },
]

const combined: ScalarFunction[] = Object.entries(elementWise).map(([name, { description }]) => ({
  name,
  takes: ['ARRAY', 'ARRAY'],
  more: 'ARRAY',
  gives: 'FIRST',
  description,
  example: name === 'array_elem_sum' ? [`${name}(ARRAY[1.0], ARRAY[2.0, 3.0])`, '[3.0,3.0]'] : null,
  seesNull: true,
  eval: (args) => combineElements(name, args),
}))

/** Rows of the left side; its columns, which must equal the rows of the right side; columns of the right side. */
function matrixSizes(a: ArrayValue, b: ArrayValue, position: number): readonly [number, number, number] {
  if (a.shape.length > 2 || b.shape.length > 2)
    throw new SqlError('matmul takes arrays of one or two dimensions', position)
  const [rows = 0, inner = 0] = a.shape.length === 1 ? [1, ...a.shape] : a.shape
  const [height = 0, columns = 0] = b.shape.length === 1 ? [...b.shape, 1] : b.shape
  if (inner === height) return [rows, inner, columns]
  const lengths = `[leftRowLen=${inner}, rightColLen=${height}]`
  throw new SqlError(`left array row length doesn't match right array column length ${lengths}`, position)
}

function multiply(a: ArrayValue, b: ArrayValue, position: number): ArrayValue {
  const [rows, inner, columns] = matrixSizes(a, b, position)
  const data = new Float64Array(rows * columns)
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) {
      let total = 0
      for (let k = 0; k < inner; k++) total += (a.data[row * inner + k] ?? 0) * (b.data[k * columns + column] ?? 0)
      data[row * columns + column] = total
    }
  }
  return { shape: [rows, columns], data }
}

export const arrayFunctions: readonly ScalarFunction[] = [
  ...folds,
  ...maps,
  ...lookups,
  ...building,
  ...algebra,
  ...combined,
]
