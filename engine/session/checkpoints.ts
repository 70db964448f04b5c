// Executes CHECKPOINT CREATE and CHECKPOINT RELEASE, plain CHECKPOINT, and the function checkpoint_status(). A
// checkpoint keeps the files of the current version of all tables on disk until it is released, so that external tools
// can copy them.

import type { VirtualRelation } from '../api/statements.js'
import type { Clock } from '../base/clock.js'
import { checkpointMsMax } from '../base/limits.js'
import type { WriterRequests } from '../threads/writer-requests.js'

/** The request sent to the writer. */
const commands = { flush: 'checkpoint', create: 'pin', release: 'unpin' } as const

export class Checkpoints {
  readonly #requests: Pick<WriterRequests, 'send'>
  readonly #clock: Clock
  /** The checkpoint that is kept; null if none. */
  #retained: { readonly micros: number; readonly ms: number } | null = null

  constructor(requests: Pick<WriterRequests, 'send'>, clock: Clock) {
    this.#requests = requests
    this.#clock = clock
  }

  async run(action: keyof typeof commands): Promise<void> {
    const before = this.#retained
    if (action === 'create') this.#retained = { micros: this.#clock.nowMicros(), ms: this.#clock.monotonicMs() }
    try {
      await this.#requests.send((requestId) => ({ kind: commands[action], requestId }))
    } catch (error) {
      if (action === 'create') this.#retained = before
      throw error
    }
    if (action === 'release') this.#retained = null
  }

  get relation(): VirtualRelation {
    return {
      name: 'checkpoint_status',
      columns: [
        { name: 'in_progress', type: 'BOOLEAN' },
        { name: 'started_at', type: 'TIMESTAMP' },
      ],
      rows: () => {
        const retained = this.#retained
        // The writer releases a checkpoint itself after this time.
        const over = retained === null || this.#clock.monotonicMs() - retained.ms >= checkpointMsMax
        return [over ? [false, null] : [true, BigInt(retained.micros)]]
      },
    }
  }
}
