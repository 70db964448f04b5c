// Stage: concatenates the parts of a multipart body into one stream of lines.
//
//   in     the body of a request, `multipart/form-data`, possibly compressed
//   out    Buffers of the parts in order, whatever their names; each part starts at the start of a line
//   state  only the buffers of the streams
//   errors NetworkError for a malformed body; the source stays open, so that the error can be sent to the client
//
// Backpressure: a part is read as fast as the next stage consumes it, and the next part waits for its end.

import type { IncomingHttpHeaders } from 'node:http'
import { type Duplex, PassThrough, type Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { readMultipart } from './multipart.js'

const newline = 0x0a

export function isMultipart(headers: IncomingHttpHeaders): boolean {
  return /^multipart\//i.test(headers['content-type'] ?? '')
}

/** `through`: stages for the body before it is parsed. The stream fails with the body's error. */
export function linesOfParts(
  source: Readable,
  headers: IncomingHttpHeaders,
  signal: AbortSignal,
  through: readonly Duplex[],
): Readable {
  const lines = new PassThrough()
  // The reader gets the error. It may have ended before.
  lines.on('error', () => {})
  // The next part is announced when this one has been read, which is before its last line is terminated.
  let previous: Promise<void> = Promise.resolve()
  const handlers = {
    isFile: () => true,
    onField: () => {},
    onFile: (_name: string, _filename: string | undefined, part: Readable) => {
      previous = previous.then(() => pipeline(part, endLines, lines, { end: false, signal }))
      return previous
    },
    // A part may wait until its lines are read.
    onFailure: (error: Error) => lines.destroy(error),
  }
  readMultipart(source, headers, handlers, signal, through).then(
    () => lines.end(),
    (error: Error) => lines.destroy(error),
  )
  return lines
}

/** Terminates the last line of a part if necessary. */
async function* endLines(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let last = newline
  for await (const chunk of chunks) {
    last = chunk.at(-1) ?? last
    yield chunk
  }
  if (last !== newline) yield Buffer.from('\n')
}
