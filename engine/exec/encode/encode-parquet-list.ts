// Encodes a column of arrays in an exported Parquet file as nested lists of doubles, with the levels of the Parquet
// format, for arrays of d dimensions:
//
//   definition level   0: the array is NULL; 1 + k: the array is empty in dimension k; 1 + d: a double
//   repetition level   0: a new row begins; k + 1: the next element of dimension k

import { encodings } from '../../storage/part/parquet-types.js'
import type { ArrayValue } from '../../types/value.js'
import type { ExecContext } from '../batch/context.js'
import { valueReader } from '../batch/values.js'
import type { Vector } from '../batch/vector.js'
import type { ExportedChunk, ExportedColumn } from './encode-parquet-column.js'
import { dataPage, type EncodedPage, type ExportTools } from './encode-parquet-page.js'

const headRoomBytes = 64

export class ListColumn implements ExportedColumn {
  waitingBytes = 0
  private readonly tools: ExportTools
  private readonly context: ExecContext
  private readonly dimensions: number
  private repetitions: number[] = []
  private definitions: number[] = []
  private doubles: number[] = []
  private rows = 0
  private pages: EncodedPage[] = []
  private values = 0
  private nulls = 0

  constructor(tools: ExportTools, context: ExecContext, dimensions: number) {
    this.tools = tools
    this.context = context
    this.dimensions = dimensions
  }

  takeStored(): boolean {
    return false
  }

  append(vector: Vector, from: number, to: number): void {
    const read = valueReader(this.context.memory, this.context.strings, vector)
    for (let row = from; row < to; row++) {
      this.take(read(row) as ArrayValue | null)
      this.rows++
      if (this.doubles.length * 8 >= this.tools.encoding.pageBytes) this.flush()
    }
  }

  finish(): ExportedChunk {
    if (this.rows > 0) this.flush()
    const { pages, values, nulls } = this
    this.pages = []
    this.values = 0
    this.nulls = 0
    this.waitingBytes = 0
    const ranges = pages.map(() => undefined)
    return { dictionary: null, pages, values, nulls, ranges, bloom: null, encodings: [encodings.plain, encodings.rle] }
  }

  get gatheredBytes(): number {
    return (this.doubles.length + this.repetitions.length + this.definitions.length) * 8
  }

  private take(value: ArrayValue | null): void {
    if (value === null) this.level(0, 0)
    else this.takeDimension(value, 0, 0, 0)
  }

  /** Returns how many doubles were taken. */
  private takeDimension({ shape, data }: ArrayValue, dimension: number, first: number, repetition: number): number {
    const length = shape[dimension] as number
    if (length === 0) {
      this.level(repetition, 1 + dimension)
      return 0
    }
    let taken = 0
    for (let index = 0; index < length; index++) {
      const own = index === 0 ? repetition : dimension + 1
      if (dimension + 1 < this.dimensions) {
        taken += this.takeDimension({ shape, data }, dimension + 1, first + taken, own)
      } else {
        this.level(own, 1 + this.dimensions)
        this.doubles.push(data[first + taken]!)
        taken++
      }
    }
    return taken
  }

  private level(repetition: number, definition: number): void {
    this.repetitions.push(repetition)
    this.definitions.push(definition)
  }

  private flush(): void {
    const { tools, repetitions, definitions, doubles, dimensions, rows } = this
    const { scratch } = tools
    const count = definitions.length
    const address = scratch.room('raw', headRoomBytes + count * 4 + 1024 + doubles.length * 8) + headRoomBytes
    const repetitionBytes = this.packLevels(repetitions, dimensions, address)
    const definitionBytes = this.packLevels(definitions, dimensions + 1, address + repetitionBytes)
    const body = address + repetitionBytes + definitionBytes
    const packed = new Uint8Array(Float64Array.from(doubles).buffer)
    scratch.memory.u8.set(packed, body)
    const nulls = count - doubles.length
    const made = dataPage(tools, {
      ...{ values: count, nulls, rows, encoding: encodings.plain, address, repetitionBytes, definitionBytes },
      bytes: repetitionBytes + definitionBytes + packed.length,
    })
    this.pages.push(made)
    this.waitingBytes += made.header.length + made.body.length
    this.values += count
    this.nulls += nulls
    this.repetitions = []
    this.definitions = []
    this.doubles = []
    this.rows = 0
  }

  private packLevels(levels: readonly number[], levelMax: number, target: number): number {
    const { kernel, scratch } = this.tools
    const source = scratch.room('levels', levels.length * 4)
    scratch.memory.u32.set(levels, source >>> 2)
    return kernel.packIndexes(source, levels.length, 32 - Math.clz32(levelMax), target)
  }
}
