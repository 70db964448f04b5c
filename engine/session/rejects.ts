// The system relation sys.rejects: the most recent lines that could not be stored, each with the reason. They are held
// in memory, in a ring buffer of limited size.

import type { LineRequest } from '../api/ingest.js'
import type { VirtualRelation } from '../api/statements.js'
import type { Receipt } from '../storage/jobs/messages.js'
import type { Value } from '../types/value.js'
import type { KafkaPosition } from '../wal/source-position.js'

const rejectsMax = 10_000

interface Reject {
  readonly tsMicros: number
  readonly connectionId: number
  readonly table: string
  readonly line: number
  readonly reason: string
  /** Whether the other lines were stored. */
  readonly partial: boolean
  readonly record: KafkaPosition | null
}

export class Rejects {
  readonly #ring: Reject[] = []
  #next = 0

  /** Adds the rejected rows of a receipt. */
  note(
    request: Pick<LineRequest, 'connectionId'>,
    receipt: Pick<Receipt, 'rejects' | 'error'>,
    tsMicros: number,
  ): void {
    for (const { line, message, table, record } of receipt.rejects) {
      this.#add({
        tsMicros,
        connectionId: request.connectionId,
        table,
        line,
        reason: message,
        partial: receipt.error === null,
        record: record ?? null,
      })
    }
  }

  #add(reject: Reject): void {
    this.#ring[this.#next] = reject
    this.#next = (this.#next + 1) % rejectsMax
  }

  /** The rows of the relation, oldest first. */
  #rows(): Value[][] {
    const ordered = [...this.#ring.slice(this.#next), ...this.#ring.slice(0, this.#next)]
    return ordered.map(({ tsMicros, connectionId, table, line, reason, partial, record }) => [
      BigInt(tsMicros),
      BigInt(connectionId),
      table,
      BigInt(line),
      reason,
      partial,
      record?.connector ?? null,
      record?.topic ?? null,
      record === null ? null : BigInt(record.partition),
      record === null ? null : BigInt(record.offset),
    ])
  }

  get relation(): VirtualRelation {
    return {
      name: 'sys.rejects',
      columns: [
        { name: 'ts', type: 'TIMESTAMP' },
        { name: 'connection_id', type: 'LONG' },
        { name: 'table_name', type: 'STRING' },
        { name: 'line', type: 'LONG' },
        { name: 'reason', type: 'STRING' },
        { name: 'rest_stored', type: 'BOOLEAN' },
        { name: 'connector', type: 'STRING' },
        { name: 'topic', type: 'STRING' },
        { name: 'partition', type: 'LONG' },
        { name: 'offset', type: 'LONG' },
      ],
      rows: () => this.#rows(),
    }
  }
}
