// The ingest ring: a single-producer (main thread), single-consumer (writer thread) byte ring in shared memory. It
// takes blocks of line protocol and QWP messages to the writer thread; a full ring is the backpressure of ingestion.
//
// Header at ingestRingAddress: head u32 (bytes written, modulo 2^32) | tail u32 (bytes consumed) at +64 |
//   base u32, capacity u32 at +128. capacity is a power of two.
//
// A message: 64-byte header, source position (if any), payload, then at least 64 readable bytes, the whole rounded up
// to 64 bytes. It is contiguous: when it does not fit before the end of the ring, a skip message fills the rest.
//
//   header   bytes u32 (payload) | kind u8 | flags u8 | precision u8 | 0 u8 | requestId u32 | connectionId u32 |
//            nowMicros f64 | span u32 (bytes of the whole message) | source bytes u32 (before the payload, padded to 8)
//
// kind 1 = lines, 2 = a QWP message, 255 = skip. Flags of requests: 1 first block of the request, 2 last block,
// 4 atomic, 8 skip bad lines, 16 of an atomic request: store the rows that are good.

import { assert } from '../base/assert.js'
import { ingestRingAddress } from './layout.js'
import type { SharedMemory } from './shared-memory.js'

export const ringKinds = { lines: 1, qwp: 2, skip: 255 } as const
export const lineFlags = { first: 1, last: 2, atomic: 4, skipBadLines: 8, partial: 16 } as const
/** Codes of the precision byte. */
export const precisionCodes = { n: 0, u: 1, ms: 2, s: 3, m: 4, h: 5, auto: 6 } as const

const headWord = ingestRingAddress >>> 2
const tailWord = (ingestRingAddress + 64) >>> 2
const headerBytes = 64
const paddingBytes = 64
const noSourcePosition = new Uint8Array(0)

export interface RingHeader {
  readonly kind: number
  readonly flags: number
  readonly precision: number
  readonly requestId: number
  readonly connectionId: number
  readonly nowMicros: number
}

export interface RingMessage extends RingHeader {
  /** Address of the payload. */
  readonly address: number
  readonly bytes: number
  /** The encoded source position of the rows (wal/source-position.ts); 0 bytes if they have none. */
  readonly sourcePositionAddress: number
  readonly sourcePositionBytes: number
}

/** Prepares an empty ring over `capacity` bytes at `base`. Call once, before any thread uses it. */
export function initializeRing(memory: SharedMemory, base: number, capacity: number): void {
  assert((capacity & (capacity - 1)) === 0, 'A3: the capacity of a ring is a power of two')
  assert(base % 64 === 0, 'A1: messages of a ring are aligned to 64 bytes')
  memory.u32[headWord] = 0
  memory.u32[tailWord] = 0
  memory.u32[(ingestRingAddress + 128) >>> 2] = base
  memory.u32[(ingestRingAddress + 132) >>> 2] = capacity
}

function ringBase(memory: SharedMemory): number {
  return memory.u32[(ingestRingAddress + 128) >>> 2]!
}

function ringCapacity(memory: SharedMemory): number {
  return memory.u32[(ingestRingAddress + 132) >>> 2]!
}

/** Size of the whole message in bytes. */
function ringSpan(payloadBytes: number, sourcePositionBytes = 0): number {
  return (headerBytes + alignedTo8(sourcePositionBytes) + payloadBytes + paddingBytes + 63) & ~63
}

function alignedTo8(bytes: number): number {
  return (bytes + 7) & ~7
}

/** Bytes written and not yet consumed. */
export function ringUsed(memory: SharedMemory): number {
  return (Atomics.load(memory.u32, headWord) - Atomics.load(memory.u32, tailWord)) >>> 0
}

