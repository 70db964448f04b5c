// Deferred constants: parameters of a prepared statement, and results computed from them, whose values are filled in
// when the plan is executed. They allow one cached plan to be used for different parameter values.
//
// While planning, a deferred constant has the value of the first execution. If planning code reads that value, the read
// is recorded, and the cached plan is used only for executions with the same value. All other values are written into a
// copy of the plan before it runs (plan/deferred-plan.ts). Code that only passes a constant on, or defers a computation
// with `deferredOf`, reads nothing.
//
// Invariants:
//
//   1. A NULL parameter is never deferred: the cached plan is used only if the same parameters are NULL. Describing a
//      statement, when parameters have no values yet, defers nothing.
//   2. Between planning and copying, no code reads a deferred constant: no parameter values are set then.
//   3. The copy of a deferred constant is a plain constant with its value: it does not get the mark `deferred`.

import { assert } from '../../base/assert.js'
import type { DataType } from '../../types/column-types.js'
import type { Value } from '../../types/value.js'
import type { Parameter } from '../catalog.js'
import type { Expression } from '../plan/plan.js'

export class DeferredValues {
  #parameters: readonly Parameter[] | null
  #isPlanning = true
  /** Indexes of the parameters whose values planning has read. */
  readonly read = new Set<number>()

  /** Starts planning with the parameters of the first execution. */
  constructor(parameters: readonly Parameter[]) {
    this.#parameters = parameters
  }

  /** The parameters for code that inspects them before binding. Reading a value is recorded here, too. */
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

  /** A deferred constant for the parameter; null if the parameter is NULL. */
  constant(index: number, type: DataType, position: number): Expression | null {
    if (this.#parameters?.[index]?.value === null) return null
    return deferredConstant('given', () => this.#value(index), type, position)
  }

  /** Ends planning and calls `make` with these parameter values. Executions use it to copy the plan. */
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
    assert(this.#parameters !== null, 'Q1: deferred values are read while a plan is made, or copied')
    if (this.#isPlanning) this.read.add(index)
    return (this.#parameters[index] as Parameter).value
  }
}

export function isDeferred(expression: Expression): boolean {
  return expression.kind === 'constant' && expression.deferred !== undefined
}

/** Whether the expression is a deferred parameter value. Such a value is never NULL. */
export function isDeferredParameter(expression: Expression): boolean {
  return expression.kind === 'constant' && expression.deferred === 'given'
}

/** A constant that is computed from deferred constants once their values are known. */
export function deferredOf(compute: () => Value, type: DataType, position: number): Expression {
  return deferredConstant('computed', compute, type, position)
}

function deferredConstant(
  deferred: 'given' | 'computed',
  read: () => Value,
  type: DataType,
  position: number,
): Expression {
  const constant = { kind: 'constant', value: null, type, position } as const
  Object.defineProperty(constant, 'value', { get: read, enumerable: true })
  Object.defineProperty(constant, 'deferred', { value: deferred, enumerable: false })
  return constant
}
