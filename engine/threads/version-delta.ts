// Avoids sending a version of a table to a query thread twice in a row. A version (an immutable state of a table) lists
// every Parquet file of the table, and copying that list costs more than many queries. So a message has null in the
// place of a version that was the last one sent for its table. Any other version is sent as a whole.
//
// Invariant: the main thread (SentVersions) and the query thread (ReceivedVersions) process the same messages in the
// same order, so both remember the same versions. If a message was lost, the main thread forgets what it has sent.

import { assert } from '../base/assert.js'
import type { RunQuery } from '../exec/run/messages.js'
import type { TableSnapshot, TableVersion } from '../storage/schema/schema.js'
import type { ToQueryHost } from './messages.js'

/** A snapshot in a message. `version` null: the version that was sent last. */
interface SentSnapshot {
  readonly tableId: number
  readonly version: TableVersion | null
  /** The snapshot's other members. */
  readonly rest: Omit<TableSnapshot, 'version'>
}

type Sent<Request> = Omit<Request, 'snapshots'> & { readonly snapshots: readonly SentSnapshot[] }
type JoinFragment = Extract<ToQueryHost, { kind: 'joinFragment' }>

/** The messages as they are sent. */
export type SentToQueryHost =
  | Exclude<ToQueryHost, { kind: 'run' | 'joinFragment' }>
  | Sent<RunQuery>
  | (Omit<JoinFragment, 'request'> & { readonly request: Sent<RunQuery> })

/** Number of tables whose versions are remembered. */
const tablesMax = 256

function remember(known: Map<number, TableVersion>, tableId: number, version: TableVersion): void {
  if (known.size >= tablesMax && !known.has(tableId)) known.clear()
  known.set(tableId, version)
}

/** The main thread's side; one for each query thread. */
export class SentVersions {
  readonly #sent = new Map<number, TableVersion>()

  sent(message: ToQueryHost): SentToQueryHost {
    if (message.kind === 'run') return this.#request(message)
    if (message.kind === 'joinFragment') return { ...message, request: this.#request(message.request) }
    return message
  }

  forget(): void {
    this.#sent.clear()
  }

  #request(request: RunQuery): Sent<RunQuery> {
    return { ...request, snapshots: request.snapshots.map((snapshot) => this.#snapshot(snapshot)) }
  }

  #snapshot({ version, ...rest }: TableSnapshot): SentSnapshot {
    const tableId = version.schema.id
    if (this.#sent.get(tableId) === version) return { tableId, version: null, rest }
    remember(this.#sent, tableId, version)
    return { tableId, version, rest }
  }
}

/** The query thread's side. */
export class ReceivedVersions {
  readonly #received = new Map<number, TableVersion>()

  whole(message: SentToQueryHost): ToQueryHost {
    if (message.kind === 'run') return this.#request(message)
    if (message.kind === 'joinFragment') return { ...message, request: this.#request(message.request) }
    return message
  }

  #request(request: Sent<RunQuery>): RunQuery {
    return { ...request, snapshots: request.snapshots.map((snapshot) => this.#snapshot(snapshot)) }
  }

  #snapshot({ tableId, version, rest }: SentSnapshot): TableSnapshot {
    if (version !== null) remember(this.#received, tableId, version)
    const known = this.#received.get(tableId)
    assert(known !== undefined, 'M3: a thread has received the version that a query reads')
    return { version: known, ...rest }
  }
}
