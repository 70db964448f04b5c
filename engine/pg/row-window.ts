// Runs the WebAssembly kernel that turns parameters of Bind messages into columns (kernels/rows.ts): copies the
// received messages into memory that the kernel uses, calls it, and returns the columns. Not reentrant; a result is
// valid until the next call. The memory is divided into:
//
//   heapBase   state | prefix | suffix | starts | ends | after | values | symbol slots | heap | messages

import { assert } from '../base/assert.js'
import { loadRows } from '../kernels/load.js'
import { type FixedTake, fixedTakes, type RowsKernel, symbolSlotBytes } from '../kernels/rows.js'
import { heapBase } from '../memory/layout.js'
import { createSharedMemory, type SharedMemory } from '../memory/shared-memory.js'

const KIB = 1024
/** Limit of values in one batch. */
const valuesMax = 65_536
const headBytesMax = 256 * KIB
const messagesBytesMax = 1024 * KIB
const padding = 64

const sizes = {
  state: 1 * KIB,
  prefix: headBytesMax,
  suffix: headBytesMax,
  starts: valuesMax * 4,
  ends: valuesMax * 4,
  after: valuesMax * 4,
  values: valuesMax * 8 + padding,
  slots: valuesMax * 2 * symbolSlotBytes,
  heap: messagesBytesMax + valuesMax * 4 + padding,
  messages: messagesBytesMax + padding,
}

type Place = keyof typeof sizes

function placesFrom(base: number): { readonly at: Readonly<Record<Place, number>>; readonly end: number } {
  const at: Partial<Record<Place, number>> = {}
  let end = base
  for (const [place, bytes] of Object.entries(sizes) as [Place, number][]) {
    at[place] = end
    end += bytes
  }
  return { at: at as Record<Place, number>, end }
}

const { at: places, end: windowEnd } = placesFrom(heapBase)
const symbolsAt = places.state + 64
const missingAt = places.state + 96

/** The parts of a Bind that equal the previous ones. */
export interface BindHead {
  /** From the portal's name to the parameter count. */
  readonly prefix: Uint8Array
  /** Offset of the format codes in it, one per parameter; 0: there are fewer. */
  readonly formats: number
  /** The bytes after the last parameter. */
  readonly suffix: Uint8Array
}

export interface BindRun {
  /** Number of messages consumed. */
  readonly binds: number
  /** Offset after the last one. */
  readonly at: number
  /** Each had a Describe. */
  readonly described: boolean
  /** Each was followed by a Sync. */
  readonly synced: boolean
}

/** The messages found: value `column` of row r is at r * width + column if each row has `width` values. */
export interface FoundBinds extends BindRun {
  /** Offsets in the window. */
  readonly starts: Int32Array
  /** Negative for NULL. */
  readonly ends: Int32Array
  /** Offset after each message, in the given bytes. */
  after(bind: number): number
}

/** Values of one column, starting at a row. */
export interface ColumnRun {
  readonly column: number
  readonly width: number
  readonly from: number
  readonly rows: number
}

export class RowWindow {
  /** The whole memory. */
  readonly bytes: Buffer
  readonly #memory: SharedMemory
  readonly #kernel: RowsKernel

