// Tables of the server's own that a setting hides: none but the server's statements see them, while they are planned.

import type { Session } from '../api/session.js'
import type { EngineHooks } from './local-options.js'

export class HiddenTables {
  readonly #systemTable: EngineHooks['systemTable']
  #own = false

  constructor({ systemTable }: Pick<EngineHooks, 'systemTable'>) {
    this.#systemTable = systemTable
  }

  /** Whether the statement that is being planned is the server's own. */
  get own(): boolean {
    return this.#own
  }

  /** Who asks until planning, which waits for nothing, is over. */
  seenBy({ protocol }: Pick<Session, 'protocol'>): void {
    this.#own = protocol === 'internal'
    if (!this.#own) return
    queueMicrotask(() => {
      this.#own = false
    })
  }

  readonly hides = (name: string): boolean => !this.#own && this.#systemTable?.(name.toLowerCase()) === 'hidden'
}
