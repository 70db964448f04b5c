// Values that a plan is made without, so that it can be kept for others: those of parameters, and what is computed of them.
//
// While a plan is made a late constant stands for a value. Whoever reads it may decide by it, so reading is noted: the plan
// is good for all executions that agree in the values that were read. The rest is put into a copy of the plan before it runs
// (plan/late-plan.ts). Code that only passes a constant on, or has what it computes wait as `laterOf` does, reads nothing.
//
// Invariants:
//   1. A parameter that is NULL is no late constant, and neither is one that is described: both are known.
//   2. Nobody reads a late constant between planning and the making of a copy: it would see nobody's value.
//   3. A copy of a late constant is a plain one: `value` is read by the copying, `late` does not stand among its members.

import { assert } from '../../base/assert.js'
import type { DataType } from '../../types/column-types.js'
import type { Value } from '../../types/value.js'
import type { Parameter } from '../catalog.js'
import type { Expression } from '../plan/plan.js'

export class LateValues {
  #parameters: readonly Parameter[] | null
  #isPlanning = true
  /** Indexes of the parameters that planning has read. */
  readonly read = new Set<number>()

  /** Planning begins; the values are those of the first execution. */
  constructor(parameters: readonly Parameter[]) {
    this.#parameters = parameters
  }

  /** The parameters for whoever looks at them before they are bound: reading a value is noted, too. */
  get parameters(): readonly Parameter[] {
    return (this.#parameters ?? []).map(({ value, type }, index) => {
      const read = (): Value => this.#value(index)
      return {
        type,
        get value() {
          return value === null ? null : read()
        },
      }
    })
  }

  /** Null: the parameter is NULL. */
  constant(index: number, type: DataType, position: number): Expression | null {
    if (this.#parameters?.[index]?.value === null) return null
    return lateConstant('given', () => this.#value(index), type, position)
  }

  /** Planning has ended. Makes something with the values of these parameters. */
  with<Made>(parameters: readonly Parameter[], make: () => Made): Made {
    this.#isPlanning = false
    this.#parameters = parameters
    try {
      return make()
    } finally {
      this.#parameters = null
    }
  }

  #value(index: number): Value {
    assert(this.#parameters !== null, 'late values are read while a plan is made, or copied')
    if (this.#isPlanning) this.read.add(index)
    return (this.#parameters[index] as Parameter).value
  }
}

export function isLate(expression: Expression): boolean {
  return expression.kind === 'constant' && expression.late !== undefined
}

/** It has a value, although nobody knows which. */
export function isGivenLate(expression: Expression): boolean {
  return expression.kind === 'constant' && expression.late === 'given'
}

/** What becomes of late constants: a constant that is computed when they are known. */
export function laterOf(compute: () => Value, type: DataType, position: number): Expression {
  return lateConstant('computed', compute, type, position)
}

function lateConstant(late: 'given' | 'computed', read: () => Value, type: DataType, position: number): Expression {
  const constant = { kind: 'constant', value: null, type, position } as const
  Object.defineProperty(constant, 'value', { get: read, enumerable: true })
  Object.defineProperty(constant, 'late', { value: late, enumerable: false })
  return constant
}
