// Plans by statement text: the query cache. A plan is good while the catalog has not changed; least recently used ones
// make room. Statements that speak of secrets are not kept.
//
// Most texts come once, with constants of their own: only the last few of those have their plans kept, until they come
// again; of some more the text is known. What everybody else leaves is gone at the next scavenge then, which copies 25 KB
// for each plan that is kept. The few have fixed places: a Map that changes with every query makes a table anew for some
// dozen of them, and V8 links each table to the one that follows it. When one of them has grown old, that chain keeps
// whatever any of them held until the next collection of everything.

import { holdsSecret } from '../base/secret-text.js'
import type { Query } from '../sql/plan/plan.js'
import { plansOf } from '../sql/plan/walk-plan.js'
import type { PlannedStatement } from '../sql/statements/planned.js'

const plansMax = 512
const newPlansMax = 4
const onceMax = 1024
/** Plans that hold more rows, which the catalog has, are kept as those of texts that came once. */
const rowsMax = 1024
/** Longer texts are hardly sent twice. */
const textCharactersMax = 16_384

type QueryPlan = Extract<PlannedStatement, { kind: 'query' }>

interface KnownPlan {
  readonly sql: string
  readonly epoch: number
  readonly plan: QueryPlan
  readonly holdsMany: boolean
}

export class PlanCache {
  /** Of texts that came again. */
  readonly #plans = new Map<string, KnownPlan>()
  /** Of texts that came once. */
  readonly #new: (KnownPlan | undefined)[] = new Array(newPlansMax).fill(undefined)
  /** The place of the oldest of them. */
  #oldest = 0
  /** Texts that came once, before those. */
  readonly #once = new Set<string>()

  get(sql: string, epoch: number): QueryPlan | undefined {
    const known = this.#take(sql)
    if (known?.epoch !== epoch) return undefined
    if (known.holdsMany) this.#insert(known)
    else {
      makeRoom(this.#plans, plansMax)
      this.#plans.set(sql, known)
    }
    return known.plan
  }

  #take(sql: string): KnownPlan | undefined {
    const known = this.#plans.get(sql)
    if (known !== undefined) {
      this.#plans.delete(sql)
      return known
    }
    const place = this.#new.findIndex((cached) => cached?.sql === sql)
    if (place < 0) return undefined
    const taken = this.#new[place]
    this.#new[place] = undefined
    return taken
  }

  clear(): void {
    this.#plans.clear()
    this.#new.fill(undefined)
  }

  set(sql: string, epoch: number, plan: QueryPlan): void {
    if (sql.length > textCharactersMax || holdsSecret(sql)) return
    const known = { sql, epoch, plan, holdsMany: holdsMany(plan.query) }
    if (this.#once.delete(sql) && !known.holdsMany) {
      makeRoom(this.#plans, plansMax)
      this.#plans.set(sql, known)
      return
    }
    this.#insert(known)
  }

  #insert(known: KnownPlan): void {
    const left = this.#new[this.#oldest]
    this.#new[this.#oldest] = known
    this.#oldest = (this.#oldest + 1) % newPlansMax
    if (left === undefined) return
    makeRoom(this.#once, onceMax)
    this.#once.add(left.sql)
  }
}

/** For one more. */
function makeRoom(cached: Map<string, unknown> | Set<string>, most: number): void {
  if (cached.size >= most) cached.delete(cached.keys().next().value as string)
}

function holdsMany(query: Query): boolean {
  let rows = 0
  for (const plan of plansOf(query)) if (plan.kind === 'values') rows += plan.rows.length
  return rows > rowsMax
}
