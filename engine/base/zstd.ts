// Compresses and decompresses zstd. The only module that uses a zstd library: node:zlib where it supports zstd (Node
// 22.15 and newer), else a WebAssembly module, which each thread loads synchronously on first use.
//
// Frames are untrusted (Kafka records, foreign Parquet files). `decompress` therefore parses their headers itself
// (RFC 8878) and allocates only what the caller allows and the frame's blocks can hold; the library cannot write
// beyond that buffer.
//
//   frame      magic u32 FD2FB528 | flags u8 | window u8 (without flag 32)
//              | dictionary id, 0, 1, 2 or 4 bytes (flags & 3)
//              | content size, 1, 2, 4 or 8 bytes (flags >> 6; 0 bytes instead of 1 without flag 32) | blocks
//              | checksum u32 (with flag 4)
//   block      24 bits: last (1), type (2: raw, run, compressed, reserved), size (21) | bytes: one for a run, else size
//   skippable  magic u32 184D2A50 to 184D2A5F | length u32 | bytes

import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import * as zlib from 'node:zlib'
import { nodeFiles } from './files.js'

export interface Zstd {
  compress(bytes: Uint8Array, level: number): Uint8Array
  /**
   * Content of concatenated frames. Throws when the bytes are not whole frames, or when they contain or declare more
   * than `bytesMax`.
   */
  decompress(bytes: Uint8Array, bytesMax: number): Uint8Array
}

/** The library's part: decompresses one checked frame, whose content is at most `room` bytes. */
export interface ZstdLibrary {
  compress(bytes: Uint8Array, level: number): Uint8Array
  decompressFrame(frame: Uint8Array, room: number): Uint8Array
}

let loaded: Zstd | null = null

export function zstd(): Zstd {
  loaded ??= zstdOver(libraryOfNode() ?? libraryOfWasm())
  return loaded
}

export function zstdOver(library: ZstdLibrary): Zstd {
  return {
    compress: (bytes, level) => library.compress(bytes, level),
    decompress: (bytes, bytesMax) => {
      const frames = framesOf(bytes)
      const declared = frames.reduce((sum, { size }) => sum + (size ?? 0), 0)
      if (declared > bytesMax) throw tooLarge(bytesMax)
      const contents: Uint8Array[] = []
      let rest = bytesMax
      for (const { start, end, size, contentMax } of frames) {
        const room = Math.min(size ?? contentMax, rest)
        const content = library.decompressFrame(bytes.subarray(start, end), room)
        if (content.length > rest) throw tooLarge(bytesMax)
        contents.push(content)
        rest -= content.length
      }
      const [only] = contents
      return contents.length === 1 && only !== undefined ? only : Buffer.concat(contents)
    },
  }
}

function tooLarge(bytesMax: number): Error {
  return new Error(`the content of a zstd frame is larger than is allowed [bytes=${bytesMax}]`)
}

function damaged(what: string): Error {
  return new Error(`not a zstd frame: ${what}`)
}

interface Frame {
  readonly start: number
  readonly end: number
  /** As the header declares it; null: not declared. */
  readonly size: number | null
  /** Upper bound of what its blocks can hold. */
  readonly contentMax: number
}

const magics = { frame: 0xfd2fb528, skippable: 0x184d2a50 }
const blockBytesMax = 128 * 1024
const flagBits = { single: 32, reserved: 8, checksum: 4 }

/** All frames except skippable ones. */
function framesOf(bytes: Uint8Array): Frame[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  if (bytes.length === 0) throw damaged('there are no bytes')
  const frames: Frame[] = []
  for (let at = 0; at < bytes.length; ) {
    if (bytes.length - at < 8) throw damaged('it is cut off')
    const magic = view.getUint32(at, true)
    if ((magic & 0xfffffff0) >>> 0 === magics.skippable) {
      at += 8 + view.getUint32(at + 4, true)
      if (at > bytes.length) throw damaged('it is cut off')
      continue
    }
    if (magic !== magics.frame) throw damaged('its first bytes are other ones')
    const frame = frameAt(view, at)
    frames.push(frame)
    at = frame.end
  }
  return frames
}

function frameAt(view: DataView, start: number): Frame {
  const flags = view.getUint8(start + 4)
  const isSingle = (flags & flagBits.single) !== 0
  if ((flags & flagBits.reserved) !== 0) throw damaged('its header has an unknown flag')
  const sizeBytes = [isSingle ? 1 : 0, 2, 4, 8][flags >>> 6] ?? 0
  const sizeAt = start + 5 + (isSingle ? 0 : 1) + ([0, 1, 2, 4][flags & 3] ?? 0)
  const blocksAt = sizeAt + sizeBytes
  if (blocksAt > view.byteLength) throw damaged('it is cut off')
  const size = sizeBytes === 0 ? null : sizeIn(view, sizeAt, sizeBytes)
  const { end, contentMax } = blocksFrom(view, blocksAt)
  if (size !== null && size > contentMax) throw damaged('it declares a size that its blocks cannot hold')
  const frameEnd = end + ((flags & flagBits.checksum) === 0 ? 0 : 4)
  if (frameEnd > view.byteLength) throw damaged('it is cut off')
  return { start, end: frameEnd, size, contentMax }
}

function sizeIn(view: DataView, at: number, bytes: number): number {
  if (bytes === 1) return view.getUint8(at)
  if (bytes === 2) return view.getUint16(at, true) + 256
  return bytes === 4 ? view.getUint32(at, true) : Number(view.getBigUint64(at, true))
}

