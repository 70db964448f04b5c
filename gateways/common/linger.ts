// How a connection ends behind a final answer. Many clients read no answer before they have sent everything; a socket
// that is closed while they send is reset, and the answer is lost with it. So our side alone ends, and what still comes is
// read and thrown away: for a second, and for each further second that shows an upload under way and not somebody who
// stays. Then the socket is destroyed.

import type { Socket } from 'node:net'

export interface Patience {
  /** Bytes that a second must have brought for another one to be granted. */
  readonly bytesMin: number
  readonly secondsMax: number
}

/** Who has shown no credentials gets a second for each MiB; who has may be slow. */
export const patience = {
  stranger: { bytesMin: 1024 * 1024, secondsMax: 10 },
  known: { bytesMin: 1, secondsMax: 30 },
} as const satisfies Readonly<Record<string, Patience>>

const secondMs = 1000
const lingering = new WeakSet<Socket>()

export function isLingering(socket: Socket): boolean {
  return lingering.has(socket)
}

/** Ends our side behind what was written, and the connection when the client has ended its own, or has had its time. */
export function linger(socket: Socket, patience: Patience): void {
  if (lingering.has(socket)) return
  lingering.add(socket)
  const closing = (): void => {
    if (socket.readableEnded) socket.destroy()
    else watchRest(socket, patience)
  }
  socket.once('end', () => {
    if (socket.writableFinished) socket.destroy()
  })
  socket.end()
  // An answer that a slow reader takes is not cut off: time runs when all of it has left.
  if (socket.writableFinished) closing()
  else socket.once('finish', closing)
}

/** Destroys the socket unless what is still read of it comes quickly enough; the function that is answered ends the watch. */
export function watchRest(socket: Socket, { bytesMin, secondsMax }: Patience): () => void {
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
