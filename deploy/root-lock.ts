// One server for one root folder: two would write the same log. The lock is a local socket that the server listens on,
// because it ends with its process however that ends: who finds the socket connects to it, and where nobody answers,
// the file is the remains of a killed server and is replaced.

import { createHash } from 'node:crypto'
import { rmSync } from 'node:fs'
import { connect, createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Bytes that every system takes as the path of a local socket. */
const socketPathBytesMax = 100

export interface RootLock {
  release(): void
}

/** Rejects when another server holds the root folder. */
export async function lockRoot(root: string): Promise<RootLock> {
  const path = socketPath(root)
  const first = await listenOn(path)
  if (first !== null) return lockOf(first)
  if (await answers(path)) throw new Error(`another server uses the folder ${root}`)
  rmSync(path, { force: true })
  const second = await listenOn(path)
  if (second === null) throw new Error(`another server is starting in the folder ${root}`)
  return lockOf(second)
}

/** Whether a server runs on the root folder, which is given as an absolute path. */
export function isServed(root: string): Promise<boolean> {
  return answers(socketPath(root))
}

function lockOf(server: Server): RootLock {
  // The lock alone keeps no process alive.
  server.unref()
  return { release: () => void server.close() }
}

function socketPath(root: string): string {
  const name = `penstock-${createHash('sha256').update(root).digest('hex').slice(0, 16)}`
  if (process.platform === 'win32') return `\\\\.\\pipe\\${name}`
  const path = join(root, 'tmp', 'server.sock')
  return Buffer.byteLength(path) <= socketPathBytesMax ? path : join(tmpdir(), `${name}.sock`)
}

/** Null when the path is taken. */
function listenOn(path: string): Promise<Server | null> {
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => socket.destroy())
    server.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE') resolve(null)
      else reject(error)
    })
    server.listen(path, () => resolve(server))
  })
}

function answers(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path)
    socket.once('error', () => resolve(false))
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
  })
}
