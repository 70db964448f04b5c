// The door of the ways out: encoded blocks of a result to a socket.
//
// A block is a view of shared memory that is valid until the next one is asked for; so the next one is asked for only
// when the socket has taken the last. A small result goes out in one write with its length known.

import { type Transform, Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'

export { type ContentCoding, chooseCoding, compressor, compressWhole } from './export-compress.js'
export { spoolBlocks } from './export-spool.js'

/** Results up to this size are copied together. */
const smallBytesMax = 64 * 1024

interface ExportTarget {
  /** Sends a complete answer. */
  readonly whole: (body: Buffer) => void | Promise<void>
  /** Begins an answer of unknown length. */
  readonly begin: () => Writable
}

export interface ExportOptions {
  readonly blocks: AsyncIterable<Uint8Array>
  readonly head: Buffer
  /** Asked behind the last block. */
  readonly tail: () => Promise<Buffer>
  readonly target: ExportTarget
  /** Asked only for an answer of unknown length. */
  readonly signal: AbortSignal
  /** Begins with the first block, however small the result is. */
  readonly atOnce?: boolean
  /** Sees each block on its way. */
  readonly observe?: (block: Uint8Array) => void
  /** What closes an answer that has begun when the result fails; without it the answer is cut off. */
  readonly broken?: (error: unknown) => Buffer
  /** Between the blocks and the target, in answers of unknown length. */
  readonly through?: Transform | null
}

/** Resolves when the answer is written. Rejects before `begin` or `whole` was called when the result fails early. */
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

/** Ends well whatever happens, unless the reader is gone. */
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

/** A compressor may look at a block after it has asked for the next one. */
async function* copies(source: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer> {
  for await (const block of source) yield Buffer.from(block)
}

/** Stage: one write at a time, each called back when the target has handed the bytes over. */
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
