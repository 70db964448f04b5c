// Handles ingestion by QWP, the columnar protocol over WebSocket: GET /write/v4 and /api/v4/write are upgraded to a
// WebSocket connection. Each message carries rows, column by column, and gets a response. engine/qwp/message.ts
// describes the messages, qwp-frames.ts the responses.
//
//   request    X-QWP-Max-Version          the client's highest version; 1 without it
//              X-QWP-Client-Id            the client's name, shown in sys.connections
//              X-QWP-Request-Durable-Ack  true: tell when rows are durable
//   response   X-QWP-Version: 1 | X-QWP-Max-Batch-Size: bytes of a message | [X-QWP-Durable-Ack: enabled]
//
// A message is accepted when its rows are as durable as the commit mode of the server promises. In the mode `sync` they
// are then on disk, so a requested durable acknowledgement is sent at once; in other modes it is not available, and the
// response lacks X-QWP-Durable-Ack.
//
// Close codes: 1001 the server shuts down, or has refused writes for too long (the client sends again what was not
// accepted); 1003 the client sent text; 1008 the user has lost the right to write, or the client does not read the
// responses; 1009 a message is too long; 1011 an internal error.

import { hasRight } from '../../engine/base/rights.js'
import type { Receipt } from '../../engine/engine.js'
import { HoldExpired, ingestMessages } from '../../pipeline/ingest.js'
import type { Principal } from '../common/users.js'
import type { HttpContext } from './context.js'
import { acceptedFrame, durableFrame, isKnown, rejectedFrame } from './qwp-frames.js'
import type { HttpConnection } from './sockets.js'
import { closeCodes, type MessageSocket } from './web-sockets.js'

/** Responses that may wait for the client to read them. */
const responseBytesMax = 4 * 1024 * 1024

export interface QwpWriter {
  readonly held: HttpConnection
  readonly principal: Principal
  readonly socket: MessageSocket
  readonly wantsDurable: boolean
}

/** Serves the connection until it is closed. `leaving` ends it in order. */
export async function serveWriter(context: HttpContext, writer: QwpWriter, leaving: AbortSignal): Promise<void> {
  const { engine, options, registry, log, clock, counters } = context
  const { held, socket } = writer
  const { connection } = held
  connection.state = 'writing'
  const leave = (): void => socket.end()
  leaving.addEventListener('abort', leave)
  let reason: string | null = null
  try {
    await ingestMessages(socket.messages, {
      engine,
      connectionId: connection.id,
      badValue: options.qwpBadValue,
      // A shutdown does not wait for writes to be accepted again: the client repeats what has no answer.
      holdMs: () => (leaving.aborted ? 0 : options.qwpHoldMs),
      groups: context.qwpGroups,
      nowMs: () => clock.monotonicMs(),
      accepted: (sequence, receipt) => {
        registry.touch(connection)
        accept(context, writer, sequence, receipt)
      },
      rejected: (sequence, error) => {
        registry.touch(connection)
        const expected = isKnown(error)
        counters.qwp.rejected++
        if (!expected) counters.unhandledErrors++
        log(expected ? 'W' : 'E', 'qwp', `message rejected: ${error.message} [id=${connection.id}, number=${sequence}]`)
        respond(writer, rejectedFrame(sequence, error))
      },
    })
    socket.close(leaving.aborted ? closeCodes.goingAway : closeCodes.normal, leaving.aborted ? 'shutdown' : '')
  } catch (error) {
    reason = error instanceof Error ? error.message : String(error)
    log('W', 'qwp', `connection closed: ${reason} [id=${connection.id}, from=${connection.remoteAddress}]`)
    socket.close(error instanceof HoldExpired ? closeCodes.goingAway : closeCodes.internal, reason)
  } finally {
    leaving.removeEventListener('abort', leave)
    await socket.closed
    registry.close(connection, reason)
  }
}

function accept({ counters }: HttpContext, writer: QwpWriter, sequence: number, receipt: Receipt): void {
  const { connection } = writer.held
  const tables = receipt.tables ?? []
  connection.rowsReceived += receipt.rows + receipt.rejected
  connection.rowsCommitted += receipt.rows
  connection.rowsRejected += receipt.rejected
  counters.qwp.accepted++
  counters.rowsWritten += receipt.rows
  counters.rowsRejected += receipt.rejected
  respond(writer, acceptedFrame(sequence, tables))
  if (writer.wantsDurable && tables.length > 0) respond(writer, durableFrame(tables))
}

function respond({ socket }: QwpWriter, frame: Buffer): void {
  socket.send(frame)
  if (socket.waitingBytes > responseBytesMax) socket.close(closeCodes.policy, 'responses are not read')
}

/** Whether the user may still write. */
export function mayWrite({ auth, options }: HttpContext, principal: Principal): boolean {
  const current = auth.refresh(principal)
  return current !== null && hasRight({ ...current, readOnly: options.readOnly }, 'write')
}