/** Producer: copies a message in; false if the ring has no room now. The caller must wake the consumer. */
export function ringWrite(
  memory: SharedMemory,
  header: RingHeader,
  payload: Uint8Array,
  sourcePosition: Uint8Array = noSourcePosition,
): boolean {
  const capacity = ringCapacity(memory)
  const span = ringSpan(payload.length, sourcePosition.length)
  assert(span <= capacity >>> 1, 'A3: a message is at most half a ring')
  const head = Atomics.load(memory.u32, headWord)
  const offset = head & (capacity - 1)
  const skip = offset + span > capacity ? capacity - offset : 0
  if (ringUsed(memory) + skip + span > capacity) return false
  if (skip > 0)
    writeHeader(
      memory,
      ringBase(memory) + offset,
      { ...header, kind: ringKinds.skip },
      { bytes: 0, sourcePositionBytes: 0, span: skip },
    )
  assert(((offset + skip) & (capacity - 1)) + span <= capacity, 'A3: a message of a ring is contiguous')
  const at = ringBase(memory) + ((offset + skip) & (capacity - 1))
  writeHeader(memory, at, header, { bytes: payload.length, sourcePositionBytes: sourcePosition.length, span })
  if (sourcePosition.length > 0) memory.u8.set(sourcePosition, at + headerBytes)
  memory.put(payload, at + headerBytes + alignedTo8(sourcePosition.length))
  Atomics.store(memory.u32, headWord, (head + skip + span) >>> 0)
  return true
}

interface MessageSizes {
  readonly bytes: number
  readonly sourcePositionBytes: number
  readonly span: number
}

function writeHeader(memory: SharedMemory, at: number, header: RingHeader, sizes: MessageSizes): void {
  memory.u32[at >>> 2] = sizes.bytes
  memory.u8[at + 4] = header.kind
  memory.u8[at + 5] = header.flags
  memory.u8[at + 6] = header.precision
  memory.u32[(at + 8) >>> 2] = header.requestId
  memory.u32[(at + 12) >>> 2] = header.connectionId
  memory.f64[(at + 16) >>> 3] = header.nowMicros
  memory.u32[(at + 24) >>> 2] = sizes.span
  memory.u32[(at + 28) >>> 2] = sizes.sourcePositionBytes
}

/** Consumer: the oldest message, or null. It stays in place until ringRelease. */
export function ringPeek(memory: SharedMemory): RingMessage | null {
  for (;;) {
    const tail = Atomics.load(memory.u32, tailWord)
    if (tail === Atomics.load(memory.u32, headWord)) return null
    assert(ringUsed(memory) <= ringCapacity(memory), 'A3: a ring holds no more than its capacity')
    const at = ringBase(memory) + (tail & (ringCapacity(memory) - 1))
    if (memory.u8[at + 4] !== ringKinds.skip) return readMessage(memory, at)
    Atomics.store(memory.u32, tailWord, (tail + memory.u32[(at + 24) >>> 2]!) >>> 0)
  }
}

function readMessage(memory: SharedMemory, at: number): RingMessage {
  const sourcePositionBytes = memory.u32[(at + 28) >>> 2]!
  return {
    kind: memory.u8[at + 4]!,
    flags: memory.u8[at + 5]!,
    precision: memory.u8[at + 6]!,
    requestId: memory.u32[(at + 8) >>> 2]!,
    connectionId: memory.u32[(at + 12) >>> 2]!,
    nowMicros: memory.f64[(at + 16) >>> 3]!,
    address: at + headerBytes + alignedTo8(sourcePositionBytes),
    bytes: memory.u32[at >>> 2]!,
    sourcePositionAddress: at + headerBytes,
    sourcePositionBytes,
  }
}

/** Consumer: frees the oldest message. */
export function ringRelease(memory: SharedMemory): void {
  assert(ringUsed(memory) > 0, 'A3: only a message that is there is released')
  const tail = Atomics.load(memory.u32, tailWord)
  const at = ringBase(memory) + (tail & (ringCapacity(memory) - 1))
  Atomics.store(memory.u32, tailWord, (tail + memory.u32[(at + 24) >>> 2]!) >>> 0)
  Atomics.notify(memory.i32, tailWord)
}

/** Producer: resolves when the consumer has freed a message since the failed write, at the latest after 100 ms. */
export async function ringRoom(memory: SharedMemory): Promise<void> {
  const tail = Atomics.load(memory.i32, tailWord)
  if ((Atomics.load(memory.u32, headWord) - tail) >>> 0 === 0) return
  const waiting = Atomics.waitAsync(memory.i32, tailWord, tail, 100)
  if (waiting.async) await waiting.value
}
