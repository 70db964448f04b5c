// Splits the bytes that a client sends into whole messages. Its `stage` is a Writable, the end of the connection's
// stream pipeline; the session reads messages at its own pace.
//
//   in     Buffer chunks of any size, as a socket delivers them
//   out    next(): the next whole message, or null; wait() resolves when there may be more
//   state  unread chunks, up to `heldBytesMax` plus what the current message still needs
//   owner  a message's body is a view of the chunk, or of a copy when chunks had to be joined; it stays valid
//   errors NetworkError when a length is invalid or exceeds the limit
//
// Backpressure: the write callback of a chunk is called when less than `heldBytesMax` is unread, or when the current
// message needs more; until then the socket is not read and TCP slows the client down. Some bytes are always read ahead,
// so the server notices a disconnect while a statement runs.
//
//   Message => type:byte length:int32 body       Startup => length:int32 body, without a type

import { Writable } from 'node:stream'
import { NetworkError } from '../../../engine/base/errors.js'

const heldBytesMax = 256 * 1024

export interface Message {
  /** Character code; 0 for a startup message. */
  type: number
  /** Buffer that contains the body, from `start` to `end`. */
  bytes: Buffer
  start: number
  end: number
}

export class Inbound {
  readonly stage: Writable
  /** Messages are untyped until this is cleared. */
  starting = true
  messageBytesMax: number
  /** Called once when the client ends its side. */
  onEnd: () => void = () => {}
  readonly #chunks: Buffer[] = []
  /** Bytes already read of the first chunk; `#held` counts the unread bytes of all chunks. */
  #at = 0
  #held = 0
  /** Bytes that the current message needs. */
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

  /** Discards all input, received or not. The connection stays open, so that the client can be told why. */
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

  /** The client has ended its side; received messages can still be read. */
  get ended(): boolean {
    return this.#ended
  }

  /** Whether there is no unread input, not even a partial message. */
  get idle(): boolean {
    return this.#held < this.#needed
  }

  /** Type of the next message, or 0 when there is none. */
  get nextType(): number {
    return this.#held === 0 || this.starting ? 0 : (this.#chunks[0] as Buffer)[this.#at]!
  }

  /**
   * The chunk and offset of the next message, joined when all of it has arrived; null before its length has
   * arrived.
   */
  get waiting(): { readonly bytes: Buffer; readonly at: number } | null {
    if (this.#held < 5) return null
    const bytes = this.#joined(5)
    const whole = 1 + bytes.readUInt32BE(this.#at + 1)
    return { bytes: this.#held < whole ? bytes : this.#joined(whole), at: this.#at }
  }

  /** Marks whole messages of that chunk as read, up to `at`. */
  pass(at: number): void {
    this.#held -= at - this.#at
    this.#needed = 5
    this.#at = at
    this.#leave()
    this.#resume()
  }

  /** The next message, valid until the next call; its bytes stay valid. Null when it is incomplete. */
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
      // That call may have admitted chunks that waited in the stream, without waking anyone.
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

  /** Releases a chunk that has been read. */
  #leave(): void {
    if (this.#at < (this.#chunks[0] as Buffer).length) return
    this.#chunks.shift()
    this.#at = 0
  }

  /** Resolves at the next event: bytes, the end of the connection, or `nudge`. */
  wait(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve
    })
  }

  nudge(): void {
    this.#news()
  }

  /** Accepts further chunks when a message needs them or there is room. */
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

  /** Joins the first chunk with following ones until it holds that many unread bytes. */
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
