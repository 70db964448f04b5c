// Rows of the tables of functions for mathematics on doubles.

import type { ScalarFunction } from './function-types.js'

type Example = readonly [string, string] | null

export function unary(name: string, says: string, example: Example, apply: (x: number) => number): ScalarFunction {
  return {
    name,
    takes: ['DOUBLE'],
    gives: 'DOUBLE',
    says,
    example,
    eval: ([x]) => apply(x as number),
    numbers: apply,
  }
}

export function binary(
  name: string,
  says: string,
  example: Example,
  apply: (x: number, y: number) => number,
): ScalarFunction {
  return {
    name,
    takes: ['DOUBLE', 'DOUBLE'],
    gives: 'DOUBLE',
    says,
    example,
    eval: ([x, y]) => apply(x as number, y as number),
    numbers: apply,
  }
}
