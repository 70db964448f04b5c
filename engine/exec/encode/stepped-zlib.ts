// Runs the codecs of zlib in steps, because compressing a whole page with BROTLI 11 takes seconds, during which the
// query could not be cancelled. `alive` is called between steps.
//
// node:zlib offers synchronous calls for whole buffers, and streams that need an event loop, which query threads do not
// run. This file uses the streams' internal synchronous handle: writeSync(flush, input, from, bytes, output, from,
// bytes), which leaves the free bytes of the output and the unread bytes of the input in `_writeState`. If a version of
// Node lacks it, the whole page is compressed in one call.

import * as zlib from 'node:zlib'

/** A codec that can run in steps. */
export interface SteppedCodec {
  readonly open: () => object
  /** Flush flags for a step that others follow, and for the last step. */
  readonly next: number
  readonly last: number
  readonly whole: (bytes: Uint8Array) => Uint8Array
}

interface Handle {
  writeSync(
    flush: number,
    input: Uint8Array,
    inputFrom: number,
    inputBytes: number,
    output: Uint8Array,
    outputFrom: number,
    outputBytes: number,
  ): void
  close(): void
}

interface OpenStream {
  readonly _handle?: Partial<Handle> | null
  readonly _writeState?: Uint32Array
  destroy(): void
}

const stepBytes = 16 * 1024
const outputBytes = 64 * 1024

export function gzipCodec(level: number): SteppedCodec {
  const { Z_NO_FLUSH, Z_FINISH } = zlib.constants
  return {
    open: () => zlib.createGzip({ level }),
    next: Z_NO_FLUSH,
    last: Z_FINISH,
    whole: (bytes) => zlib.gzipSync(bytes, { level }),
  }
}

export function brotliCodec(level: number): SteppedCodec {
  const { BROTLI_PARAM_QUALITY, BROTLI_OPERATION_PROCESS, BROTLI_OPERATION_FINISH } = zlib.constants
  const params = { [BROTLI_PARAM_QUALITY]: level }
  return {
    open: () => zlib.createBrotliCompress({ params }),
    next: BROTLI_OPERATION_PROCESS,
    last: BROTLI_OPERATION_FINISH,
    whole: (bytes) => zlib.brotliCompressSync(bytes, { params }),
  }
}

/** Returns the compressed bytes. Throws what `alive` throws. */
export function compressInSteps(codec: SteppedCodec, bytes: Uint8Array, alive: () => void): Uint8Array {
  if (bytes.length <= stepBytes) return codec.whole(bytes)
  const stream = codec.open() as OpenStream
  const { _handle: handle, _writeState: state } = stream
  try {
    if (typeof handle?.writeSync !== 'function' || state?.length !== 2) return codec.whole(bytes)
    return written(handle as Handle, state, codec, bytes, alive)
  } finally {
    // Closes the handle; nobody listens to the stream's events.
    stream.destroy()
  }
}

function written(
  handle: Handle,
  state: Uint32Array,
  { next, last }: SteppedCodec,
  bytes: Uint8Array,
  alive: () => void,
): Uint8Array {
  const chunks: Uint8Array[] = []
  let output = Buffer.allocUnsafe(outputBytes)
  let filled = 0
  for (let from = 0; from < bytes.length; ) {
    const count = Math.min(stepBytes, bytes.length - from)
    const flush = from + count === bytes.length ? last : next
    for (let rest = count, full = true; rest > 0 || full; ) {
      alive()
      handle.writeSync(flush, bytes, from + count - rest, rest, output, filled, outputBytes - filled)
      const [free = 0, unread = 0] = state
      rest = unread
      filled = outputBytes - free
      full = free === 0
      if (!full) continue
      chunks.push(output)
      output = Buffer.allocUnsafe(outputBytes)
      filled = 0
    }
    from += count
  }
  chunks.push(output.subarray(0, filled))
  return Buffer.concat(chunks)
}
