// The door of the ways out: encoded blocks of a result to a socket.
//
// A block is a view of shared memory that is valid until the next one is asked for; so the next one is asked for only
// when the socket has taken the last. A small result goes out in one write with its length known.

import { Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'

/** Results up to this size are copied together. */
const smallBytesMax = 64 * 1024

export interface ExportTarget {
  /** Sends a complete answer. */
  readonly whole: (body: Buffer) => void
  /** Begins an answer of unknown length. */
  readonly begin: () => Writable
}

export interface ExportOptions {
  readonly blocks: AsyncIterable<Uint8Array>
  readonly head: Buffer
  /** Asked behind the last block. */
  readonly tail: () => Promise<Buffer>
  readonly target: ExportTarget
  readonly signal: AbortSignal
}

/** Resolves when the answer is written. Rejects before `begin` or `whole` was called when the result fails early. */
export async function exportBlocks({ blocks, head, tail, target, signal }: ExportOptions): Promise<void> {
  const iterator = blocks[Symbol.asyncIterator]()
  try {
    const small: Buffer[] = [head]
    let bytes = head.length
    let next = await iterator.next()
    while (next.done !== true && bytes + next.value.length <= smallBytesMax) {
      small.push(Buffer.from(next.value))
      bytes += next.value.length
      next = await iterator.next()
    }
    if (next.done === true) {
      target.whole(Buffer.concat([...small, await tail()]))
      return
    }
    const source = remaining(Buffer.concat(small), next.value, iterator, tail)
    await pipeline(source, drainedWrites(target.begin()), { signal })
  } finally {
    await iterator.return?.()
  }
}

async function* remaining(
  begin: Buffer,
  block: Uint8Array,
  iterator: AsyncIterator<Uint8Array>,
  tail: () => Promise<Buffer>,
): AsyncGenerator<Uint8Array> {
  yield begin
  yield block
  for (let next = await iterator.next(); next.done !== true; next = await iterator.next()) yield next.value
  yield await tail()
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
