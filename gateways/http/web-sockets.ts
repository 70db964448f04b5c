// Wraps WebSocket connections, which begin as an HTTP request; the only module that uses the package ws. Messages are
// not compressed. Pings keep connections alive, and a connection whose client does not answer them is closed. Clients
// of the query endpoint need not answer, because some read from the socket only while they wait for a result.

import type { IncomingMessage } from 'node:http'
import { createRequire } from 'node:module'
import { type Duplex, Readable } from 'node:stream'
import type { WebSocket } from 'ws'
import { unmasker } from '../common/unmask.js'
import { HttpRequest } from './messages.js'
import { cutText } from './qwp-frames.js'

export const closeCodes = {
  ...{ normal: 1000, goingAway: 1001, protocol: 1002, unsupported: 1003, policy: 1008, internal: 1011 },
} as const

const pingMs = 30_000
/** How long a closing client may take to close its side. */
const closeMs = 5000
/** What a close frame has room for. */
const reasonBytesMax = 123

/** Requests for these paths may change the protocol. */
export type UpgradePaths = ReadonlySet<string>

/**
 * The class of requests of a server. Node hands a connection over as soon as a request asks for any other protocol,
 * and some clients always ask for HTTP/2: only a WebSocket on one of the paths is one.
 */
export function upgradeRequests(paths: UpgradePaths): typeof HttpRequest {
  return class extends HttpRequest {
    declare asked: boolean | null

    get upgrade(): boolean {
      return this.asked === true && this.headers.upgrade?.toLowerCase() === 'websocket' && paths.has(pathOf(this))
    }

    set upgrade(asked: boolean | null) {
      this.asked = asked
    }
  }
}

export function pathOf({ url = '' }: IncomingMessage): string {
  return url.replace(/^https?:\/\/[^/?#]*/i, '').replace(/[?#].*$/, '')
}

/** An open connection. */
export interface MessageSocket {
  /** The messages that the client sends; it ends when the client closes, or behind what had come at `end`. */
  readonly messages: Readable
  /** Bytes that the client has not taken yet. */
  readonly waitingBytes: number
  /** Calls back when the bytes are on their way, or the connection is closed. */
  send(bytes: Uint8Array, sent?: () => void): void
  /** Takes no more messages. */
  end(): void
  close(code: number, reason: string): void
  /** Resolves when the connection is closed. */
  readonly closed: Promise<void>
}

export interface Handshake {
  readonly request: IncomingMessage
  readonly socket: Duplex
  readonly head: Buffer
  readonly headers: readonly string[]
  readonly messageBytesMax: number
  /** Whether the client reads at any time. */
  readonly answersPings: boolean
}

/** Completes the handshake. A request that is no valid handshake is answered with a 400. */
export function acceptWebSocket(handshake: Handshake, opened: (socket: MessageSocket) => void): void {
  const { request, socket, head, headers, messageBytesMax, answersPings } = handshake
  const { WebSocketServer }: typeof import('ws') = createRequire(import.meta.url)('ws')
  const server = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    skipUTF8Validation: true,
    maxPayload: messageBytesMax,
  })
  server.on('headers', (lines) => lines.push(...headers))
  server.handleUpgrade(request, socket, head, (accepted) => {
    // Comes before the library's listener, and before the first chunk.
    socket.prependListener('data', unmasker())
    socket.prependListener('close', () => discardUnread(socket))
    opened(messageSocket(accepted, answersPings))
  })
}

/**
 * When a paused connection is destroyed, the library takes the bytes that it holds without a 'data' event, so they would
 * not be unmasked. Nothing in them was acknowledged.
 */
function discardUnread(socket: Duplex): void {
  if (socket.readableLength > 0) socket.read(socket.readableLength)
}

function messageSocket(socket: WebSocket, answersPings: boolean): MessageSocket {
  const messages = new Readable({ objectMode: true, highWaterMark: 2, read: () => socket.resume() })
  let isOver = false
  const end = (): void => {
    if (!isOver) messages.push(null)
    isOver = true
  }
  socket.on('message', (data, isBinary) => {
    if (isOver || messages.destroyed) return
    if (!isBinary) socket.close(closeCodes.unsupported, 'messages are binary')
    else if (!messages.push(data)) socket.pause()
  })
  // The library closes the connection; the error only says why.
  socket.on('error', () => {})
  const closed = new Promise<void>((resolve) => {
    socket.on('close', () => {
      end()
      resolve()
    })
  })
  keepAlive(socket, answersPings)
  return {
    messages,
    closed,
    end,
    get waitingBytes() {
      return socket.bufferedAmount
    },
    send: (bytes, sent) => {
      if (socket.readyState === socket.OPEN) socket.send(bytes, { binary: true }, () => sent?.())
      else sent?.()
    },
    close: (code, reason) => {
      socket.resume()
      socket.close(code, cutText(reason, reasonBytesMax))
      setTimeout(() => socket.terminate(), closeMs).unref()
    },
  }
}

function keepAlive(socket: WebSocket, answersPings: boolean): void {
  let isAlive = true
  socket.on('pong', () => {
    isAlive = true
  })
  const timer = setInterval(() => {
    // A client that is held back is not heard.
    if (socket.isPaused || !answersPings) {
      isAlive = true
      if (!answersPings && socket.bufferedAmount === 0) socket.ping()
      return
    }
    if (!isAlive) socket.terminate()
    isAlive = false
    socket.ping()
  }, pingMs).unref()
  socket.on('close', () => clearInterval(timer))
}
