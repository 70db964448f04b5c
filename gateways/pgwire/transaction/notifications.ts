// LISTEN, UNLISTEN and NOTIFY between the sessions of one server.
//
//   noted     requests of a session, pending until its transaction ends: at COMMIT, or without BEGIN at Sync or the
//             end of the query string. ROLLBACK discards them. Equal NOTIFYs within a transaction are merged.
//   inbox     notifications for a listening session. An idle session gets them at once, others before the next
//             ReadyForQuery outside of a transaction.
//
// Invariant: an inbox holds at most inboxBytesMax plus one transaction's notifications. A transaction whose
// notifications do not fit into an inbox is rejected before anything of it is stored; the error names the session
// that does not read, so that an administrator can end it.

import type { PgSession } from '../context.js'
import { notificationResponse } from '../protocol/messages.js'
import { PgError } from '../protocol/sqlstate.js'
import type { Listener, PendingRequest } from './channels.js'

const channelBytesMax = 63
const payloadBytesMax = 7999
const inboxBytesMax = 8 * 1024 * 1024
const notedMax = 100_000

/** Records LISTEN or UNLISTEN (null: all channels). */
export function noteListening(pg: PgSession, action: 'listen' | 'unlisten', channel: string | null): void {
  const name = channel === null ? null : cut(channel)
  // Each one counts, in order, so keys are unique.
  const key = `${pg.noted.size}`
  if (action === 'listen' && name !== null) note(pg, key, { action, channel: name })
  else note(pg, key, { action: 'unlisten', channel: name })
}

/** Records NOTIFY or pg_notify(). */
export function noteNotification(pg: PgSession, channel: string, payload: string): void {
  if (channel === '') throw new PgError('22023', 'channel name cannot be empty')
  if (Buffer.byteLength(channel) > channelBytesMax) throw new PgError('22023', 'channel name too long')
  if (Buffer.byteLength(payload) > payloadBytesMax) throw new PgError('22023', 'payload string too long')
  const message = notificationResponse(pg.connection.id, channel, payload)
  note(pg, `${channel}\0${payload}`, { action: 'notify', channel, message })
}

/** Truncates long names as PostgreSQL does. */
function cut(name: string): string {
  const bytes = Buffer.from(name)
  if (bytes.length <= channelBytesMax) return name
  return bytes.toString('utf8', 0, channelBytesMax).replace(/\ufffd+$/, '')
}

function note({ noted }: PgSession, key: string, action: PendingRequest): void {
  if (noted.size === notedMax) throw new PgError('54000', `too many notifications in one transaction [max=${notedMax}]`)
  if (!noted.has(key)) noted.set(key, action)
}

/** Discards the requests after the first `count`. */
export function forgetNoted({ noted }: PgSession, count = 0): void {
  for (const key of [...noted.keys()].slice(count)) noted.delete(key)
}

/** Checks, before the transaction is stored, that its requests can be carried out. */
export function checkNoted({ noted, channels }: PgSession): void {
  const coming = new Map<Listener, number>()
  for (const one of noted.values()) {
    if (one.action !== 'notify') continue
    for (const listener of channels.listeners(one.channel)) {
      const bytes = (coming.get(listener) ?? listener.inbox.bytes) + one.message.length
      if (bytes > inboxBytesMax) throw overfull(listener)
      coming.set(listener, bytes)
    }
  }
}

function overfull({ connection, inbox }: Listener): PgError {
  const where = `process=${connection.id}, bytes=${inbox.bytes}, max=${inboxBytesMax}`
  return new PgError('54000', `too many notifications are queued for a session that does not read them [${where}]`)
}

/** After a successful transaction: changes the subscriptions, then delivers the notifications. */
export function deliverNotifications(pg: PgSession): void {
  if (pg.noted.size === 0) return
  const { channels } = pg
  const all = [...pg.noted.values()]
  pg.noted.clear()
  for (const one of all) {
    if (one.action === 'listen') channels.listen(pg, one.channel)
    else if (one.action === 'unlisten') channels.leave(pg, one.channel)
  }
  const notified = new Set<Listener>()
  for (const one of all) {
    if (one.action !== 'notify') continue
    for (const listener of channels.listeners(one.channel)) {
      listener.inbox.messages.push(one.message)
      listener.inbox.bytes += one.message.length
      notified.add(listener)
    }
  }
  for (const listener of notified) if (listener !== pg) listener.inbound.nudge()
}

/** Sends the inbox of a session outside of a transaction; returns whether there was anything. */
export function sendInbox({ inbox, out, status }: PgSession): boolean {
  if (inbox.messages.length === 0 || status !== 'I') return false
  for (const message of inbox.messages.splice(0)) out.put(message)
  inbox.bytes = 0
  return true
}
