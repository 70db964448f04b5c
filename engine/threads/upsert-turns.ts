// Runs the upserts of each table, and the data changes of a WITH, one after the other, so that each sees the rows of
// the one before it.
//
// Waiting statements run together if they set the same columns to the same expressions and have different keys: one
// query finds the changes of all of them, and one transaction with one sync of the log stores these. As no statement
// reads or changes a row of another, the result is the same as in any order. If the joint run fails, or rows have
// moved, each statement runs alone.

import { setImmediate as nextTurn } from 'node:timers/promises'
import { assert, nonNull } from '../base/assert.js'
import type { PackedRows } from '../storage/jobs/messages.js'
import type { Value } from '../types/value.js'

/** With more rows, the query of the changes reads all of the table. */
const sharedRowsMax = 32
/** After a group that took at least so long, the next one waits for the same sessions. */
const slowGroupMs = 2
/** The longest wait. None, if the first statement of the group comes later than that after the last group. */
const waitMs = 1

/** The changes of a statement. */
export interface UpsertResult {
  readonly packed: readonly PackedRows[]
  /** Instead of packed rows. */
  readonly values?: readonly (readonly Value[])[]
  readonly rows: number
}

export interface WaitingUpsert {
  readonly alone: () => Promise<UpsertResult>
  /** null: it must run alone. */
  readonly shared: SharedUpsert | null
}

export interface SharedUpsert {
  /** Statements of the same kind may run together. */
  readonly kind: string
  readonly rows: readonly (readonly Value[])[]
  /** The keys of its rows, of which each occurs once. */
  readonly keys: readonly string[]
  readonly isCancelled: () => boolean
  /** Runs these statements, of which it is the first, as one; returns the result of each. null: each must run alone. */
  readonly together: (group: readonly SharedUpsert[]) => Promise<UpsertResult[] | null>
}

interface Entry {
  /** Settles the statement's promise. */
  readonly alone: () => Promise<void>
  readonly shared: SharedUpsert | null
  readonly resolve: (result: UpsertResult) => void
}

/** The last group of a table, if another session waited or ran with it. */
interface LastGroup {
  /** Statements that it ran, and that waited when it ended. */
  readonly statements: number
  readonly endMs: number
}

export class UpsertTurns {
  /** The upserts that wait, by table; a table without an entry has none and runs none. */
  readonly #waiting = new Map<number, Entry[]>()
  readonly #last = new Map<number, LastGroup>()
  /** Called when another upsert of the table has come. */
  readonly #joined = new Map<number, () => void>()

  /** Runs it after the earlier upserts of the table. */
  run(tableId: number, upsert: WaitingUpsert): Promise<UpsertResult> {
    return new Promise((resolve, reject) => {
      const { shared } = upsert
      this.#enter(tableId, { alone: () => upsert.alone().then(resolve, reject), shared, resolve })
    })
  }

  /** Runs other work after the earlier upserts of the table. */
  inTurn<Result>(tableId: number, work: () => Promise<Result>): Promise<Result> {
    return new Promise((resolve, reject) => {
      this.#enter(tableId, { alone: () => work().then(resolve, reject), shared: null, resolve: () => {} })
    })
  }

  #enter(tableId: number, entry: Entry): void {
    const queue = this.#waiting.get(tableId)
    if (queue !== undefined) {
      queue.push(entry)
      this.#joined.get(tableId)?.()
      return
    }
    const begun = [entry]
    this.#waiting.set(tableId, begun)
    void this.#drain(tableId, begun)
  }

  async #drain(tableId: number, queue: Entry[]): Promise<void> {
    while (queue.length > 0) {
      if (queue[0]?.shared !== null) await this.#gathered(tableId, queue)
      const beginMs = performance.now()
      const first = nonNull(queue.shift())
      const group = [first, ...takeAlike(queue, first)]
      const isDone = group.length > 1 && (await runTogether(group))
      if (!isDone) for (const { alone } of group) await alone()
      const endMs = performance.now()
      const statements = group.length + queue.length
      if (statements > 1 && endMs - beginMs >= slowGroupMs) this.#last.set(tableId, { statements, endMs })
      else this.#last.delete(tableId)
    }
    this.#waiting.delete(tableId)
  }

  /** Lets other sessions, whose statements come at the same time, join the next group. */
  async #gathered(tableId: number, queue: readonly Entry[]): Promise<void> {
    const begunMs = performance.now()
    await nextTurn()
    const last = this.#last.get(tableId)
    if (last === undefined || begunMs > last.endMs + waitMs) return
    const enough = Math.min(last.statements, sharedRowsMax)
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, waitMs)
      const look = (): void => {
        if (queue.length < enough) return
        clearTimeout(timer)
        resolve()
      }
      this.#joined.set(tableId, look)
      look()
    })
    this.#joined.delete(tableId)
  }
}

/** Takes the waiting upserts that may run together with the first one. */
function takeAlike(queue: Entry[], { shared: first }: Entry): Entry[] {
  if (first === null || first.isCancelled()) return []
  const taken: Entry[] = []
  const keys = new Set(first.keys)
  for (let at = 0; at < queue.length; ) {
    const entry = queue[at]
    const own = entry?.shared ?? null
    const fits =
      own !== null &&
      own.kind === first.kind &&
      keys.size + own.keys.length <= sharedRowsMax &&
      !own.keys.some((key) => keys.has(key)) &&
      !own.isCancelled()
    if (!fits || entry === undefined) {
      at++
      continue
    }
    for (const key of own.keys) keys.add(key)
    taken.push(entry)
    queue.splice(at, 1)
  }
  return taken
}

/** Returns whether they have run; nothing has happened otherwise. */
async function runTogether(group: readonly Entry[]): Promise<boolean> {
  const shared = group.flatMap((entry) => entry.shared ?? [])
  assert(shared.length === group.length, 'R4: upserts run together if all of them may')
  // An error may be about one of them: then each runs alone, and has its own.
  const results = await nonNull(shared[0])
    .together(shared)
    .catch(() => null)
  if (results === null) return false
  assert(results.length === group.length, 'R4: each upsert has its result')
  for (const [index, result] of results.entries()) group[index]?.resolve(result)
  return true
}
