// Reads the first bytes of a connection, a number of bytes or a line, before the handler of its protocol is attached:
// to recognise TLS, or to authenticate a sender of lines. The bytes after them stay in the socket.

import type { Socket } from 'node:net'

/** Reads exactly `count` bytes; null when the client disconnects or exceeds the deadline. */
export function readBytes(socket: Socket, count: number, deadlineMs: number): Promise<Buffer | null> {
  return readUntil(socket, deadlineMs, (seen) => (seen.length >= count ? count : -1), count)
}

/** Reads up to the first newline, which is dropped; null also when the line is longer than `bytesMax`. */
export async function readLine(socket: Socket, bytesMax: number, deadlineMs: number): Promise<string | null> {
  const end = (seen: Buffer): number => seen.indexOf(0x0a) + 1 || -1
  const line = await readUntil(socket, deadlineMs, end, bytesMax + 1)
  return line === null ? null : line.toString('latin1', 0, line.length - 1).replace(/\r$/, '')
}

/** `endOf` returns how many of the bytes are wanted, or -1 when more are needed. */
function readUntil(
  socket: Socket,
  deadlineMs: number,
  endOf: (seen: Buffer) => number,
  bytesMax: number,
): Promise<Buffer | null> {
  let seen: Buffer = Buffer.alloc(0)
  return new Promise((resolve) => {
    const finish = (bytes: Buffer | null): void => {
      clearTimeout(impatience)
      socket.off('readable', look).off('end', gone).off('close', gone).off('error', gone)
      resolve(bytes)
    }
    const gone = (): void => finish(null)
    const look = (): void => {
      for (let chunk: Buffer | null = socket.read(); chunk !== null; chunk = socket.read()) {
        seen = Buffer.concat([seen, chunk])
        const end = endOf(seen)
        if (end >= 0) {
          if (end < seen.length) socket.unshift(seen.subarray(end))
          finish(seen.subarray(0, end))
          return
        }
        if (seen.length >= bytesMax) {
          finish(null)
          return
        }
      }
    }
    const impatience = setTimeout(gone, deadlineMs)
    socket.on('readable', look).once('end', gone).once('close', gone).once('error', gone)
    look()
  })
}
