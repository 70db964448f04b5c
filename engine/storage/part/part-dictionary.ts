// The dictionary of one column chunk while it is written: distinct values in order of first use, and the index of every
// value so far. It grows until a limit says that a dictionary does not pay.

import { assert } from '../../base/assert.js'
import { dictionaryStateBytes, type ParquetKernel } from '../../kernels/parquet.js'
import type { Scratch } from './part-scratch.js'

export interface DictionaryLimits {
  /** Distinct values. */
  readonly count: number
  /** Bytes of texts with their lengths; ignored for fixed widths. */
  readonly bytes: number
}

/** Small, since there may be thousands of columns with few rows. */
const countFirst = 256
const textBytesFirst = 4 * 1024
const growth = 4

/** Owns the scratch buffers named dictionary*. One column at a time. */
/** Bits of an index into so many values. */
export function bitsFor(count: number): number {
  return count <= 1 ? 0 : 32 - Math.clz32(count - 1)
}

export class ChunkDictionary {
  private readonly kernel: ParquetKernel
  private readonly scratch: Scratch
  /** Bytes of a value; 0 for text. */
  private readonly width: number
  private readonly limits: DictionaryLimits
  private readonly state: number
  private countMax: number
  private textBytesMax: number
  private readonly valuesExpected: number
  private indexCount = 0

  /** `valuesExpected`: room for so many indexes is taken at once, what comes beyond them makes it grow. */
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

  /** Distinct values. */
  get count(): number {
    return this.word(12)
  }

  /** Values that were added. */
  get added(): number {
    return this.indexCount
  }

  /** More of them do not go in. */
  get countLimit(): number {
    return this.limits.count
  }

  /** Bytes of the PLAIN dictionary page. */
  get bytes(): number {
    return this.width > 0 ? this.count * this.width : this.word(24)
  }

  /** Address of the values, as a PLAIN dictionary page has them. */
  get values(): number {
    return this.word(8)
  }

  /** Bits of an index. */
  get bits(): number {
    return bitsFor(this.count)
  }

  /** Address of the index of value number `first` of all that were added. */
  indexesFrom(first: number): number {
    assert(first <= this.indexCount, 'R2: codes are read of values that were added')
    return this.scratch.room('dictionaryIndexes', this.indexCount * 4) + first * 4
  }

  /** Adds values; false when the limits do not hold them: the dictionary is of no use then. */
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
    // Doubling keeps the copying linear; the scratch keeps what it has when that is enough.
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
