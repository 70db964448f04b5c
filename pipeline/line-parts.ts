// Stage: the lines of a multipart body, part by part, as one stream of bytes.
//
//   in     the body of a request, `multipart/form-data`, possibly compressed
//   out    Buffers of the parts in their order, whatever the parts are called; each part begins at a line's start
//   state  nothing but the buffers of the streams
//   errors NetworkError for a malformed body; the source stays open, so that the error can be answered
//
// Backpressure: a part is read as the stream behind it takes it, and the next part waits for its end.

import type { IncomingHttpHeaders } from 'node:http'
import { type Duplex, PassThrough, type Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { readMultipart } from './multipart.js'

const newline = 0x0a

export function isMultipart(headers: IncomingHttpHeaders): boolean {
  return /^multipart\//i.test(headers['content-type'] ?? '')
}

/** `through`: what the body passes first. The stream fails with what is wrong with the body. */
export function linesOfParts(
  source: Readable,
  headers: IncomingHttpHeaders,
  signal: AbortSignal,
  through: readonly Duplex[],
): Readable {
  const lines = new PassThrough()
  // The next part is announced when this one was read, which is before its last line is ended.
  let previous: Promise<void> = Promise.resolve()
  const handlers = {
    isFile: () => true,
    onField: () => {},
    onFile: (_name: string, _filename: string | undefined, part: Readable) => {
      previous = previous.then(() => pipeline(part, endLines, lines, { end: false, signal }))
      return previous
    },
  }
  readMultipart(source, headers, handlers, signal, through).then(
    () => lines.end(),
    (error: Error) => lines.destroy(error),
  )
  return lines
}

/** A part's last line may lack its newline. */
async function* endLines(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let last = newline
  for await (const chunk of chunks) {
    last = chunk.at(-1) ?? last
    yield chunk
  }
  if (last !== newline) yield Buffer.from('\n')
}
