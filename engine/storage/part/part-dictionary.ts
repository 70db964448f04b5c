// Builds the dictionary of one column of a Parquet file while the column is written: takes the values, and returns the
// distinct ones in order of first use and, for each row, the index of its value. It gives up at a limit of size, beyond
// which a dictionary would not make the file smaller.

import { assert } from '../../base/assert.js'
import { dictionaryStateBytes, type ParquetKernel } from '../../kernels/parquet.js'
import type { Scratch } from './part-scratch.js'

export interface DictionaryLimits {
  /** Maximum number of distinct values. */
  readonly count: number
  /** Maximum bytes of strings with their lengths; ignored for fixed-width types. */
  readonly bytes: number
}

/** The initial size is small, because there may be thousands of columns with few rows. */
const countFirst = 256
const textBytesFirst = 4 * 1024
const growth = 4

/** Bits of an index into that many values. */
export function bitsFor(count: number): number {
  return count <= 1 ? 0 : 32 - Math.clz32(count - 1)
}

export class ChunkDictionary {
  private readonly kernel: ParquetKernel
  private readonly scratch: Scratch
  /** Bytes of a value; 0 for strings. */
  private readonly width: number
  private readonly limits: DictionaryLimits
  private readonly state: number
  private countMax: number
  private textBytesMax: number
  private readonly valuesExpected: number
  private indexCount = 0

  /** `valuesExpected`: number of codes for which memory is allocated at once. */
  constructor(kernel: ParquetKernel, scratch: Scratch, width: number, limits: DictionaryLimits, valuesExpected = 0) {
    this.kernel = kernel
    this.scratch = scratch
    this.width = width
    this.limits = limits
    this.valuesExpected = valuesExpected
    this.countMax = Math.min(countFirst, limits.count)
    this.textBytesMax = Math.min(textBytesFirst, limits.bytes)
    this.state = scratch.room('dictionaryState', dictionaryStateBytes)
    scratch.memory.u8.fill(0, this.state, this.state + dictionaryStateBytes)
    this.resize()
  }

  /** Number of distinct values. */
  get count(): number {
    return this.word(12)
  }

  /** Number of values added. */
  get added(): number {
    return this.indexCount
  }

  /** Maximum number of distinct values. */
  get countLimit(): number {
    return this.limits.count
  }

  /** Size of the PLAIN dictionary page. */
  get bytes(): number {
    return this.width > 0 ? this.count * this.width : this.word(24)
  }

  /** Address of the distinct values, in the form of a PLAIN dictionary page. */
  get values(): number {
    return this.word(8)
  }

  /** Bits of a code. */
  get bits(): number {
    return bitsFor(this.count)
  }

  /** Address of the codes from that of added value number `first` on. */
  indexesFrom(first: number): number {
    assert(first <= this.indexCount, 'R2: codes are read of values that were added')
    return this.scratch.room('dictionaryIndexes', this.indexCount * 4) + first * 4
  }

  /** Adds values. Returns false if they exceed the limits; the dictionary is unusable then. */
  add(values: number, count: number): boolean {
    let indexes = this.scratch.room('dictionaryIndexes', this.indexRoom(count), this.indexCount * 4)
    indexes += this.indexCount * 4
    for (let done = 0; done < count; ) {
      const taken =
        this.width > 0
          ? this.kernel.dictionaryAdd(this.state, values + done * this.width, count - done, indexes + done * 4)
          : this.kernel.dictionaryAddText(this.state, values + done * 8, count - done, indexes + done * 4)
      done += taken
      assert(done <= count, 'K3: a kernel takes no more values than it was given')
      if (done < count && !this.grow()) return false
    }
    this.indexCount += count
    return true
  }

  private indexRoom(count: number): number {
    const wanted = (this.indexCount + count) * 4
    // Doubling makes the cost of copying linear; the scratch keeps a buffer that is large enough.
    return Math.max(wanted, this.indexCount === 0 ? this.valuesExpected * 4 : this.indexCount * 8)
  }

  private grow(): boolean {
    if (this.countMax >= this.limits.count && (this.width > 0 || this.textBytesMax >= this.limits.bytes)) return false
    this.countMax = Math.min(this.countMax * growth, this.limits.count)
    this.textBytesMax = Math.min(this.textBytesMax * growth, this.limits.bytes)
    this.resize()
    return true
  }

  private resize(): void {
    const { scratch, countMax, textBytesMax } = this
    const slotCount = 2 ** Math.ceil(Math.log2(countMax * 2))
    assert(slotCount >= countMax * 2, 'K2: a dictionary is at most half full')
    const slots = scratch.room('dictionarySlots', slotCount * 4)
    scratch.memory.u32.fill(0, slots >>> 2, (slots >>> 2) + slotCount)
    const used = this.bytes
    const values = scratch.room('dictionaryValues', this.width > 0 ? countMax * this.width : textBytesMax, used)
    const offsets = this.width > 0 ? 0 : scratch.room('dictionaryOffsets', countMax * 4, this.count * 4)
    assert(this.count <= countMax, 'K2: a dictionary has room for its values')
    const words = [slots, slotCount - 1, values, this.count, countMax, this.width, this.word(24), textBytesMax, offsets]
    words.forEach((word, index) => {
      scratch.memory.u32[(this.state >>> 2) + index] = word
    })
    this.kernel.dictionaryRehash(this.state)
  }

  private word(offset: number): number {
    return this.scratch.memory.u32[(this.state + offset) >>> 2]!
  }
}
