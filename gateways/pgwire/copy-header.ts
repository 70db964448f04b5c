// HEADER MATCH of COPY FROM: the first line, in the text form, has to name the columns in their order.

import type { CsvShape } from '../../engine/engine.js'
import { PgError } from './sqlstate.js'

const lineBytesMax = 1024 * 1024
const unescaped: Readonly<Record<string, string>> = { t: '\t', n: '\n', r: '\r', b: '\b', f: '\f', v: '\v' }

export class HeaderMatch {
  readonly #shape: CsvShape
  #line: Buffer | null = Buffer.alloc(0)

  constructor(shape: CsvShape) {
    this.#shape = shape
  }

  /** What follows the header. */
  pass(bytes: Buffer, last: boolean): Buffer {
    if (this.#line === null) return bytes
    const line = Buffer.concat([this.#line, bytes])
    const end = line.indexOf(10)
    this.#line = line
    if (end < 0 && line.length > lineBytesMax) throw new PgError('22P04', 'the header line is too long')
    if (end < 0 && (!last || line.length === 0)) return line.subarray(line.length)
    this.#compare(line.toString('utf8', 0, end < 0 ? line.length : end).replace(/\r$/, ''))
    this.#line = null
    return line.subarray(end < 0 ? line.length : end + 1)
  }

  #compare(line: string): void {
    const { delimiter, columns } = this.#shape
    const fields = line.split(String.fromCharCode(delimiter))
    if (fields.length !== columns.length) {
      const counts = `got ${fields.length}, expected ${columns.length}`
      throw new PgError('22P04', `wrong number of fields in header line: ${counts}`)
    }
    for (const [index, { name }] of columns.entries()) {
      const field = (fields[index] ?? '').replace(/\\(.)/g, (_, letter: string) => unescaped[letter] ?? letter)
      if (field === name) continue
      const words = `got "${field}", expected "${name}"`
      throw new PgError('22P04', `column name mismatch in header line field ${index + 1}: ${words}`)
    }
  }
}
