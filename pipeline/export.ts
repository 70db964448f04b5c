// Entry point of exports: writes the encoded blocks of a result to a socket.
//
// A block is a view of shared memory that is valid until the next one is requested, so the next one is requested only
// when the socket has consumed the last. A small result is sent in one write with its length.

import { type Transform, Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'

export { type ContentCoding, chooseCoding, compressor, compressWhole } from './export-compress.js'
export { spoolBlocks } from './export-spool.js'

/** Results up to this size are copied into one buffer. */
const smallBytesMax = 64 * 1024

interface ExportTarget {
  /** Sends a complete response. */
  readonly whole: (body: Buffer) => void | Promise<void>
  /** Begins a response of unknown length. */
  readonly begin: () => Writable
}

export interface ExportOptions {
  readonly blocks: AsyncIterable<Uint8Array>
  readonly head: Buffer
  /** Called after the last block. */
  readonly tail: () => Promise<Buffer>
  readonly target: ExportTarget
  /** Read only for a response of unknown length. */
  readonly signal: AbortSignal
  /** Begins to send with the first block, even if the result is small. */
  readonly atOnce?: boolean
  /** Called with each block before it is sent. */
  readonly observe?: (block: Uint8Array) => void
  /** Returns the bytes that end a begun response when the query fails; without it the response is cut off. */
  readonly broken?: (error: unknown) => Buffer
  /** A transform between blocks and target, for responses of unknown length. */
  readonly through?: Transform | null
}

/** Resolves when the response is written. If the query fails early, rejects before calling `begin` or `whole`. */
export async function exportBlocks(options: ExportOptions): Promise<void> {
  const { blocks, head, tail, target, observe } = options
  const iterator = blocks[Symbol.asyncIterator]()
  const nextBlock = async (): Promise<Uint8Array | null> => {
    const next = await iterator.next()
    if (next.done === true) return null
    observe?.(next.value)
    return next.value
  }
  try {
    const small: Buffer[] = [head]
    const smallMax = options.atOnce === true ? -1 : smallBytesMax
    let bytes = head.length
    let block = await nextBlock()
    while (block !== null && bytes + block.length <= smallMax) {
      small.push(Buffer.from(block))
      bytes += block.length
      block = await nextBlock()
    }
    if (block === null) {
      await target.whole(Buffer.concat([...small, await tail()]))
      return
    }
    const { signal } = options
    const rest = remaining(Buffer.concat(small), block, nextBlock, tail)
    const source = options.broken === undefined ? rest : closed(rest, options.broken, signal)
    if (options.through === null || options.through === undefined) {
      await pipeline(source, drainedWrites(target.begin()), { signal })
    } else await pipeline(copies(source), options.through, drainedWrites(target.begin()), { signal })
  } finally {
    await iterator.return?.()
  }
}

async function* remaining(
  begin: Buffer,
  first: Uint8Array,
  nextBlock: () => Promise<Uint8Array | null>,
  tail: () => Promise<Buffer>,
): AsyncGenerator<Uint8Array> {
  if (begin.length > 0) yield begin
  for (let block: Uint8Array | null = first; block !== null; block = await nextBlock()) yield block
  const end = await tail()
  if (end.length > 0) yield end
}

/** Ends the blocks with `broken` when the query fails, unless the reader has disconnected. */
async function* closed(
  source: AsyncIterable<Uint8Array>,
  broken: (error: unknown) => Buffer,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  try {
    yield* source
  } catch (error) {
    signal.throwIfAborted()
    yield broken(error)
  }
}

/** A compressor may still read a block after it has requested the next one, so it gets copies. */
async function* copies(source: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer> {
  for await (const block of source) yield Buffer.from(block)
}

/** Stage: one write at a time, each called back when the target has passed the bytes on. */
function drainedWrites(target: Writable): Writable {
  return new Writable({
    objectMode: true,
    highWaterMark: 1,
    write(block: Uint8Array, _encoding, callback) {
      target.write(block, callback)
    },
    final(callback) {
      target.end(callback)
    },
  })
}
