// Buffers of one block each that are used again: fresh memory costs more than the copy into it.

export interface BlockPool {
  take(): Buffer
  give(buffer: Buffer): void
}

/** Keeps at most `keptMax` buffers of `blockBytes`; more are allocated and forgotten. */
export function blockPool(blockBytes: number, keptMax: number): BlockPool {
  const free: Buffer[] = []
  return {
    take: () => free.pop() ?? Buffer.allocUnsafeSlow(blockBytes),
    give: (buffer) => {
      if (free.length < keptMax && buffer.length === blockBytes) free.push(buffer)
    },
  }
}
