// Closes a connection after its final response without losing that response. Many clients read nothing until they
// have sent everything; closing the socket while they send would reset it and discard the response. So the server
// ends its own side only and discards what still arrives: for one second, and longer (up to 10 or 30 seconds) as long
// as enough bytes arrive in each second to show an upload in progress. Then it destroys the socket.

import type { Socket } from 'node:net'

export interface LingerLimits {
  /** Bytes that must arrive within a second to extend the wait by another second. */
  readonly bytesMin: number
  readonly secondsMax: number
}

/** Limits for unauthenticated clients (a second per MiB) and for authenticated ones, which may be slow. */
export const lingerLimits = {
  stranger: { bytesMin: 1024 * 1024, secondsMax: 10 },
  known: { bytesMin: 1, secondsMax: 30 },
} as const satisfies Readonly<Record<string, LingerLimits>>

const secondMs = 1000
const lingering = new WeakSet<Socket>()

export function isLingering(socket: Socket): boolean {
  return lingering.has(socket)
}

/**
 * Ends our side after pending writes, and destroys the socket when the client has ended its side or the time is
 * over.
 */
export function linger(socket: Socket, lingerLimits: LingerLimits): void {
  if (lingering.has(socket)) return
  lingering.add(socket)
  const closing = (): void => {
    if (socket.readableEnded) socket.destroy()
    else watchRemainder(socket, lingerLimits)
  }
  socket.once('end', () => {
    if (socket.writableFinished) socket.destroy()
  })
  socket.end()
  // The time starts when the whole response has been sent, so that slow readers are not cut off.
  if (socket.writableFinished) closing()
  else socket.once('finish', closing)
}

/** Destroys the socket if the remaining input arrives too slowly; the returned function stops watching. */
export function watchRemainder(socket: Socket, { bytesMin, secondsMax }: LingerLimits): () => void {
  let seconds = 0
  let before = socket.bytesRead
  const timer = setInterval(() => {
    const now = socket.bytesRead
    if (now - before < bytesMin || ++seconds >= secondsMax) socket.destroy()
    before = now
  }, secondMs)
  const end = (): void => clearInterval(timer)
  socket.once('close', end)
  return () => {
    socket.off('close', end)
    end()
  }
}
