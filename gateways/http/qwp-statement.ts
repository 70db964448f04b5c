// Runs one statement that a client has sent by QWP (columnar protocol over WebSocket), and sends its outcome: batches
// of rows and an end message, a done message, or an error.
//
// A batch is sent when the client has granted credit, and the next block is requested from the engine when the socket
// has taken the last one. So for a client that grants no credit or does not read, the server holds at most one window
// of blocks (the bytes that may wait for a socket), until the statement's deadline or the limit for idle connections.

import type { IncomingHttpHeaders } from 'node:http'
import { assert } from '../../engine/base/assert.js'
import { AccessError, CancelledError, ResourceError, SqlError, TimeoutError } from '../../engine/base/errors.js'
import type { QueryRequest, RowsResult, Session } from '../../engine/engine.js'
import { countStatement } from '../common/count-statement.js'
import { LazySignal } from '../common/lazy-signal.js'
import type { Principal } from '../common/users.js'
import { sessionOf } from './access.js'
import type { HttpContext } from './context.js'
import { batchesOf, batchFrame, doneFrame, endFrame, errorFrame } from './qwp-read-frames.js'
import type { HttpConnection } from './sockets.js'
import { errorReport, logStatement } from './statement.js'
import { closeCodes, type MessageSocket } from './web-sockets.js'

/** What the client's handshake asks for. */
export interface ReadOptions {
  readonly rowsMax: number
  /** 0: no compression. */
  readonly zstdLevel: number
}

/** An open connection. */
export interface QwpReader {
  readonly held: HttpConnection
  readonly principal: Principal
  readonly socket: MessageSocket
  readonly headers: IncomingHttpHeaders
  readonly options: ReadOptions
}

/** The longest time that a timer takes. */
const timerMsMax = 2 ** 31 - 1

export class QwpStatement {
  readonly requestId: bigint
  readonly #context: HttpContext
  readonly #reader: QwpReader
  readonly #request: QueryRequest
  readonly #gone = new LazySignal()
  readonly #begunMs: number
  /** Bytes that may be sent. */
  #credit: number
  #wake: () => void = () => {}
  #batches = 0
  /** Symbols that the client has got. */
  symbols = 0

  constructor(context: HttpContext, reader: QwpReader, request: QueryRequest) {
    this.#context = context
    this.#reader = reader
    this.#request = request
    this.requestId = request.requestId
    this.#credit = request.credit === 0 ? Number.POSITIVE_INFINITY : request.credit
    this.#begunMs = context.clock.monotonicMs()
  }

  cancel(reason?: string): void {
    this.#gone.abort(reason)
    this.#wake()
  }

  grant(bytes: number): void {
    this.#credit += bytes
    this.#wake()
  }

  /** Never rejects. Returns itself when its last message is on the way. */
  async run(): Promise<QwpStatement> {
    const context = this.#context
    const session = this.#session()
    const { connection } = this.#reader.held
    connection.state = 'querying'
    try {
      if (session === null) throw new AccessError('the user does not exist any more', 0)
      if (!context.queries.enter()) throw new ResourceError('too many queries are running')
      try {
        await this.#execute(session)
      } finally {
        context.queries.leave()
      }
    } catch (error) {
      errorReport(context, this.#request.sql, error)
      const details = { isOfBinds: this.#isOfBinds(session, error), hasTimeout: this.#request.timeoutMs > 0 }
      this.#reader.socket.send(errorFrame(this.requestId, error, details))
    } finally {
      connection.state = 'idle'
    }
    return this
  }

  get #timeoutMs(): number {
    const { timeoutMs } = this.#request
    return timeoutMs === 0 ? this.#context.options.queryTimeoutMs : Math.min(timeoutMs, timerMsMax)
  }

  #session(): Session | null {
    const { auth, options } = this.#context
    const { principal, headers, held } = this.#reader
    const current = auth.refresh(principal)
    return current === null ? null : sessionOf(current, headers, options, held.connection.trace)
  }

