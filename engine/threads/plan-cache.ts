// Plans by statement text: the query cache. A plan is good while the catalog has not changed; least recently used ones
// make room. Statements that speak of secrets are not kept.
//
// Most texts come once, with constants of their own: only the last few of those have their plans kept, until they come
// again; of some more the text is known. What everybody else leaves is gone at the next scavenge then, which would copy 40
// KB of plan for each of 512 otherwise.

import { holdsSecret } from '../base/secret-text.js'
import type { PlannedStatement } from '../sql/statements/planned.js'

const plansMax = 512
const newPlansMax = 16
const onceMax = 1024
/** Longer texts are hardly sent twice. */
const textCharactersMax = 16_384

type QueryPlan = Extract<PlannedStatement, { kind: 'query' }>
type Plans = Map<string, { readonly epoch: number; readonly plan: QueryPlan }>

export class PlanCache {
  /** Of texts that came again. */
  readonly #plans: Plans = new Map()
  /** Of texts that came once. */
  readonly #new: Plans = new Map()
  /** Texts that came once, before those. */
  readonly #once = new Set<string>()

  get(sql: string, epoch: number): QueryPlan | undefined {
    const known = this.#plans.get(sql) ?? this.#new.get(sql)
    if (known === undefined) return undefined
    this.#plans.delete(sql)
    this.#new.delete(sql)
    if (known.epoch !== epoch) return undefined
    makeRoom(this.#plans, plansMax)
    this.#plans.set(sql, known)
    return known.plan
  }

  clear(): void {
    this.#plans.clear()
    this.#new.clear()
  }

  set(sql: string, epoch: number, plan: QueryPlan): void {
    if (sql.length > textCharactersMax || holdsSecret(sql)) return
    const again = this.#once.delete(sql)
    const left = again ? makeRoom(this.#plans, plansMax) : makeRoom(this.#new, newPlansMax)
    ;(again ? this.#plans : this.#new).set(sql, { epoch, plan })
    if (again || left === undefined) return
    makeRoom(this.#once, onceMax)
    this.#once.add(left)
  }
}

/** For one more; the key that left. */
function makeRoom(kept: Map<string, unknown> | Set<string>, most: number): string | undefined {
  if (kept.size < most) return undefined
  const oldest = kept.keys().next().value as string
  kept.delete(oldest)
  return oldest
}
