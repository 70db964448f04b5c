// LineIngestion: sends line protocol and other encoded rows from the main thread to the writer, and evaluates the
// writer's receipts. It records how far each source (Kafka partition) is stored, and which rows of other requests were
// rejected and why. The system relation sys.rejects lists the most recent rejections, which are kept in memory.

import type { LineRequest, LineTicket } from '../api/ingest.js'
import type { VirtualRelation } from '../api/statements.js'
import { errorRecord, SqlError } from '../base/errors.js'
import type { LineReject, Receipt } from '../storage/jobs/messages.js'
import { LineClient } from '../threads/line-client.js'
import type { WriterRequests } from '../threads/writer-requests.js'
import type { Value } from '../types/value.js'
import type { KafkaPosition } from '../wal/source-position.js'
import { Positions } from './connectors.js'
import type { LocalEngineOptions } from './local-options.js'

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

export class LineIngestion {
  readonly positions = new Positions()
  readonly #rejects = new Rejects()
  readonly #client: LineClient
  readonly #clock: LocalEngineOptions['clock']

  constructor({ memory, wakeWriter, clock }: LocalEngineOptions, requests: WriterRequests) {
    this.#clock = clock
    this.#client = new LineClient({
      memory,
      wakeWriter,
      nextRequestId: () => requests.nextId(),
      expect: (requestId) => requests.expect(requestId),
      nowMicros: () => clock.nowMicros(),
    })
  }

  send(request: LineRequest): LineTicket {
    const ticket = this.#client.lines(request)
    const note = (receipt: Receipt): void => {
      if (request.sourcePosition !== undefined) this.positions.noteReceipt(request.sourcePosition, receipt)
      else this.#rejects.note(request, receipt, this.#clock.nowMicros())
    }
    ticket.receipt.then(note, () => {})
    return ticket
  }

  /** Lists rows that a gateway has rejected; `stored`: the others of the request are stored. */
  reject(connectionId: number, rejects: readonly LineReject[], stored: boolean): void {
    const error = stored ? null : errorRecord(new SqlError('nothing was stored', 0))
    this.#rejects.note({ connectionId }, { rejects, error }, this.#clock.nowMicros())
  }

  get relation(): VirtualRelation {
    return this.#rejects.relation
  }

  close(): void {
    this.#client.close()
  }
}

class Rejects {
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
