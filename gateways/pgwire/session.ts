// Serves one PostgreSQL client from start-up to disconnect: handles messages in order, one at a time. Responses are
// buffered while further messages of the client are waiting, and sent when there are none; responses of the extended
// protocol are sent together with the response to Flush or Sync. After an error in the extended protocol, all messages
// up to the next Sync are skipped.

import { NetworkError, NotReadyError } from '../../engine/base/errors.js'
import { takeBinds } from './bind-run.js'
import type { PgSession } from './context.js'
import { bind, close, describe, execute, parse, sync } from './extended-query.js'
import type { Inbound, Message } from './protocol/inbound.js'
import { readyForQuery } from './protocol/messages.js'
import { MessageReader } from './protocol/reader.js'
import { PgError } from './protocol/sqlstate.js'
import { whenFetched } from './run.js'
import { simpleQuery } from './simple-query.js'
import { discardDeferred } from './transaction/deferred-state.js'
import { fail } from './transaction/failure.js'
import { sendInbox } from './transaction/notifications.js'
import { closeCursors, closePortals, type Waiting } from './transaction/portals.js'
import { releaseSnapshots } from './transaction/snapshots.js'
import { respondToSyncs } from './transaction/transaction.js'

const codeOf = (character: string): number => character.charCodeAt(0)
const types = {
  query: codeOf('Q'),
  parse: codeOf('P'),
  bind: codeOf('B'),
  describe: codeOf('D'),
  execute: codeOf('E'),
  close: codeOf('C'),
  flush: codeOf('H'),
  sync: codeOf('S'),
  terminate: codeOf('X'),
  copyData: codeOf('d'),
  copyDone: codeOf('c'),
  copyFail: codeOf('f'),
  functionCall: codeOf('F'),
} as const

/** State names of pg_stat_activity. */
const quietStates = { I: 'idle', T: 'idle in transaction', E: 'idle in transaction (aborted)' } as const

/** Resolves when the session ends or the client disconnects. Throws NetworkError for a protocol violation. */
export async function serveSession(pg: PgSession, inbound: Inbound): Promise<void> {
  try {
    for (;;) {
      const taken = takeBinds(pg)
      if (taken !== null) await taken.catch((error) => failExtended(pg, error))
      const message = inbound.next()
      if (message === null) {
        pg.connection.state = quietStates[pg.status]
        if (pg.pendingSyncs.length > 0) void respondToSyncs(pg)
        if (pg.isIdle && !pg.skipping && sendInbox(pg)) pg.isAwaited = true
        const drained = pg.isAwaited || pg.out.full ? pg.out.flush() : null
        pg.isAwaited = false
        if (drained !== null) {
          // Messages that arrived meanwhile did not wake this loop.
          await drained
          continue
        }
        if (inbound.ended) return
        await awaited(pg, inbound)
        pg.registry.touch(pg.connection)
        pg.connection.state = 'querying'
        continue
      }
      if (message.type === types.terminate) return
      const handled = handle(pg, message)
      if (handled !== null) await handled
      if (!pg.out.full) continue
      // Reserved places for responses to Sync must be filled before the session ends.
      await respondToSyncs(pg)
      await pg.out.drained()
    }
  } finally {
    pg.channels.leave(pg, null)
    await respondToSyncs(pg)
    discardDeferred(pg)
    releaseSnapshots(pg)
    await closePortals(pg)
    await closeCursors(pg, () => true)
  }
}

/** Waits for the client's next message, up to the idle timeouts that it has set. Throws PgError. */
async function awaited(pg: PgSession, inbound: Inbound): Promise<void> {
  const isOpen = pg.status !== 'I'
  const limit = Number(pg.settings.get(isOpen ? 'idle_in_transaction_session_timeout' : 'idle_session_timeout') ?? 0)
  if (limit === 0) return inbound.wait()
  const [code, what] = isOpen ? ['25P03', 'idle-in-transaction'] : ['57P05', 'idle-session']
  let timer: NodeJS.Timeout | undefined
  const silence = new Promise<never>((_resolve, reject) => {
    const end = (): void => reject(new PgError(code, `terminating connection due to ${what} timeout`))
    timer = setTimeout(end, Math.min(limit, timerMsMax))
  })
  try {
    await Promise.race([inbound.wait(), silence])
  } finally {
    clearTimeout(timer)
  }
}

/** The longest delay that timers support. */
const timerMsMax = 2 ** 31 - 1

function handle(pg: PgSession, message: Message): Waiting {
  const { type } = message
  pg.isIdle = type === types.sync || type === types.query || type === types.functionCall
  if (pg.isIdle) pg.isAwaited = true
  if (type === types.sync) return sync(pg)
  if (pg.skipping) return null
  if (type === types.query) return simpleQuery(pg, new MessageReader(message, pg.out.encoding))
  if (type === types.functionCall) return refuseCall(pg)
  try {
    const waiting = extended(pg, message)
    if (waiting !== null) return waiting.then(null, (error) => failExtended(pg, error)).finally(() => ended(pg))
    ended(pg)
    return null
  } catch (error) {
    ended(pg)
    if (error instanceof NotReadyError) return whenFetched(pg, error, () => handle(pg, message) ?? undefined)
    failExtended(pg, error)
    return null
  }
}

/** Rejects FunctionCall, which drivers use for large objects. It is its own unit: no Sync follows. */
function refuseCall(pg: PgSession): null {
  fail(pg, new PgError('0A000', 'function calls by OID are not supported: call functions by name in SELECT'))
  pg.out.put(readyForQuery(pg.status))
  return null
}

function ended(pg: PgSession): void {
  pg.running = null
}

function failExtended(pg: PgSession, error: unknown): void {
  if (error instanceof NetworkError) throw error
  pg.skipping = true
  pg.isAwaited = true
  fail(pg, error)
}

function extended(pg: PgSession, message: Message): Waiting {
  const reader = new MessageReader(message, pg.out.encoding)
  switch (message.type) {
    case types.bind:
      return bind(pg, reader)
    case types.execute:
      return execute(pg, reader)
    case types.parse:
      return parse(pg, reader)
    case types.describe:
      return describe(pg, reader)
    case types.close:
      return close(pg, reader)
    case types.flush:
      return pg.out.flush()
    // Remaining messages of a failed COPY.
    case types.copyData:
    case types.copyDone:
    case types.copyFail:
      return null
    default:
      throw new NetworkError(`unknown message type [type=${JSON.stringify(String.fromCharCode(message.type))}]`)
  }
}
