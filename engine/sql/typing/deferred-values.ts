// Deferred constants: parameters of a prepared statement, or constants written in a statement, and results computed from
// them, whose values are filled in when the plan is executed. They allow one cached plan to be used for different
// parameter values, and for statements that differ in their constants alone.
//
// While planning, a deferred constant has the value of the first execution. If planning code reads that value, the read
// is recorded, and the cached plan is used only for executions with the same value. All other values are written into a
// copy of the plan before it runs (plan/deferred-plan.ts). Code that only passes a constant on, or defers a computation
// with `deferredOf`, reads nothing. The same holds for literals in the syntax tree: code that looks at one is recorded.
//
// Invariants:
//
//   1. A NULL parameter is never deferred: the cached plan is used only if the same parameters are NULL. Describing a
//      statement, when parameters have no values yet, defers nothing.
//   2. Between planning and copying, no code reads a deferred constant: no parameter values are set then.
//   3. The copy of a deferred constant is a plain constant with its value: it does not get the mark `deferred`.
//   4. For written constants, planning and copying fail if any of the computed values is an error or NULL, even if the
//      plan does without it: such a statement is planned with its own constants.

import { assert } from '../../base/assert.js'
import { SqlError } from '../../base/errors.js'
import type { DataType } from '../../types/column-types.js'
import type { Value } from '../../types/value.js'
import type { Literal } from '../ast/ast.js'
import type { Parameter } from '../catalog.js'
import type { WrittenConstant } from '../parse/statement-form.js'
import type { Expression } from '../plan/plan.js'

/** The plan does not fit the values, so the statement is planned with its own. No client sees this error. */
export class OtherPlanError extends SqlError {
  constructor() {
    super('the values need a plan of their own', -1)
  }
}

/** A statement whose constants are deferred. */
interface WrittenStatement {
  readonly constants: readonly WrittenConstant[]
  /** Its syntax tree, which serves this planning alone. */
  readonly tree: object
}

/** The values that deferred constants are computed from. */
const owners = new WeakMap<Expression, DeferredValues>()

export class DeferredValues {
  /** Whether the values are constants written in the statement. */
  readonly isWritten: boolean
  /** Indexes of the parameters whose values planning has read. */
  readonly read = new Set<number>()
  #parameters: readonly Parameter[] | null
  #isPlanning = true
  #isRecorded = true
  /** The literals of the tree, with the indexes of their constants. */
  readonly #literals = new Map<object, number>()
  readonly #computed: Expression[] = []
  /** Counts the copies of the plan: a value is computed once for each. */
  #copies = 0

  /** Starts planning with the parameters of the first execution, or with the constants of the first statement. */
  constructor(given: readonly Parameter[] | WrittenStatement) {
    this.isWritten = 'tree' in given
    this.#parameters = 'tree' in given ? given.constants : given
    if ('tree' in given) this.#watch(given)
  }

