// Reads the fields of a client's message in order. Reading beyond the end throws NetworkError.

import { NetworkError } from '../../../engine/base/errors.js'
import { utf8Text } from '../../../engine/base/utf8-text.js'
import type { ClientEncoding } from './client-encoding.js'
import type { Message } from './inbound.js'

export class MessageReader {
  readonly source: Buffer
  readonly end: number
  /** Offset of the next byte. */
  at: number
  readonly #encoding: ClientEncoding | null

  /** `encoding`: of the client's strings; null: UTF-8. */
  constructor({ bytes, start, end }: Message, encoding: ClientEncoding | null = null) {
    this.#encoding = encoding
    this.source = bytes
    this.at = start
    this.end = end
  }

  get left(): number {
    return this.end - this.at
  }

  byte(): number {
    this.#require(1)
    return this.source[this.at++]!
  }

  int16(): number {
    this.#require(2)
    this.at += 2
    return this.source.readInt16BE(this.at - 2)
  }

  /** Reads a parameter count, which uses all 16 bits. */
  count(): number {
    return this.int16() & 0xffff
  }

  int32(): number {
    this.#require(4)
    this.at += 4
    return this.source.readInt32BE(this.at - 4)
  }

  /** Reads a string up to its zero byte. Throws SqlError for invalid UTF-8. */
  text(): string {
    if (this.at < this.end && this.source[this.at] === 0) {
      this.at++
      return ''
    }
    const zero = this.source.indexOf(0, this.at)
    if (zero < 0 || zero >= this.end) throw new NetworkError('a string of the message is not terminated')
    const { at, source } = this
    this.at = zero + 1
    if (this.#encoding !== null) return this.#encoding.reader()(source.subarray(at, zero)).toString()
    return utf8Text(source, at, zero)
  }

  /** Skips the next string if it equals `text`, which is ASCII. */
  skips(text: string): boolean {
    const { source, at } = this
    const zero = at + text.length
    if (zero >= this.end || source[zero] !== 0) return false
    for (let index = 0; index < text.length; index++) if (source[at + index] !== text.charCodeAt(index)) return false
    this.at = zero + 1
    return true
  }

  bytes(length: number): Buffer {
    this.#require(length)
    this.at += length
    return this.source.subarray(this.at - length, this.at)
  }

  rest(): Buffer {
    return this.bytes(this.left)
  }

  done(): void {
    if (this.left !== 0) throw new NetworkError('the message is longer than its fields')
  }

  #require(bytes: number): void {
    if (bytes < 0 || this.left < bytes) throw new NetworkError('the message is shorter than its fields')
  }
}
