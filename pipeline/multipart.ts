// Parses a multipart body into its parts, in order. The only module that uses @fastify/busboy.
//
// The stream of a file part must be read to its end before the next part is parsed; that is the flow control.

import type { IncomingHttpHeaders } from 'node:http'
import { createRequire } from 'node:module'
import type { Duplex, Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { NetworkError } from '../engine/base/errors.js'

const fileBufferBytes = 256 * 1024
const partsMax = 100
const fieldBytesMax = 1024 * 1024

export interface MultipartHandlers {
  /** Whether a part of that name is a file; throws for an unknown name. */
  readonly isFile: (name: string) => boolean
  readonly onField: (name: string, value: string) => void
  /** Resolves when the stream has been read. */
  readonly onFile: (name: string, filename: string | undefined, stream: Readable) => Promise<void>
  /** Learns of a failure before the streams of the files fail. */
  readonly onFailure?: (error: Error) => void
}

/**
 * `through`: stages for the body before it is parsed. Rejects with a handler's error, or NetworkError for a
 * malformed body, when the handlers of all files have ended.
 */
export async function readMultipart(
  source: Readable,
  headers: IncomingHttpHeaders,
  handlers: MultipartHandlers,
  signal: AbortSignal,
  through: readonly Duplex[] = [],
): Promise<void> {
  const contentType = headers['content-type'] ?? ''
  let failure: unknown = null
  let busboy: ReturnType<typeof createBusboy>
  try {
    busboy = createBusboy(contentType, handlers)
  } catch (error) {
    throw new NetworkError(error instanceof Error ? error.message : 'malformed multipart body')
  }
  const files: Promise<void>[] = []
  const streams = new Set<Readable>()
  const fail = (error: unknown): void => {
    failure ??= error
    busboy.destroy(error as Error)
  }
  busboy.on('field', (name: string, value: string) => {
    try {
      handlers.onField(name, value)
    } catch (error) {
      fail(error)
    }
  })
  busboy.on('file', (name: string, stream: Readable, filename: string | undefined) => {
    stream.on('error', () => {})
    stream.once('close', () => streams.delete(stream))
    streams.add(stream)
    files.push(handlers.onFile(name, filename, stream).catch(fail))
  })
  busboy.on('partsLimit', () => fail(new NetworkError(`too many parts in the multipart body [max=${partsMax}]`)))
  try {
    // The library's types do not allow a generator first.
    const first = chunksOf(source) as unknown as Readable
    await pipeline([first, ...through, busboy], { signal })
    await Promise.all(files)
  } catch (error) {
    const problem = failure instanceof Error ? failure : malformed(error)
    handlers.onFailure?.(problem)
    // The library never ends the stream of a file that was cut off.
    for (const stream of streams) stream.destroy(problem)
    await Promise.allSettled(files)
    throw problem
  }
  if (failure !== null) throw failure
}

/** Leaves the source open after an error, so that the error can be sent to the client. */
async function* chunksOf(source: Readable): AsyncGenerator<Buffer> {
  for await (const chunk of source.iterator({ destroyOnReturn: false })) yield chunk as Buffer
}

function createBusboy(contentType: string, { isFile }: MultipartHandlers) {
  const { Busboy } = createRequire(import.meta.url)('@fastify/busboy') as typeof import('@fastify/busboy')
  return new Busboy({
    headers: { 'content-type': contentType },
    fileHwm: fileBufferBytes,
    highWaterMark: fileBufferBytes,
    limits: { fieldSize: fieldBytesMax, parts: partsMax },
    isPartAFile: (name) => isFile(name ?? ''),
  })
}

function malformed(error: unknown): Error {
  if (error instanceof NetworkError || (error instanceof Error && error.name === 'AbortError')) return error
  return new NetworkError(`malformed multipart body: ${error instanceof Error ? error.message : String(error)}`)
}
