// Pools buffers of one block each, because allocating memory costs more than copying into it.

export interface BlockPool {
  take(): Buffer
  give(buffer: Buffer): void
}

/** Keeps at most `retainedMax` free buffers of `blockBytes`; further ones are left to the garbage collector. */
export function blockPool(blockBytes: number, retainedMax: number): BlockPool {
  const free: Buffer[] = []
  return {
    take: () => free.pop() ?? Buffer.allocUnsafeSlow(blockBytes),
    give: (buffer) => {
      if (free.length < retainedMax && buffer.length === blockBytes) free.push(buffer)
    },
  }
}
