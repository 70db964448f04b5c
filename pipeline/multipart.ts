// The parts of a multipart body, in their order. The only importer of @fastify/busboy.
//
// A file part is a stream that has to be read to its end before the next part comes; that is the flow control.

import type { IncomingHttpHeaders } from 'node:http'
import { createRequire } from 'node:module'
import type { Duplex, Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { NetworkError } from '../engine/base/errors.js'

const fileBufferBytes = 256 * 1024
const partsMax = 100
const fieldBytesMax = 1024 * 1024

export interface MultipartHandlers {
  /** Whether a part of that name is a file; a part that is neither file nor field name known is refused by throwing. */
  readonly isFile: (name: string) => boolean
  readonly onField: (name: string, value: string) => void
  /** Resolves when the stream was read. */
  readonly onFile: (name: string, filename: string | undefined, stream: Readable) => Promise<void>
}

/** `through`: what the body passes first. Rejects with the first error of a handler, or with NetworkError when the body is malformed or cut off. */
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
    files.push(handlers.onFile(name, filename, stream).catch(fail))
  })
  busboy.on('partsLimit', () => fail(new NetworkError(`too many parts in the multipart body [max=${partsMax}]`)))
  try {
    // Its types know no list that begins with a generator.
    const first = chunksOf(source) as unknown as Readable
    await pipeline([first, ...through, busboy], { signal })
    await Promise.all(files)
  } catch (error) {
    throw failure ?? malformed(error)
  }
  if (failure !== null) throw failure
}

/** The source stays open after an error, so that the error can be answered. */
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
