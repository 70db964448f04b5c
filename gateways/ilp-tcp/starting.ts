// Closes connections of line protocol while the server starts, so that senders keep their lines and retry.

import { createServer } from 'node:net'
import type { BindAddress } from '../common/bind-address.js'
import { listen, type TakenPort } from '../common/listen.js'

export async function takeLinePort(bindTo: BindAddress): Promise<TakenPort> {
  const server = createServer((socket) => socket.destroy())
  return { server, address: await listen(server, bindTo), handOver: () => {} }
}
