// Collects the aggregate calls of a SELECT, such as `sum(a)`, and returns the index of each. A call that occurs several
// times is stored once. Equal calls are found with a map, because a select list may have thousands of calls.

import { SqlError } from '../../base/errors.js'
import { sqlColumnsMax } from '../../base/limits.js'
import type { AggregateCall } from '../plan/plan.js'
import { expressionKey } from '../typing/types.js'

export class AggregateList {
  readonly calls: AggregateCall[]
  /** Index of each call by its key. */
  readonly #places: Map<string, number>

  constructor(calls: AggregateCall[] = []) {
    this.calls = calls
    this.#places = new Map(calls.map((call, index) => [keyOf(call), index]))
  }

  /** The index of the call, which is appended unless an equal one is there. */
  place(call: AggregateCall): number {
    const key = keyOf(call)
    const known = this.#places.get(key)
    if (known !== undefined) return known
    const index = this.calls.length
    if (index >= sqlColumnsMax) throw new SqlError(`too many aggregates [max=${sqlColumnsMax}]`, call.position)
    this.calls.push(call)
    this.#places.set(key, index)
    return index
  }
}

function keyOf({ name, args, orderBy = [], fill }: AggregateCall): string {
  const order = orderBy.map(({ expression, key }) => `${expressionKey(expression)}${JSON.stringify(key)}`)
  return `${name}(${args.map((argument) => expressionKey(argument)).join()})${order.join()}${fill ?? ''}`
}
