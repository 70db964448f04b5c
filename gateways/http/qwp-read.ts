// Handles queries by QWP, the columnar protocol over WebSocket: GET /read/v1 is upgraded to a WebSocket connection. The
// client sends statements and gets the results as batches of columns, encoded by the query threads.
// engine/qwp/query-request.ts describes the client's messages, qwp-read-frames.ts the server's.
//
//   request    X-QWP-Max-Version       the client's highest version; 1 without it
//              X-QWP-Client-Id         the client's name, shown in sys.connections
//              X-QWP-Accept-Encoding   how batches may be compressed, the best first: zstd[;level=1..9], raw
//              X-QWP-Max-Batch-Rows    rows of a batch; 0: as the server likes
//   response   X-QWP-Version: 1 | [X-QWP-Content-Encoding: zstd]
//
// One statement runs at a time. The client grants credit in bytes. A batch is sent whenever some credit is left, even
// if the batch is larger. Without credit, or when the client does not read, the query pauses as soon as its limit for
// unsent bytes is reached; a paused query occupies no thread. A message that breaks the format gets an error if it
// names its request; otherwise the connection ends.
//
// The dictionary of symbols is that of one result: if a result had symbols, the server tells the client to clear its
// dictionary before the next one.
//
// Close codes: 1001 the server shuts down; 1002 a message that cannot be understood; 1003 the client sent text; 1008
// the user does not exist any more, or a client that does not read; 1009 a message is too long; 1011 an internal error.

import type { IncomingHttpHeaders } from 'node:http'
import { NetworkError, ResourceError } from '../../engine/base/errors.js'
import { type QueryRequest, RequestError, readWireRequest, type WireRequest } from '../../engine/engine.js'
import type { Principal } from '../common/users.js'
import type { HttpContext } from './context.js'
import { errorFrame, noRequest, resetFrame, serverInfo } from './qwp-read-frames.js'
import { type QwpReader, QwpStatement, type ReadOptions } from './qwp-statement.js'
import { closeCodes } from './web-sockets.js'

/** A quarter of a page of a part. */
const batchRowsDefault = 16_384
const zstdLevelDefault = 1
const zstdLevelMax = 9

/** A string is the reason why the handshake is refused. */
export function readOptionsOf(headers: IncomingHttpHeaders): ReadOptions | string {
  const rows = String(headers['x-qwp-max-batch-rows'] ?? '0')
  if (!/^[0-9]{1,15}$/.test(rows)) return `invalid X-QWP-Max-Batch-Rows, expected a number [value=${rows}]`
  const asked = Number(rows)
  return {
    rowsMax: asked === 0 ? batchRowsDefault : Math.min(asked, batchRowsDefault),
    zstdLevel: zstdLevelOf(String(headers['x-qwp-accept-encoding'] ?? '')),
  }
}

/** The first known encoding counts. */
function zstdLevelOf(accepted: string): number {
  for (const token of accepted.split(',')) {
    const [name = '', ...parameters] = token.split(';').map((part) => part.trim().toLowerCase())
    if (name === 'raw' || name === 'identity') return 0
    if (name !== 'zstd') continue
    const level = parameters.map((parameter) => /^level=([0-9]{1,3})$/.exec(parameter)?.[1]).find(Boolean)
    return Math.min(zstdLevelMax, Math.max(1, Number(level ?? zstdLevelDefault)))
  }
  return 0
}

/** Responses to invalid requests that may wait for the client to read them. */
const responseBytesMax = 4 * 1024 * 1024

/** Serves the connection until it is closed. `leaving` ends it in order. */
export async function serveReader(context: HttpContext, reader: QwpReader, leaving: AbortSignal): Promise<void> {
  const { socket, held } = reader
  const served = new ReadConnection(context, reader)
  const leave = (): void => socket.end()
  leaving.addEventListener('abort', leave)
  let reason: string | null = null
  try {
    socket.send(serverInfo(context.clock.nowMicros()))
    for await (const message of socket.messages) served.take(message)
    await served.end(leaving.aborted ? 'the server shuts down' : undefined)
    socket.close(leaving.aborted ? closeCodes.goingAway : closeCodes.normal, leaving.aborted ? 'shutdown' : '')
  } catch (error) {
    reason = error instanceof Error ? error.message : String(error)
    const isProtocol = error instanceof NetworkError
    context.log(isProtocol ? 'W' : 'E', 'qwp', `connection closed: ${reason} [id=${held.connection.id}]`)
    await served.end(reason)
    socket.send(errorFrame(noRequest, error))
    socket.close(isProtocol ? closeCodes.protocol : closeCodes.internal, reason)
  } finally {
    leaving.removeEventListener('abort', leave)
    await socket.closed
    context.registry.close(held.connection, reason)
  }
}

/** Whether the user still exists. Statements check its rights. */
export function mayRead({ auth }: HttpContext, principal: Principal): boolean {
  return auth.refresh(principal) !== null
}

class ReadConnection {
  readonly #context: HttpContext
  readonly #reader: QwpReader
  #running: QwpStatement | null = null
  #ended: Promise<void> = Promise.resolve()
  /** The client's dictionary of symbols is not empty. */
  #hasSymbols = false

  constructor(context: HttpContext, reader: QwpReader) {
    this.#context = context
    this.#reader = reader
  }

  /** Throws NetworkError: the connection cannot go on. */
  take(message: Uint8Array): void {
    this.#context.registry.touch(this.#reader.held.connection)
    const request = this.#read(message)
    if (request?.kind === 'query') this.#start(request)
    else if (request !== null && request.requestId === this.#running?.requestId) {
      if (request.kind === 'cancel') this.#running.cancel('cancelled by the client')
      else this.#running.grant(request.bytes)
    }
  }

  /** Cancels the running statement, and resolves when it has ended. */
  end(reason?: string): Promise<void> {
    this.#running?.cancel(reason)
    return this.#ended
  }

  #read(message: Uint8Array): WireRequest | null {
    try {
      return readWireRequest(message)
    } catch (error) {
      if (!(error instanceof RequestError)) throw error
      this.#refuse(error.requestId, error.isLimit ? new ResourceError(error.message) : error)
      return null
    }
  }

  #refuse(requestId: bigint, error: Error): void {
    const { socket } = this.#reader
    this.#context.counters.queryErrors++
    socket.send(errorFrame(requestId, error))
    if (socket.waitingBytes > responseBytesMax) socket.close(closeCodes.policy, 'responses are not read')
  }

  #start(request: QueryRequest): void {
    if (this.#running !== null) {
      this.#refuse(request.requestId, new ResourceError('a connection runs one statement at a time'))
      return
    }
    if (this.#hasSymbols) this.#reader.socket.send(resetFrame())
    this.#hasSymbols = false
    const statement = new QwpStatement(this.#context, this.#reader, request)
    this.#running = statement
    this.#ended = statement.run().then(({ symbols }) => {
      this.#hasSymbols = symbols > 0
      this.#running = null
    })
  }
}
