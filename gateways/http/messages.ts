// Request and response classes of the HTTP server, derived from those of node:http. They skip work of node:http that
// small requests do not need, and that takes longer than running such a request. They use members of node:http that its
// types do not declare; a test checks that the installed version of Node.js has them.

import { IncomingMessage, ServerResponse } from 'node:http'

declare module 'node:http' {
  interface IncomingMessage {
    /** Discards what is left of the body when the response has been sent. */
    _dump(): void
  }

  interface ServerResponse {
    /** The head, once it is complete. Whatever it holds when the response ends is sent with one write. */
    _header: string | null
    _hasBody: boolean
    /** Announced to clients as `Keep-Alive: timeout=`. */
    _keepAliveTimeout: number
  }
}

export class HttpRequest extends IncomingMessage {
  /** With nothing left to discard, the end of the stream would be reported in several turns, to nobody. */
  override _dump(): void {
    if (!this.complete || this.readableLength > 0) super._dump()
  }
}

export class HttpResponse extends ServerResponse {
  /**
   * Ends a response whose head is complete, after adding lines to the head. `body` has one character for each byte
   * (Latin-1). `end(body)` would pass head and body on as several chunks, for which the socket needs a vectored write.
   */
  endWith(lines: string, body: string): void {
    const head = this._header
    if (head !== null) this._header = `${head.slice(0, -2)}${lines}\r\n${this._hasBody ? body : ''}`
    this.end()
  }
}