  /** The parameters for code that inspects them before binding. Reading a value is recorded here, too. */
  get parameters(): readonly Parameter[] {
    if (this.isWritten) return []
    return (this.#parameters ?? []).map(({ value, type }, index) => {
      const read = (): Value => this.#given(index).value
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
    const constant = deferredConstant('given', () => this.#given(index).value, type, position)
    owners.set(constant, this)
    return constant
  }

  /** A deferred constant for the literal; null if its value is to be used as it is. */
  literal(literal: Literal): Expression | null {
    const index = this.#literals.get(literal) ?? -1
    const given = this.#parameters?.[index]
    if (given === undefined) return null
    const constant = this.constant(index, given.type, literal.position)
    if (constant !== null && literal.kind === 'float')
      Object.defineProperty(constant, 'digits', { get: () => this.#given(index).text, enumerable: true })
    return constant
  }

  computed(compute: () => Value, type: DataType, position: number): Expression {
    let copy = -1
    let value: Value = null
    const once = (): Value => {
      if (this.#isPlanning) return compute()
      if (copy !== this.#copies) value = compute()
      copy = this.#copies
      return value
    }
    const constant = deferredConstant('computed', once, type, position)
    owners.set(constant, this)
    if (!this.isWritten) return constant
    this.#computed.push(constant)
    requireValue(this.unrecorded(compute))
    return constant
  }

  /** Reads values for a decision that the copies of the plan check for theirs. */
  unrecorded<Read>(read: () => Read): Read {
    this.#isRecorded = false
    try {
      return read()
    } finally {
      this.#isRecorded = true
    }
  }

  /** Ends planning and calls `make` with these parameter values. Executions use it to copy the plan. */
  with<Made>(parameters: readonly Parameter[], make: () => Made): Made {
    this.#isPlanning = false
    this.#parameters = parameters
    this.#copies++
    try {
      for (const constant of this.#computed) requireValue(constantValue(constant))
      return make()
    } finally {
      this.#parameters = null
    }
  }

  #given(index: number): Parameter {
    assert(this.#parameters !== null, 'Q1: deferred values are read while a plan is made, or copied')
    if (this.#isPlanning && this.#isRecorded) this.read.add(index)
    return this.#parameters[index] as Parameter
  }

  /** Finds the literals in the tree, and records all reads of them from now on. */
  #watch({ constants, tree }: WrittenStatement): void {
    const places = new Map(constants.map(({ start }, index) => [start, index]))
    const waiting: object[] = [tree]
    for (let part = waiting.pop(); part !== undefined; part = waiting.pop()) {
      if (this.#literals.has(part)) continue
      const position = 'position' in part ? part.position : undefined
      const index = typeof position === 'number' ? (places.get(position) ?? -1) : -1
      const constant = constants[index]
      if (constant !== undefined && isLiteralOf(part, constant)) this.#watchLiteral(part, index)
      else for (const member of partsOf(part)) if (typeof member === 'object' && member !== null) waiting.push(member)
    }
    const found = new Set(this.#literals.values())
    // The parser has used the others in another way.
    for (const index of constants.keys()) if (!found.has(index)) this.read.add(index)
  }

  #watchLiteral(literal: object, index: number): void {
    this.#literals.set(literal, index)
    for (const [name, value] of Object.entries(literal)) {
      if (name !== 'value' && name !== 'text' && name !== 'digits') continue
      const get = (): unknown => {
        this.read.add(index)
        return value
      }
      Object.defineProperty(literal, name, { get })
    }
  }
}

/** Throws for NULL, also in the forms that it has as a number and as a character. */
function requireValue(value: Value): void {
  if (value === null || value === '' || Number.isNaN(value)) throw new OtherPlanError()
}

/** Whether the part of a syntax tree, which starts where the constant does, is its literal. */
function isLiteralOf(part: object, constant: WrittenConstant): boolean {
  const { kind, value, text, word, long, single }: Readonly<Record<string, unknown>> = { ...part }
  if (kind === 'string') return value === constant.value && word === undefined
  if (kind !== 'integer' && kind !== 'float') return false
  return text === constant.text && long !== true && single !== true
}

/** The members of a part of a syntax tree that may be parts as well: those of a literal are not, and reads are recorded. */
export function partsOf(node: object): readonly unknown[] {
  return 'kind' in node && literals.has(node.kind) ? [] : Object.values(node)
}

const literals: ReadonlySet<unknown> = new Set(['string', 'integer', 'float'])

function constantValue(expression: Expression): Value {
  return expression.kind === 'constant' ? expression.value : null
}

export function isDeferred(expression: Expression): boolean {
  return expression.kind === 'constant' && expression.deferred !== undefined
}

/** Whether the expression is a deferred parameter value. Such a value is never NULL. */
export function isDeferredParameter(expression: Expression): boolean {
  return expression.kind === 'constant' && expression.deferred === 'given'
}

/** Whether the value is one of a prepared statement's parameters, or computed from them: no type depends on it. */
export function isOfParameters(expression: Expression): boolean {
  return isDeferred(expression) && owners.get(expression)?.isWritten === false
}

/** A constant that is computed from deferred constants, `from` among them, once their values are known. */
export function deferredOf(compute: () => Value, type: DataType, position: number, from: Expression): Expression {
  const owner = owners.get(from)
  assert(owner !== undefined, 'Q1: a deferred constant belongs to the values that are deferred')
  return owner.computed(compute, type, position)
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
