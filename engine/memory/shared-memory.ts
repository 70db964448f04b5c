// The one shared WebAssembly memory and typed views over all of it. Its size is fixed at creation (initial = maximum),
// so the views never become stale; pages that were never touched take no physical memory.
//
// An ADDRESS is a byte offset into it, unsigned and below 3.5 GiB. Kernels return addresses as i32: apply `>>> 0`.

import { assert } from '../base/assert.js'

const wasmPageBytes = 65_536
const MIB = 1024 * 1024
/** Below this size a call of `fill` takes longer than copying byte by byte. */
const plainCopyBytesMin = 192
/** Up to this size copying word by word is faster than a call. */
const wordCopyBytesMax = 64

/** 3.5 GiB: leaves sums of addresses and sizes below 2^32. */
const sharedMemoryBytesMax = 3584 * MIB

export class SharedMemory {
  readonly memory: WebAssembly.Memory
  readonly bytes: number
  readonly u8: Uint8Array
  readonly i8: Int8Array
  readonly u16: Uint16Array
  readonly i16: Int16Array
  readonly u32: Uint32Array
  readonly i32: Int32Array
  readonly f32: Float32Array
  readonly f64: Float64Array
  readonly i64: BigInt64Array
  readonly u64: BigUint64Array
  readonly #buffer: Buffer

  constructor(memory: WebAssembly.Memory) {
    const buffer = memory.buffer
    this.memory = memory
    this.bytes = buffer.byteLength
    this.u8 = new Uint8Array(buffer)
    this.i8 = new Int8Array(buffer)
    this.u16 = new Uint16Array(buffer)
    this.i16 = new Int16Array(buffer)
    this.u32 = new Uint32Array(buffer)
    this.i32 = new Int32Array(buffer)
    this.f32 = new Float32Array(buffer)
    this.f64 = new Float64Array(buffer)
    this.i64 = new BigInt64Array(buffer)
    this.u64 = new BigUint64Array(buffer)
    this.#buffer = Buffer.from(buffer as ArrayBufferLike as ArrayBuffer)
  }

  /**
   * Copies bytes to an address. Uses `Buffer.fill`, because V8 copies to and from shared memory with `set` and
   * `copyWithin` byte by byte unless both sides have the same offset modulo 8.
   */
  put(bytes: Uint8Array, address: number): void {
    if (bytes.length < plainCopyBytesMin) this.u8.set(bytes, address)
    else this.#buffer.fill(bytes, address, address + bytes.length)
  }

  /** Copies the bytes from `start` to `end`. The target must not overlap them. */
  copy(target: number, start: number, end: number): void {
    if (end - start <= wordCopyBytesMax && ((target | start | end) & 3) === 0) {
      for (let to = target >>> 2, from = start >>> 2; from < end >>> 2; from++, to++) this.u32[to] = this.u32[from]!
    } else if (end - start < plainCopyBytesMin) this.u8.copyWithin(target, start, end)
    else this.#buffer.fill(this.u8.subarray(start, end), target, target + end - start)
  }
}

/** Creates the memory of a server. `bytes` is rounded up to whole WebAssembly pages. */
export function createSharedMemory(bytes: number): SharedMemory {
  assert(bytes > 0, 'A1: a shared memory has a size')
  assert(bytes <= sharedMemoryBytesMax, 'A1: a shared memory is at most 3.5 GiB')
  const pages = Math.ceil(bytes / wasmPageBytes)
  return new SharedMemory(new WebAssembly.Memory({ initial: pages, maximum: pages, shared: true }))
}
