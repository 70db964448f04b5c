// Result rows as lines, each a JSON object: the kernel of JSON with the names before the values.

import { encodeColumnBytes, encodeFlags, writeEncodeLabel } from '../../kernels/encode.js'
import { TextRows } from './encode-text.js'
import type { Encoder, EncoderOptions } from './encoder.js'

export function ndjsonEncoder(options: EncoderOptions): Encoder {
  const { context, columns, writer } = options
  const text = new TextRows(options, { flags: encodeFlags.json | encodeFlags.lines, delimiter: 0 })
  for (const [index, { name }] of columns.entries()) {
    const label = Buffer.from(`${index === 0 ? '{' : ','}${JSON.stringify(name)}:`, 'utf8')
    const address = context.space.keep(label.length)
    context.memory.u8.set(label, address)
    writeEncodeLabel(context.memory, text.columns + index * encodeColumnBytes, address, label.length)
  }
  return {
    begin: () => {},
    rows: (batch, from, to) => text.rows(batch, from, to),
    end: () => writer.flush(),
  }
}
