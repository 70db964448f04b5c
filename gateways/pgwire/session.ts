// One client from its start-up to its end: messages are handled in their order, one at a time. Answers are gathered
// while further messages wait and sent when none does.

import { NetworkError } from '../../engine/base/errors.js'
import type { PgSession } from './context.js'
import { bind, close, closePortals, describe, execute, failExtended, parse, sync } from './extended-query.js'
import type { Inbound, Message } from './inbound.js'
import { MessageReader } from './reader.js'
import { simpleQuery } from './simple-query.js'

const letter = (character: string): number => character.charCodeAt(0)
const types = {
  query: letter('Q'),
  parse: letter('P'),
  bind: letter('B'),
  describe: letter('D'),
  execute: letter('E'),
  close: letter('C'),
  flush: letter('H'),
  sync: letter('S'),
  terminate: letter('X'),
  copyData: letter('d'),
  copyDone: letter('c'),
  copyFail: letter('f'),
} as const

/** Resolves when the client ends the session or has gone. Throws NetworkError when it breaks the protocol. */
export async function serveSession(pg: PgSession, inbound: Inbound): Promise<void> {
  try {
    for (;;) {
      const message = inbound.next()
      if (message === null) {
        if (inbound.ended) return
        const drained = pg.out.flush()
        if (drained !== null) await drained
        await inbound.wait()
        continue
      }
      pg.registry.touch(pg.connection)
      if (message.type === types.terminate) return
      pg.connection.state = 'querying'
      const handled = handle(pg, message)
      if (handled !== null) await handled
      pg.connection.state = 'idle'
      if (pg.out.full) await pg.out.drained()
    }
  } finally {
    await closePortals(pg)
  }
}

function handle(pg: PgSession, message: Message): Promise<void> | null {
  const { type } = message
  if (type === types.sync) return sync(pg)
  if (pg.skipping) return null
  if (type === types.query) return simpleQuery(pg, new MessageReader(message))
  return extended(pg, message)
}

async function extended(pg: PgSession, message: Message): Promise<void> {
  const reader = new MessageReader(message)
  try {
    switch (message.type) {
      case types.parse:
        return parse(pg, reader)
      case types.bind:
        return await bind(pg, reader)
      case types.describe:
        return describe(pg, reader)
      case types.execute:
        return await execute(pg, reader)
      case types.close:
        return await close(pg, reader)
      case types.flush: {
        const drained = pg.out.flush()
        if (drained !== null) await drained
        return
      }
      // What is left of a COPY that has failed.
      case types.copyData:
      case types.copyDone:
      case types.copyFail:
        return
      default:
        throw new NetworkError(`unknown message type [type=${JSON.stringify(String.fromCharCode(message.type))}]`)
    }
  } catch (error) {
    if (error instanceof NetworkError) throw error
    failExtended(pg, error)
  } finally {
    pg.running = null
  }
}
