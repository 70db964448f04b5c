// Helpers that define SQL functions of one or two doubles, as entries of the function tables, from a plain TypeScript
// function.

import { overNumbers } from './column/numbers.js'
import type { ScalarFunction } from './function-types.js'

type Example = readonly [string, string] | null

export function unary(
  name: string,
  description: string,
  example: Example,
  apply: (x: number) => number,
): ScalarFunction {
  return {
    name,
    takes: ['DOUBLE'],
    gives: 'DOUBLE',
    description,
    example,
    ...overNumbers(apply),
  }
}

export function binary(
  name: string,
  description: string,
  example: Example,
  apply: (x: number, y: number) => number,
): ScalarFunction {
  return {
    name,
    takes: ['DOUBLE', 'DOUBLE'],
    gives: 'DOUBLE',
    description,
    example,
    ...overNumbers(apply),
  }
}
