// Rows of a plan over one table, cut by time (time-cuts.ts): a chunk is a range of time, and the whole plan runs over it. A
// chunk has a space and operators of its own, which end together.

import type { Plan } from '../../sql/plan/plan.js'
import type { ExecContext } from '../batch/context.js'
import { Symbols } from '../batch/symbols.js'
import type { Operator, Pull } from '../batch/vector.js'
import { buildOperator } from '../build.js'
import { chunkRange, within } from '../scan/time-cuts.js'
import type { ChunkSource } from './encoded-chunks.js'

export interface TimedSourceOptions {
  /** As of chunkRange. */
  readonly times: BigInt64Array
  readonly descending: boolean
}

export interface IsolatedRows extends Operator {
  /** Ends what the operators hold. */
  release(): void
}

/** The operators of a plan, with a space of their own. */
export function isolated(context: ExecContext, plan: Plan): IsolatedRows {
  const space = context.space.child()
  const endings: (() => void)[] = []
  const own = { ...context, space, symbols: new Symbols(space), onEnd: (end: () => void) => void endings.push(end) }
  const rows = buildOperator(own, plan)
  const release = (): void => {
    for (const end of endings.splice(0)) end()
    space.freeAll()
  }
  return { pull: () => rows.pull(), rest: () => rows.rest?.(), release }
}

export class TimedSource implements ChunkSource {
  readonly chunks: number
  readonly #context: ExecContext
  readonly #plan: Plan
  readonly #options: TimedSourceOptions
  #rows: IsolatedRows | null = null

  constructor(context: ExecContext, plan: Plan, options: TimedSourceOptions) {
    this.#context = context
    this.#plan = plan
    this.#options = options
    this.chunks = options.times.length - 1
  }

  seek(chunk: number): void {
    this.release()
    const { times, descending } = this.#options
    const range = chunkRange(times, descending ? this.chunks - 1 - chunk : chunk)
    this.#rows = isolated(this.#context, within(this.#plan, range))
  }

  take(): Pull {
    return this.#rows === null ? null : this.#rows.pull()
  }

  release(): void {
    this.#rows?.release()
    this.#rows = null
  }

  rest(): void {
    this.#rows?.rest?.()
  }
}
