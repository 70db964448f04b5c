// Names of dropped tables. What began before the DROP, such as a transaction, refers to the table by its id; its error
// shows the name.

import { SqlError } from '../../base/errors.js'
import { droppedNamesMax } from '../../base/limits.js'

export class DroppedNames {
  readonly #names = new Map<number, string>()

  note(tableId: number, name: string): void {
    this.#names.set(tableId, name)
    const [oldest] = this.#names.keys()
    if (this.#names.size > droppedNamesMax && oldest !== undefined) this.#names.delete(oldest)
  }

  /** For what still refers to the table. */
  error(tableId: number): SqlError {
    return SqlError.tableDropped(this.#names.get(tableId) ?? `number ${tableId}`)
  }
}
