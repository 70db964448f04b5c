// SQL functions of PostgreSQL that change, join and compare one-dimensional arrays of doubles. NaN represents a NULL
// element.

import { type DataType, dataType } from '../../types/column-types.js'
import type { ArrayValue, Value } from '../../types/value.js'
import type { ScalarFunction } from './function-types.js'

const vector = (): DataType => dataType('ARRAY', 1)

function elementsOf(value: Value | undefined): number[] {
  return value === null || value === undefined ? [] : Array.from((value as ArrayValue).data)
}

function arrayOf(elements: readonly number[]): ArrayValue {
  return { shape: [elements.length], data: Float64Array.from(elements) }
}

/** The element value; NaN for NULL. */
function elementOf(value: Value | undefined): number {
  return typeof value === 'number' ? value : Number.NaN
}

/** Joins the elements. A null `missing` skips NULL elements. */
function joined(value: Value | undefined, separator: Value | undefined, missing: Value): string {
  return elementsOf(value)
    .map((element) => (Number.isNaN(element) ? missing : String(element)))
    .filter((text) => text !== null)
    .join(String(separator))
}

export const pgArrays: readonly ScalarFunction[] = [
  {
    name: 'array_append',
    takes: ['ARRAY', 'DOUBLE'],
    gives: vector,
    description: 'Appends an element to an array.',
    example: ['array_append(ARRAY[1.0], 2.0)', '[1.0,2.0]'],
    seesNull: true,
    eval: ([array, element]) => arrayOf([...elementsOf(array), elementOf(element)]),
  },
  {
    name: 'array_prepend',
    takes: ['DOUBLE', 'ARRAY'],
    gives: vector,
    description: 'Prepends an element to an array.',
    example: ['array_prepend(0.0, ARRAY[1.0])', '[0.0,1.0]'],
    seesNull: true,
    eval: ([element, array]) => arrayOf([elementOf(element), ...elementsOf(array)]),
  },
  {
    name: 'array_cat',
    takes: ['ARRAY', 'ARRAY'],
    gives: vector,
    description: 'Concatenates two arrays.',
    example: ['array_cat(ARRAY[1.0], ARRAY[2.0])', '[1.0,2.0]'],
    seesNull: true,
    eval: ([array = null, other = null]) => {
      if (array === null || other === null) return array ?? other
      return arrayOf([...elementsOf(array), ...elementsOf(other)])
    },
  },
  {
    name: 'array_remove',
    takes: ['ARRAY', 'DOUBLE'],
    gives: vector,
    description: 'Removes the elements that equal a number.',
    example: ['array_remove(ARRAY[1.0, 2.0, 1.0], 1.0)', '[2.0]'],
    eval: ([array, element]) => arrayOf(elementsOf(array).filter((other) => other !== element)),
  },
  {
    name: 'array_to_string',
    takes: ['ARRAY', 'TEXT'],
    gives: 'STRING',
    description: 'The elements of an array with a separator between them.',
    example: ["array_to_string(ARRAY[1.0, 2.5], '-')", '1-2.5'],
    eval: ([array, separator]) => joined(array, separator, null),
  },
  {
    name: 'array_to_string',
    takes: ['ARRAY', 'TEXT', 'TEXT'],
    gives: 'STRING',
    description: 'The same, with a string in place of NULL elements.',
    example: ["array_to_string(ARRAY[1.0, null], '-', '?')", '1-?'],
    eval: ([array, separator, missing]) => joined(array, separator, missing ?? null),
  },
  {
    name: 'array_ndims',
    takes: ['ARRAY'],
    gives: 'INT',
    description: 'Number of dimensions of an array; NULL for an empty one.',
    example: ['array_ndims(ARRAY[[1.0]])', '2'],
    eval: ([array]: readonly [ArrayValue]) => (array.data.length === 0 ? null : array.shape.length),
  },
  {
    name: 'contains',
    takes: ['ARRAY', 'ARRAY'],
    gives: 'BOOLEAN',
    description: 'Whether an array contains all elements of another; written `array @> other`.',
    example: ['contains(ARRAY[1.0, 2.0], ARRAY[2.0])', 'true'],
    eval: ([array = null, other = null]) => {
      const elements = new Set(elementsOf(array))
      return elementsOf(other).every((element) => !Number.isNaN(element) && elements.has(element))
    },
  },
  {
    name: 'lists_overlap',
    takes: ['ARRAY', 'ARRAY'],
    gives: 'BOOLEAN',
    description: 'Whether two arrays share an element: written `array && other`.',
    example: ['lists_overlap(ARRAY[1.0, 2.0], ARRAY[2.0, 3.0])', 'true'],
    eval: ([array = null, other = null]) => {
      const elements = new Set(elementsOf(array))
      return elementsOf(other).some((element) => !Number.isNaN(element) && elements.has(element))
    },
  },
]
