// Encodes rows for COPY TO STDOUT, each as a CopyData message.
//
//   CopyData => 'd' length:int32 row
//   text     fields separated by the delimiter, special characters escaped by backslashes, and a newline
//   csv      RFC 4180; quotes where necessary, also around what would be read as NULL; and a newline
//   binary   as DataRow

import { wireForm } from '../../types/pg-encode-value.js'
import { valueReader } from '../batch/values.js'
import type { PgCopyEncoding } from '../run/messages.js'
import { binaryCopyRows, copyData, putMessage } from './encode-pg.js'
import type { Encoder, EncoderOptions } from './encoder.js'

const headerBytes = 5
/** Of the text format: characters that would separate fields or rows. */
const escapes: Readonly<Record<string, string>> = {
  '\b': '\\b',
  '\f': '\\f',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
  '\v': '\\v',
  '\\': '\\\\',
}

export function pgCopyEncoder(encoding: PgCopyEncoding, options: EncoderOptions): Encoder {
  const { context, columns, writer } = options
  const end = (): void => writer.flush()
  if (encoding.format === 'binary') return { begin: () => {}, rows: binaryCopyRows(options), end }
  const field =
    encoding.format === 'csv' ? csvField(encoding) : (text: string) => escapeCopyField(text, encoding.delimiter)
  const names = new Set(encoding.force.names.map((name) => name.toLowerCase()))
  const forced = columns.map(({ name }) => encoding.force.all || names.has(name.toLowerCase()))
  const forms = columns.map(({ type }) => wireForm(type, false))
  const put = (fields: readonly (string | null)[], rows: number): void => {
    const strings = fields.map((text, index) =>
      text === null ? encoding.nullText : field(text, rows > 0 && forced[index] === true),
    )
    const line = strings.join(encoding.delimiter)
    putMessage(context.memory, writer, lineMessage(line), rows)
  }
  return {
    begin: () => {
      if (!encoding.header) return
      put(
        columns.map(({ name }) => name),
        0,
      )
    },
    rows: ({ vectors }, from, to) => {
      const readers = vectors.map((vector) => valueReader(context.memory, context.strings, vector))
      for (let row = from; row < to; row++) {
        const strings = readers.map((read, index) => forms[index]?.(read(row)) ?? null)
        put(strings as readonly (string | null)[], 1)
      }
    },
    end,
  }
}

function lineMessage(line: string): Buffer {
  const bytes = Buffer.byteLength(line, 'utf8') + 1
  const message = Buffer.allocUnsafe(headerBytes + bytes)
  message[0] = copyData
  message.writeInt32BE(bytes + 4, 1)
  message.write(line, headerBytes, 'utf8')
  message[headerBytes + bytes - 1] = 10
  return message
}

function csvField(encoding: PgCopyEncoding): (text: string, forced: boolean) => string {
  const { delimiter, nullText, quote, quoteEscape } = encoding
  return (text, forced) => {
    const divides = text.includes(delimiter) || text.includes(quote) || /[\n\r]/.test(text)
    if (!forced && !divides && text !== nullText && text !== '\\.') return text
    const escaped = quoteEscape === quote ? text : text.replaceAll(quoteEscape, quoteEscape + quoteEscape)
    return `${quote}${escaped.replaceAll(quote, quoteEscape + quote)}${quote}`
  }
}

function escapeCopyField(text: string, delimiter: string): string {
  const escaped = text.replace(/[\b\f\n\r\t\v\\]/g, (character) => escapes[character] ?? character)
  return delimiter === '\t' ? escaped : escaped.replaceAll(delimiter, `\\${delimiter}`)
}
