// The one place of the engine that knows a library for zstd: node:zlib where it has it (Node 22.15 and newer), else a
// WebAssembly module that is loaded at the first use.

import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import * as zlib from 'node:zlib'
import { nodeFiles } from '../base/files.js'

export interface Zstd {
  compress(bytes: Uint8Array, level: number): Uint8Array
  /** `size`: the most that it gives; a frame that says a larger one must have been refused. Throws when bytes are no frame. */
  decompress(bytes: Uint8Array, size: number): Uint8Array
}

let loaded: Zstd | null = null

export function zstd(): Zstd {
  loaded ??= 'zstdCompressSync' in zlib ? zstdOfNode() : zstdOfWasm()
  return loaded
}

function zstdOfNode(): Zstd {
  const { zstdCompressSync, zstdDecompressSync, constants } = zlib as unknown as {
    zstdCompressSync(bytes: Uint8Array, options: object): Buffer
    zstdDecompressSync(bytes: Uint8Array, options: object): Buffer
    constants: { ZSTD_c_compressionLevel: number }
  }
  return {
    compress: (bytes, level) => zstdCompressSync(bytes, { params: { [constants.ZSTD_c_compressionLevel]: level } }),
    decompress: (bytes, size) => zstdDecompressSync(bytes, { maxOutputLength: Math.max(1, size) }),
  }
}

type WasmImports = ConstructorParameters<typeof WebAssembly.Instance>[1]

interface ZstdModule {
  instantiateWasm: (
    imports: WasmImports,
    done: (instance: WebAssembly.Instance) => void,
  ) => WebAssembly.Instance['exports']
  init(bytes: Uint8Array): void
}

/** Query threads run no promises, and the package's own way to start needs one: its module takes an instance as well. */
function zstdOfWasm(): Zstd {
  const require = createRequire(import.meta.url)
  const directory = dirname(require.resolve('@bokuweb/zstd-wasm'))
  const { Module } = require(join(directory, 'module.js')) as { Module: ZstdModule }
  Module.instantiateWasm = (imports, done) => {
    const instance = new WebAssembly.Instance(new WebAssembly.Module(wasmBytes(join(directory, 'zstd.wasm'))), imports)
    done(instance)
    return instance.exports
  }
  Module.init(new Uint8Array(0))
  const { compress, decompress } = require('@bokuweb/zstd-wasm') as typeof import('@bokuweb/zstd-wasm')
  return {
    compress: (bytes, level) => compress(bytes as Buffer, level),
    decompress: (bytes, size) => decompress(bytes as Buffer, { defaultHeapSize: Math.max(1, size) }),
  }
}

function wasmBytes(path: string): Uint8Array<ArrayBuffer> {
  const files = nodeFiles()
  const bytes = new Uint8Array(files.size(path))
  const file = files.open(path, 'read')
  try {
    file.read(bytes, 0)
    return bytes
  } finally {
    file.close()
  }
}