  async #execute(session: Session): Promise<void> {
    const { engine, counters, clock, options } = this.#context
    const { sql, parameters } = this.#request
    const { rowsMax, zstdLevel: askedLevel } = this.#reader.options
    // A client that takes no compressed batches gets none.
    const zstdLevel = askedLevel === 0 ? 0 : options.qwpZstdLevel || askedLevel
    const result = await engine.execute(sql, {
      ...{ session, parameters, encoding: { kind: 'qwp', rowsMax, zstdLevel } },
      ...{ skip: 0, rowsMax: Number.POSITIVE_INFINITY, countAll: false, columns: null, explain: false },
      ...{ timeoutMs: this.#timeoutMs, signal: this.#gone, windowBytes: options.sendBufferBytes },
    })
    countStatement(counters, result)
    assert(result.kind !== 'plan', 'B4: no plan was asked for')
    if (result.kind === 'done') this.#reader.socket.send(doneFrame(this.requestId, result.tag, result.rows))
    else await this.#sendRows(result)
    logStatement(this.#context, sql, result, clock.monotonicMs() - this.#begunMs)
  }

  async #sendRows(result: RowsResult): Promise<void> {
    // Awaited after the last block. A failure also surfaces through the blocks.
    result.summary.catch(() => {})
    for await (const block of result.blocks) await this.#sendBlock(block)
    const { rows } = await result.summary
    this.#reader.socket.send(endFrame(this.requestId, this.#batches, rows))
  }

  /** Resolves when the socket has taken the block. */
  async #sendBlock(block: Uint8Array): Promise<void> {
    const { qwp } = this.#context.counters
    let sent: Promise<void> | null = null
    for (const batch of batchesOf(block)) {
      if (this.#credit <= 0) await this.#creditGranted()
      const frame = batchFrame(this.requestId, this.#batches++, batch)
      this.#credit -= frame.length
      qwp.batches++
      qwp.batchBytes += frame.length
      this.symbols = batch.symbols
      sent = new Promise((resolve) => this.#reader.socket.send(frame, resolve))
    }
    if (sent !== null) await this.#taken(sent)
  }

  async #creditGranted(): Promise<void> {
    const timeoutMs = this.#timeoutMs
    const leftMs = (): number => this.#begunMs + timeoutMs - this.#context.clock.monotonicMs()
    while (this.#credit <= 0) {
      if (this.#gone.aborted) throw new CancelledError(reasonOf(this.#gone))
      if (timeoutMs > 0 && leftMs() <= 0) throw new TimeoutError(timeoutMs)
      await this.#woken(timeoutMs > 0 ? Math.min(leftMs() + 1, timerMsMax) : 0)
    }
  }

  /** Resolves at `#wake` or, unless it is 0, after the time: timers may be early, so the caller looks at the clock again. */
  async #woken(waitMs: number): Promise<void> {
    let timer: NodeJS.Timeout | undefined
    await new Promise<void>((resolve) => {
      this.#wake = resolve
      if (waitMs > 0) timer = setTimeout(resolve, waitMs)
    })
    clearTimeout(timer)
  }

  /** Closes the connection if the client reads nothing for as long as connections may be idle. */
  async #taken(sent: Promise<void>): Promise<void> {
    const { socket } = this.#reader
    let waiting = socket.waitingBytes
    if (waiting === 0) return sent
    const timer = setInterval(() => {
      if (socket.waitingBytes >= waiting) socket.close(closeCodes.policy, 'the result is not read')
      waiting = socket.waitingBytes
    }, this.#context.options.keepAliveMs)
    try {
      await sent
    } finally {
      clearInterval(timer)
    }
  }

  /** Whether the statement is valid with other values of its parameters. */
  #isOfBinds(session: Session | null, error: unknown): boolean {
    const { sql, parameters } = this.#request
    if (session === null || parameters.length === 0 || !(error instanceof SqlError)) return false
    try {
      const { engine } = this.#context
      for (const statement of engine.parse(sql)) engine.describe(statement, session, [])
      return true
    } catch {
      return false
    }
  }
}

function reasonOf({ reason }: LazySignal): string | undefined {
  return typeof reason === 'string' ? reason : undefined
}
