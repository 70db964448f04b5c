// Stage: bytes of a client to whole messages; the last stage of a connection, read by the session at its own pace.
//
//   in     Buffer chunks of any size, as a socket delivers them
//   out    next(): the next whole message, or null; wait() resolves when there may be more
//   state  the chunks that have not been read, `heldBytesMax` of them and what the message under way still needs
//   owner  a message's body is a view of the chunk, or of a copy when chunks had to be joined; it stays valid
//   errors NetworkError when a length is impossible or larger than allowed
//
// Backpressure: a chunk is called back when what is held lies below `heldBytesMax`, or when the message under way needs
// more. So the end of the connection is seen while a statement runs, and a quick sender waits.
//
//   Message => type:byte length:int32 body       Startup => length:int32 body, without a type

import { Writable } from 'node:stream'
import { NetworkError } from '../../../engine/base/errors.js'

const heldBytesMax = 256 * 1024

export interface Message {
  /** Character code; 0 for a startup message. */
  type: number
  /** Of the body. */
  bytes: Buffer
  start: number
  end: number
}

export class Inbound {
  readonly stage: Writable
  /** Untyped messages come until this is cleared. */
  starting = true
  messageBytesMax: number
  /** Called once when the client sends nothing more. */
  onEnd: () => void = () => {}
  readonly #chunks: Buffer[] = []
  /** Bytes of the first chunk that have been read, and of all chunks that have not. */
  #at = 0
  #held = 0
  /** Bytes that the message under way needs. */
  #needed = 5
  #ended = false
  #closed = false
  #release: (() => void) | null = null
  #wake: (() => void) | null = null
  readonly #message: Message = { type: 0, bytes: Buffer.alloc(0), start: 0, end: 0 }

  constructor(messageBytesMax: number) {
    this.messageBytesMax = messageBytesMax
    this.stage = new Writable({
      highWaterMark: heldBytesMax,
      write: (chunk: Buffer, _encoding, callback) => {
        if (this.#closed) return callback()
        this.#chunks.push(chunk)
        this.#held += chunk.length
        if (this.#held < Math.max(heldBytesMax, this.#needed)) callback()
        else this.#release = callback
        this.#news()
      },
      destroy: (error, callback) => {
        this.#end()
        callback(error)
      },
      final: (callback) => {
        this.#end()
        callback()
      },
    })
  }

  #end(): void {
    if (this.#ended) return
    this.#ended = true
    this.onEnd()
    this.#news()
  }

  /** Nothing more is read, not even what has come. The connection stays, so that the client can be told why. */
  close(): void {
    this.#closed = true
    this.#chunks.length = 0
    this.#at = 0
    this.#held = 0
    this.#end()
  }

  get closed(): boolean {
    return this.#closed
  }

  /** The client sends nothing more; what it sent may still be read. */
  get ended(): boolean {
    return this.#ended
  }

  /** Whether anything waits to be read, a piece of a message included. */
  get idle(): boolean {
    return this.#held < this.#needed
  }

  /** The type of the next message, or 0 when nothing waits. */
  get nextType(): number {
    return this.#held === 0 || this.starting ? 0 : (this.#chunks[0] as Buffer)[this.#at]!
  }

  /** The chunk that holds the next message, whole when all of it has come, and where; null before its length has come. */
  get waiting(): { readonly bytes: Buffer; readonly at: number } | null {
    if (this.#held < 5) return null
    const bytes = this.#joined(5)
    const whole = 1 + bytes.readUInt32BE(this.#at + 1)
    return { bytes: this.#held < whole ? bytes : this.#joined(whole), at: this.#at }
  }

  /** Whole messages of that chunk have been read up to `at`. */
  pass(at: number): void {
    this.#held -= at - this.#at
    this.#needed = 5
    this.#at = at
    this.#leave()
    this.#resume()
  }

  /** The next message, valid until the next call; its bytes stay. Null when it is not whole yet. */
  next(): Message | null {
    const header = this.starting ? 4 : 5
    if (this.#held < header) {
      this.#needed = header
      return null
    }
    const first = this.#joined(header)
    const start = this.#at
    const length = first.readUInt32BE(start + header - 4)
    if (length < 4 || length > this.messageBytesMax) {
      throw new NetworkError(`invalid length of a message [bytes=${length}, max=${this.messageBytesMax}]`)
    }
    const whole = length + header - 4
    this.#needed = whole
    if (this.#held < whole) {
      this.#resume()
      // Chunks that waited in the stage have come within that call, and woke nobody.
      if (this.#held < whole) return null
    }
    const bytes = this.#joined(whole)
    const message = this.#message
    message.type = this.starting ? 0 : bytes[this.#at]!
    message.bytes = bytes
    message.start = this.#at + header
    message.end = this.#at + whole
    this.#at += whole
    this.#held -= whole
    this.#needed = 5
    this.#leave()
    this.#resume()
    return message
  }

  /** A chunk that has been read is given up. */
  #leave(): void {
    if (this.#at < (this.#chunks[0] as Buffer).length) return
    this.#chunks.shift()
    this.#at = 0
  }

  /** Resolves at the next news: bytes, the end of the connection, or `nudge`. */
  wait(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve
    })
  }

  nudge(): void {
    this.#news()
  }

  /** Further chunks are taken: a message needs them, or there is room. */
  #resume(): void {
    if (this.#release === null || this.#held >= Math.max(heldBytesMax, this.#needed)) return
    const release = this.#release
    this.#release = null
    release()
  }

  #news(): void {
    const wake = this.#wake
    this.#wake = null
    wake?.()
  }

  /** The first chunk, joined with what follows until it holds so many unread bytes. */
  #joined(bytes: number): Buffer {
    const [first] = this.#chunks
    if (first !== undefined && first.length - this.#at >= bytes) return first
    const parts = [(first as Buffer).subarray(this.#at)]
    let have = (first as Buffer).length - this.#at
    let count = 1
    for (; have < bytes; count++) {
      const chunk = this.#chunks[count] as Buffer
      parts.push(chunk)
      have += chunk.length
    }
    const joined = Buffer.concat(parts)
    this.#chunks.splice(0, count, joined)
    this.#at = 0
    return joined
  }
}
