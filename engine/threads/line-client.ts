// The main thread's side of line protocol and QWP (columnar protocol over WebSocket): copies requests, in order and
// block by block, to the ingest ring, a ring buffer in shared memory that the writer reads. Callers wait for `taken`,
// which resolves when the request's last byte is in the ring, so a full ring slows clients down. While writes are
// refused (write-guard.ts), atomic requests fail and others wait.

import type { LineRequest, LineTicket } from '../api/ingest.js'
import { assert } from '../base/assert.js'
import { ResourceError } from '../base/errors.js'
import { lineFlags, precisionCodes, type RingHeader, ringKinds, ringRoom, ringWrite } from '../memory/ring.js'
import type { SharedMemory } from '../memory/shared-memory.js'
import type { Receipt } from '../storage/jobs/messages.js'
import { packSourcePosition } from '../storage/manifest/source-positions.js'
import { writeRefusal } from './write-guard.js'

/** Interval in ms at which delayed lines check whether writes are accepted again. */
const heldRequestMs = 100

interface Waiting {
  readonly request: LineRequest
  readonly requestId: number
  readonly taken: () => void
}

export interface LineClientOptions {
  readonly memory: SharedMemory
  readonly wakeWriter: () => void
  readonly nextRequestId: () => number
  /** Registers the request and returns the promise of its receipt. */
  readonly expect: (requestId: number) => Promise<Receipt>
  readonly nowMicros: () => number
}

export class LineClient {
  readonly #options: LineClientOptions
  readonly #queue: Waiting[] = []
  readonly #held: Waiting[] = []
  #holding: NodeJS.Timeout | undefined
  /** Number of blocks of the current request that are already in the ring. */
  #written = 0
  #serving = false
  #closed = false

  constructor(options: LineClientOptions) {
    this.#options = options
  }

  lines(request: LineRequest): LineTicket {
    if (this.#closed) return refused(new ResourceError('the server is shutting down'))
    assert(request.blocks.length > 0, 'P3: a request has a block')
    assert(request.format !== 'qwp' || request.atomic, 'R4: QWP messages are stored as a whole')
    assert(request.sourcePosition === undefined || request.atomic, 'R4: a source position is stored with all its rows')
    assert(
      request.partial !== true || (request.atomic && request.skipBadLines),
      'R4: a partial request goes on after bad lines',
    )
    const refusal = writeRefusal(this.#options.memory)
    if (refusal !== null && request.atomic) return refused(refusal)
    const requestId = this.#options.nextRequestId()
    const receipt = this.#options.expect(requestId)
    if (refusal !== null) return { taken: this.#hold(request, requestId), receipt }
    if (!this.#serving && this.#writeAll(request, requestId, 0) === request.blocks.length) {
      return { taken: Promise.resolve(), receipt }
    }
    const taken = new Promise<void>((resolve) => this.#queue.push({ request, requestId, taken: resolve }))
    if (!this.#serving) void this.#serve(this.#written)
    return { taken, receipt }
  }

  /** Delays lines of a stream outside the queue until writes are accepted again, so TCP slows the sender down. */
  #hold(request: LineRequest, requestId: number): Promise<void> {
    const taken = new Promise<void>((resolve) => this.#held.push({ request, requestId, taken: resolve }))
    this.#holding ??= setInterval(() => this.#letGo(), heldRequestMs)
    return taken
  }

  #letGo(): void {
    if (writeRefusal(this.#options.memory) !== null && !this.#closed) return
    clearInterval(this.#holding)
    this.#holding = undefined
    this.#queue.push(...this.#held.splice(0))
    if (!this.#serving) void this.#serve(0)
  }

  /** Rejects all further requests. */
  close(): void {
    this.#closed = true
    clearInterval(this.#holding)
    this.#held.length = 0
  }

  /** Writes blocks from index `from` on while the ring has room; returns the number of blocks in the ring. */
  #writeAll(request: LineRequest, requestId: number, from: number): number {
    let next = from
    while (next < request.blocks.length && this.#write(request, requestId, next)) next++
    if (next > from) this.#options.wakeWriter()
    this.#written = next
    return next
  }

  #write(request: LineRequest, requestId: number, index: number): boolean {
    const { memory, nowMicros } = this.#options
    const header: RingHeader = {
      kind: ringKinds[request.format ?? 'lines'],
      flags: flagsOf(request, index),
      precision: precisionCodes[request.precision],
      requestId,
      connectionId: request.connectionId,
      nowMicros: nowMicros(),
    }
    return ringWrite(
      memory,
      header,
      request.blocks[index] as Uint8Array,
      index === 0 ? sourcePositionOf(request) : undefined,
    )
  }

  async #serve(written: number): Promise<void> {
    this.#serving = true
    let from = written
    for (let waiting = this.#queue[0]; waiting !== undefined; waiting = this.#queue[0]) {
      from = this.#writeAll(waiting.request, waiting.requestId, from)
      if (from < waiting.request.blocks.length) {
        await ringRoom(this.#options.memory)
        continue
      }
      this.#queue.shift()
      waiting.taken()
      from = 0
    }
    this.#serving = false
  }
}

function sourcePositionOf({ sourcePosition }: LineRequest): Uint8Array | undefined {
  return sourcePosition === undefined ? undefined : packSourcePosition(sourcePosition, sourcePosition.previous)
}

function flagsOf(request: LineRequest, index: number): number {
  let flags = 0
  if (index === 0) flags |= lineFlags.first
  if (index === request.blocks.length - 1) flags |= lineFlags.last
  if (request.atomic) flags |= lineFlags.atomic
  if (request.skipBadLines) flags |= lineFlags.skipBadLines
  if (request.partial === true) flags |= lineFlags.partial
  return flags
}

function refused(error: Error): LineTicket {
  const taken = Promise.reject(error)
  const receipt = Promise.reject(error)
  taken.catch(() => {})
  receipt.catch(() => {})
  return { taken, receipt }
}