function blocksFrom(view: DataView, from: number): { end: number; contentMax: number } {
  let at = from
  let contentMax = 0
  for (let isLast = false; !isLast; ) {
    if (at + 3 > view.byteLength) throw damaged('it is cut off')
    const header = view.getUint16(at, true) + view.getUint8(at + 2) * 65_536
    isLast = (header & 1) === 1
    const type = (header >>> 1) & 3
    const size = header >>> 3
    if (type === 3 || size > blockBytesMax) throw damaged('a block is of no known kind')
    contentMax += type === 2 ? blockBytesMax : size
    at += 3 + (type === 1 ? 1 : size)
  }
  return { end: at, contentMax }
}

/** Null: this version of Node has none. */
export function libraryOfNode(): ZstdLibrary | null {
  if (!('zstdCompressSync' in zlib)) return null
  // Missing in the type definitions of Node 20.
  const { zstdCompressSync, zstdDecompressSync, constants } = zlib as unknown as {
    zstdCompressSync(bytes: Uint8Array, options: object): Buffer
    zstdDecompressSync(bytes: Uint8Array, options: object): Buffer
    constants: { readonly ZSTD_c_compressionLevel: number }
  }
  return {
    compress: (bytes, level) => zstdCompressSync(bytes, { params: { [constants.ZSTD_c_compressionLevel]: level } }),
    decompressFrame: (frame, room) => zstdDecompressSync(frame, { maxOutputLength: Math.max(1, room) }),
  }
}

type WasmImports = ConstructorParameters<typeof WebAssembly.Instance>[1]

/** State of emscripten's module before the first call, which binds every function to the first instance. */
interface ZstdModule {
  instantiateWasm: (
    imports: WasmImports,
    done: (instance: WebAssembly.Instance) => void,
  ) => WebAssembly.Instance['exports']
  init(bytes: Uint8Array): void
  readonly HEAPU8: Uint8Array
  _malloc(bytes: number): number
  _free(address: number): void
  _ZSTD_isError(code: number): number
  _ZSTD_compress(target: number, room: number, source: number, bytes: number, level: number): number
  _ZSTD_decompress(target: number, room: number, source: number, bytes: number): number
}

/** An instance's memory never shrinks: one that exceeds this is dropped after use. */
const heapBytesRetained = 64 * 1024 * 1024

/**
 * Calls the library directly. The package's own functions check neither the result of malloc nor the size that a
 * frame declares, and they share one module with other users, whose initialisation would mix memory and functions of
 * instances.
 */
export function libraryOfWasm(): ZstdLibrary {
  const open = wasmOpener()
  let current: ZstdModule | null = null
  /**
   * Copies the bytes in, runs `work` and copies the result out; an instance in an unknown state is not used again.
   */
  const run = (bytes: Uint8Array, room: number, work: Work): Uint8Array => {
    const module = current ?? open()
    current = null
    const result = inHeap(module, bytes, room, work)
    if (module.HEAPU8.length <= heapBytesRetained) current = module
    if (typeof result === 'number') throw new Error(`zstd failed [code=${result}]`)
    return result
  }
  return {
    compress: (bytes, level) => {
      const room = bytes.length + (bytes.length >>> 8) + 1024
      return run(bytes, room, (module, target, source) =>
        module._ZSTD_compress(target, room, source, bytes.length, level),
      )
    },
    decompressFrame: (frame, room) =>
      run(frame, room, (module, target, source) => module._ZSTD_decompress(target, room, source, frame.length)),
  }
}

type Work = (module: ZstdModule, target: number, source: number) => number

/** The result, or zstd's error code. */
function inHeap(module: ZstdModule, bytes: Uint8Array, room: number, work: Work): Uint8Array | number {
  const source = allocate(module, bytes.length)
  try {
    const target = allocate(module, room)
    try {
      module.HEAPU8.set(bytes, source)
      const size = work(module, target, source)
      return module._ZSTD_isError(size) === 0 ? module.HEAPU8.slice(target, target + size) : size
    } finally {
      module._free(target)
    }
  } finally {
    module._free(source)
  }
}

function allocate(module: ZstdModule, bytes: number): number {
  const address = module._malloc(Math.max(1, bytes)) >>> 0
  if (address === 0) throw new Error(`no memory for zstd [bytes=${bytes}]`)
  return address
}

/**
 * Passes an instance to the module, because the package's asynchronous start needs promises, which query threads do
 * not run.
 */
function wasmOpener(): () => ZstdModule {
  const directory = dirname(createRequire(import.meta.url).resolve('@bokuweb/zstd-wasm'))
  const code = new WebAssembly.Module(wasmBytes(join(directory, 'zstd.wasm')))
  const path = join(directory, 'zstd.js')
  return () => {
    // Evaluated anew, so that the module is not shared with others; by a function of its own, since each such function
    // refers to all modules that it has loaded, and so to their memory.
    const require = createRequire(import.meta.url)
    delete require.cache[path]
    const { Module } = require(path) as { Module: ZstdModule }
    delete require.cache[path]
    Module.instantiateWasm = (imports, done) => {
      const instance = new WebAssembly.Instance(code, imports)
      done(instance)
      return instance.exports
    }
    Module.init(new Uint8Array(0))
    return Module
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
