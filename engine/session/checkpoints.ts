// Executes CHECKPOINT CREATE and CHECKPOINT RELEASE, plain CHECKPOINT, and the function checkpoint_status(). A
// checkpoint keeps the files of the current version of all tables on disk until it is released, at most for a day, so
// that external tools can copy them. BACKUP is only passed on, to the service that the server (deploy/backups.ts) has
// registered; that service keeps files on disk in the same way.

import type { Backups } from '../api/engine.js'
import type { BackupService, VirtualRelation } from '../api/statements.js'
import type { Clock } from '../base/clock.js'
import { ResourceError, SqlError } from '../base/errors.js'
import { checkpointMsMax } from '../base/limits.js'
import type { WriterRequests } from '../threads/writer-requests.js'
import type { Value } from '../types/value.js'
import type { Planned } from './plan-helpers.js'

/** The request sent to the writer. */
const commands = { flush: 'checkpoint', create: 'pin', release: 'unpin' } as const

const busy = 'a backup runs, which has a checkpoint of its own: wait until it has ended, or run BACKUP ABORT'

export class Checkpoints {
  readonly #requests: Pick<WriterRequests, 'send'>
  readonly #clock: Clock
  /** The checkpoint that is kept; null if none. */
  #retained: { readonly micros: number; readonly ms: number } | null = null

  /** Whether a backup has made the checkpoint. */
  #isBackup = false

  constructor(requests: Pick<WriterRequests, 'send'>, clock: Clock) {
    this.#requests = requests
    this.#clock = clock
  }

  /** A checkpoint for a backup; returns its release. */
  async pin(): Promise<() => Promise<void>> {
    if (this.#isKept) throw new ResourceError('a checkpoint is kept: run CHECKPOINT RELEASE before BACKUP')
    await this.run('create')
    this.#isBackup = true
    return async () => {
      this.#isBackup = false
      await this.run('release')
    }
  }

  get #isKept(): boolean {
    // The writer releases a checkpoint itself after this time.
    return this.#retained !== null && this.#clock.monotonicMs() - this.#retained.ms < checkpointMsMax
  }

  async run(action: keyof typeof commands): Promise<void> {
    if (this.#isBackup && action !== 'flush') throw new ResourceError(busy)
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
        const retained = this.#isKept ? this.#retained : null
        return [retained === null ? [false, null] : [true, BigInt(retained.micros)]]
      },
    }
  }
}

export class BackupStatements implements Backups {
  readonly #checkpoints: Checkpoints
  #service: BackupService | null = null

  constructor(checkpoints: Checkpoints) {
    this.#checkpoints = checkpoints
  }

  register(service: BackupService): void {
    this.#service = service
  }

  pin(): Promise<() => Promise<void>> {
    return this.#checkpoints.pin()
  }

  /** Rows of the result. */
  async run({ action, tables }: Planned<'backup'>): Promise<Value[][]> {
    if (this.#service === null) throw new SqlError('BACKUP is not possible here', 0)
    if (action !== 'abort') return [[BigInt(await this.#service.start(action === 'database' ? null : tables))]]
    const aborted = await this.#service.abort()
    return aborted === null ? [['not running', null]] : [['aborted', BigInt(aborted)]]
  }
}
