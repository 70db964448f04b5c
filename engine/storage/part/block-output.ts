// Appends to a file in large aligned blocks of 1 MiB. Smaller writes, such as page headers, would leave small fragments
// in the file system's cache, from which later reads are much slower.

import { assert } from '../../base/assert.js'
import type { File } from '../../base/files.js'

const blockBytes = 1024 * 1024

export class BlockOutput {
  private readonly file: File
  private readonly block = Buffer.allocUnsafeSlow(blockBytes)
  private filled = 0
  /** Offset of the current block in the file. */
  private start = 0

  constructor(file: File) {
    this.file = file
  }

  /** The bytes are copied or written before this returns. */
  append(bytes: Uint8Array): void {
    let rest = bytes
    while (this.filled + rest.length >= blockBytes) {
      const room = blockBytes - this.filled
      this.put(
        this.filled === 0 ? [rest.subarray(0, room)] : [this.block.subarray(0, this.filled), rest.subarray(0, room)],
      )
      rest = rest.subarray(room)
    }
    assert(this.filled + rest.length < blockBytes, 'F1: a full block is written at once')
    this.block.set(rest, this.filled)
    this.filled += rest.length
  }

  /** Writes an incomplete last block. Nothing may be appended afterwards. */
  flush(): void {
    if (this.filled > 0) this.put([this.block.subarray(0, this.filled)])
  }

  private put(chunks: readonly Uint8Array[]): void {
    assert(this.start % blockBytes === 0, 'F1: blocks of a part are aligned in their file')
    this.file.write(chunks, this.start)
    for (const chunk of chunks) this.start += chunk.length
    this.filled = 0
  }
}
