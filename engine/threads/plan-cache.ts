// Plans by statement text: the query cache. A plan is good while the catalog has not changed; least recently used ones
// make room. Statements that speak of secrets are not kept.

import { holdsSecret } from '../base/secret-text.js'
import type { PlannedStatement } from '../sql/statements/planned.js'

const plansMax = 512
/** Longer texts are hardly sent twice. */
const textCharactersMax = 16_384

type QueryPlan = Extract<PlannedStatement, { kind: 'query' }>

export class PlanCache {
  readonly #plans = new Map<string, { readonly epoch: number; readonly plan: QueryPlan }>()

  get(sql: string, epoch: number): QueryPlan | undefined {
    const known = this.#plans.get(sql)
    if (known === undefined) return undefined
    this.#plans.delete(sql)
    if (known.epoch !== epoch) return undefined
    this.#plans.set(sql, known)
    return known.plan
  }

  clear(): void {
    this.#plans.clear()
  }

  set(sql: string, epoch: number, plan: QueryPlan): void {
    if (sql.length > textCharactersMax || holdsSecret(sql)) return
    if (this.#plans.size >= plansMax) this.#plans.delete(this.#plans.keys().next().value as string)
    this.#plans.set(sql, { epoch, plan })
  }
}