  /** `load` creates the kernel. */
  constructor(load: (memory: SharedMemory) => RowsKernel = loadRows) {
    this.#memory = createSharedMemory(windowEnd)
    this.#kernel = load(this.#memory)
    this.bytes = Buffer.from(this.#memory.memory.buffer as ArrayBufferLike as ArrayBuffer)
  }

  /** Finds messages of the known form from `start` on, of `values` values each. */
  find(source: Buffer, start: number, head: BindHead, syncs: boolean, values: number): FoundBinds {
    const { u32 } = this.#memory
    const { prefix, suffix, formats } = head
    assert(values > 0, 'P2: a message of a batch has values')
    const bindsMax = Math.floor(valuesMax / values)
    const fits = bindsMax > 0 && prefix.length <= headBytesMax && suffix.length <= headBytesMax
    const end = Math.min(source.length, start + messagesBytesMax)
    if (fits) this.#putMessages(source.subarray(start, end), head)
    const { messages, starts, ends, after } = places
    const words = [messages, messages + end - start, places.prefix, prefix.length, places.suffix, suffix.length]
    words.push(formats, values, bindsMax, syncs ? 1 : 0, starts, ends, after)
    const word = places.state >>> 2
    for (let index = 0; index < words.length; index++) u32[word + index] = words[index] as number
    const binds = fits ? this.#kernel.findBinds(places.state) : 0
    assert(binds <= bindsMax, 'K3: a kernel finds no more messages than it has room for')
    const shift = start - messages
    return {
      binds,
      at: u32[word]! + shift,
      described: u32[word + 13] === 1,
      synced: u32[word + 14] === 1,
      starts: this.#memory.i32.subarray(starts >>> 2, (starts >>> 2) + binds * values),
      ends: this.#memory.i32.subarray(ends >>> 2, (ends >>> 2) + binds * values),
      after: (bind) => u32[(after >>> 2) + bind]! + shift,
    }
  }

  #putMessages(messages: Buffer, { prefix, suffix }: BindHead): void {
    this.#memory.put(prefix, places.prefix)
    this.#memory.put(suffix, places.suffix)
    this.#memory.put(messages, places.messages)
  }

  /** Returns fixed-width values; `missing` replaces NULL, and without it the result ends at the first NULL. */
  fixed(take: FixedTake, run: ColumnRun, missing: Uint8Array | null): Uint8Array {
    if (missing !== null) this.#memory.u8.set(missing, missingAt)
    const rows = this.#kernel[take](...this.#placesOf(run), places.values, missing === null ? 0 : missingAt)
    assert(rows <= run.rows - run.from, 'K3: a kernel takes no more values than it was given')
    return this.#memory.u8.subarray(places.values, places.values + rows * fixedTakes[take])
  }

  strings(run: ColumnRun): { readonly lengths: Int32Array; readonly bytes: Uint8Array } {
    const rows = this.#kernel.takeStrings(...this.#placesOf(run), places.values, places.heap)
    const lengths = this.#words(rows)
    let bytes = 0
    for (let row = 0; row < rows; row++) bytes += Math.max(0, lengths[row]!)
    return { lengths, bytes: this.#memory.u8.subarray(places.heap, places.heap + bytes) }
  }

  /** Dictionary-encodes strings: codes, and the distinct strings in code order, each after its length u32. */
  symbols(run: ColumnRun): { readonly ids: Int32Array; readonly strings: Buffer; readonly count: number } {
    const { u32, u8 } = this.#memory
    const slots = 2 ** Math.ceil(Math.log2((run.rows - run.from) * 2))
    assert(slots * symbolSlotBytes <= sizes.slots, 'K2: the hash table of symbols has its room')
    u8.fill(0, places.slots, places.slots + slots * symbolSlotBytes)
    const word = symbolsAt >>> 2
    for (const [index, value] of [places.slots, slots - 1, places.heap, 0, 0].entries()) u32[word + index] = value
    const rows = this.#kernel.takeSymbols(symbolsAt, ...this.#placesOf(run), places.values)
    assert(u32[word + 3]! <= rows, 'R2: there are no more distinct symbols than rows')
    const strings = this.bytes.subarray(places.heap, places.heap + u32[word + 4]!)
    return { ids: this.#words(rows), strings, count: u32[word + 3]! }
  }

  #placesOf({ column, width, from, rows }: ColumnRun): [starts: number, ends: number, stride: number, rows: number] {
    assert(from <= rows, 'P2: a run of values does not end before its beginning')
    assert(rows * width <= valuesMax, 'K2: the places of all values have room')
    const first = (from * width + column) * 4
    return [places.starts + first, places.ends + first, width * 4, rows - from]
  }

  #words(count: number): Int32Array {
    return this.#memory.i32.subarray(places.values >>> 2, (places.values >>> 2) + count)
  }
}
