// Registry of open and past connections: the data behind sys.connections and sys.connection_log.
//
// A gateway opens an entry for each connection and updates its plain counters; nothing is computed until a query
// reads them. The log is a ring of the last `logEntriesMax` events.

import type { Clock } from '../../engine/base/clock.js'

export type Protocol = 'http' | 'pg' | 'ilp' | 'udp'
export const protocols: readonly Protocol[] = ['http', 'pg', 'ilp', 'udp']

/** One connection; its gateway updates the counters. */
export interface Connection {
  readonly id: number
  readonly protocol: Protocol
  readonly remoteAddress: string
  readonly connectedAtMicros: number
  principal: string | null
  lastActiveAtMicros: number
  /** Evaluated when a query reads it. */
  readonly bytesIn: () => number
  readonly bytesOut: () => number
  rowsReceived: number
  rowsCommitted: number
  rowsRejected: number
  readonly tls: boolean
  state: string
  /** The client's name for itself; '' if it sends none. */
  application: () => string
  /** Whether statements of this connection are traced. */
  readonly trace: { on: boolean }
}

export interface ConnectionEvent {
  readonly atMicros: number
  readonly event: 'OPEN' | 'CLOSE' | 'REJECT'
  readonly reason: string | null
  readonly durationMs: number | null
  readonly connection: Connection
  readonly bytesIn: number
  readonly bytesOut: number
}

export interface ConnectionCounts {
  opened: number
  closed: number
  rejected: number
}

export interface NewConnection {
  readonly protocol: Protocol
  readonly remoteAddress: string
  readonly bytesIn: () => number
  readonly bytesOut: () => number
  readonly tls: boolean
}

export class ConnectionRegistry {
  readonly counts: Readonly<Record<Protocol, ConnectionCounts>> = {
    http: { opened: 0, closed: 0, rejected: 0 },
    pg: { opened: 0, closed: 0, rejected: 0 },
    ilp: { opened: 0, closed: 0, rejected: 0 },
    udp: { opened: 0, closed: 0, rejected: 0 },
  }
  readonly #clock: Clock
  readonly #logEntriesMax: number
  readonly #open = new Map<number, Connection>()
  readonly #log: ConnectionEvent[] = []
  #oldest = 0
  #nextId = 1

  constructor(clock: Clock, logEntriesMax: number) {
    this.#clock = clock
    this.#logEntriesMax = logEntriesMax
  }

  open(connection: NewConnection): Connection {
    const opened = this.#create(connection)
    this.#open.set(opened.id, opened)
    this.counts[opened.protocol].opened++
    this.#record(opened, 'OPEN', null)
    return opened
  }

  /** Closes the entry; call once. Later counts of the connection are ignored. */
  close(connection: Connection, reason: string | null): void {
    if (!this.#open.delete(connection.id)) return
    this.counts[connection.protocol].closed++
    this.#record(connection, 'CLOSE', reason)
  }

  /** Records a connection that was rejected before it got an entry. */
  reject(connection: NewConnection, reason: string): void {
    this.counts[connection.protocol].rejected++
    this.#record(this.#create(connection), 'REJECT', reason)
  }

  /** Records an open connection as rejected because it exceeds a limit. */
  refuse(connection: Connection, reason: string): void {
    if (!this.#open.delete(connection.id)) return
    this.counts[connection.protocol].closed++
    this.counts[connection.protocol].rejected++
    this.#record(connection, 'REJECT', reason)
  }

  active(protocol: Protocol): number {
    return this.counts[protocol].opened - this.counts[protocol].closed
  }

  connections(): IterableIterator<Connection> {
    return this.#open.values()
  }

  /** Oldest first. */
  events(): ConnectionEvent[] {
    return [...this.#log.slice(this.#oldest), ...this.#log.slice(0, this.#oldest)]
  }

  touch(connection: Connection): void {
    connection.lastActiveAtMicros = this.#clock.nowMicros()
  }

  #create(connection: NewConnection): Connection {
    const now = this.#clock.nowMicros()
    return {
      ...connection,
      id: this.#nextId++,
      connectedAtMicros: now,
      principal: null,
      lastActiveAtMicros: now,
      rowsReceived: 0,
      rowsCommitted: 0,
      rowsRejected: 0,
      state: 'idle',
      application: () => '',
      trace: { on: false },
    }
  }

  #record(connection: Connection, event: ConnectionEvent['event'], reason: string | null): void {
    if (this.#logEntriesMax === 0) return
    const atMicros = this.#clock.nowMicros()
    const durationMs = event === 'CLOSE' ? Math.round((atMicros - connection.connectedAtMicros) / 1000) : null
    const entry: ConnectionEvent = {
      atMicros,
      event,
      reason,
      durationMs,
      connection,
      bytesIn: connection.bytesIn(),
      bytesOut: connection.bytesOut(),
    }
    if (this.#log.length < this.#logEntriesMax) {
      this.#log.push(entry)
      return
    }
    this.#log[this.#oldest] = entry
    this.#oldest = (this.#oldest + 1) % this.#logEntriesMax
  }
}
