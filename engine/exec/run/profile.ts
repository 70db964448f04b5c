// Profile: collects the facts that EXPLAIN shows about each operator: whether it runs as code generated for this query
// and, with ANALYZE, how many rows it returned and how long it took, including its inputs. Queries without EXPLAIN have
// no profile.

import type { Jit } from '../../kernels/jit/jit.js'
import type { Plan, Query } from '../../sql/plan/plan.js'
import { plansOf } from '../../sql/plan/walk-plan.js'
import { isBatch, type Operator } from '../batch/vector.js'

/** 'built': operators are only built. 'run': they also run. */
export type ProfileMode = 'built' | 'run'

export interface NodeProfile {
  /** Index in plansOf(query). */
  readonly node: number
  readonly rows: number
  readonly ms: number
  /** What executes the operator; empty if it evaluates no expression. */
  readonly kernel: string
}

interface Node {
  rows: number
  ms: number
  generated: number
  interpreted: number
  note: string
}

export class Profile {
  readonly mode: ProfileMode
  readonly #nodes = new Map<Plan, Node>()
  readonly #plans: readonly Plan[]
  /** Operators that are being built or pulled. */
  readonly #stack: Node[] = []

  constructor(mode: ProfileMode, query: Query) {
    this.mode = mode
    this.#plans = plansOf(query)
  }

  /**
   * Builds the operator of a plan, and attributes to it what is compiled meanwhile. The result counts rows and time.
   */
  watch(plan: Plan, make: () => Operator): Operator {
    const node = this.#nodes.get(plan) ?? { rows: 0, ms: 0, generated: 0, interpreted: 0, note: '' }
    this.#nodes.set(plan, node)
    const operator = this.#during(node, make)
    return {
      pull: () => {
        const start = performance.now()
        const pulled = this.#during(node, () => operator.pull())
        node.ms += performance.now() - start
        if (isBatch(pulled)) node.rows += pulled.rows
        return pulled
      },
    }
  }

  /** Sets the description of the operator that is being built. */
  note(text: string): void {
    const node = this.#stack[this.#stack.length - 1]
    if (node !== undefined) node.note = text
  }

  /** A code generator that counts what it compiles. */
  jit(jit: Jit): Jit {
    const counted = <Fragment>(fragment: Fragment | null): Fragment | null => {
      const node = this.#stack[this.#stack.length - 1]
      if (node !== undefined && fragment !== null) node.generated++
      else if (node !== undefined) node.interpreted++
      return fragment
    }
    return {
      aggregate: (shape) => counted(jit.aggregate(shape)),
      select: (shape) => counted(jit.select(shape)),
      project: (shape) => counted(jit.project(shape)),
    }
  }

  results(): NodeProfile[] {
    return this.#plans.flatMap((plan, index) => {
      const node = this.#nodes.get(plan)
      return node === undefined ? [] : [{ node: index, rows: node.rows, ms: node.ms, kernel: kernelOf(node) }]
    })
  }

  #during<Result>(node: Node, work: () => Result): Result {
    this.#stack.push(node)
    try {
      return work()
    } finally {
      this.#stack.pop()
    }
  }
}

function kernelOf({ note, generated, interpreted }: Node): string {
  if (note !== '') return note
  if (generated > 0) return interpreted > 0 ? 'generated, in part' : 'generated'
  return interpreted > 0 ? 'interpreter' : ''
}
