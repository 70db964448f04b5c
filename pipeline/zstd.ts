// The one place of this layer that knows a library for zstd: node:zlib where it has it (Node 22.15 and newer), else a
// WebAssembly module that is loaded at first use.

import * as zlib from 'node:zlib'

/** Text leaves faster than it is compressed well. */
const level = 1

export interface Zstd {
  compress(bytes: Uint8Array): Uint8Array
  decompress(bytes: Uint8Array): Uint8Array
}

/** What the types of Node 20 do not know yet. */
interface NodeZstd {
  zstdCompressSync(bytes: Uint8Array, options: { readonly params: Record<number, number> }): Buffer
  zstdDecompressSync(bytes: Uint8Array): Buffer
  readonly constants: { readonly ZSTD_c_compressionLevel: number }
}

let loading: Promise<Zstd> | null = null

export function loadZstd(): Promise<Zstd> {
  loading ??= load()
  // A file that could not be opened just now can be later.
  loading.catch(() => {
    loading = null
  })
  return loading
}

async function load(): Promise<Zstd> {
  if ('zstdCompressSync' in zlib) {
    const { zstdCompressSync, zstdDecompressSync, constants } = zlib as unknown as NodeZstd
    const params = { [constants.ZSTD_c_compressionLevel]: level }
    return { compress: (bytes) => zstdCompressSync(bytes, { params }), decompress: zstdDecompressSync }
  }
  const { compress, decompress, init } = await import('@bokuweb/zstd-wasm')
  await init()
  return {
    compress: (bytes) => compress(Buffer.from(bytes), level),
    decompress: (bytes) => decompress(Buffer.from(bytes)),
  }
}
