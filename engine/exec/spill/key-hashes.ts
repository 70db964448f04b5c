// Hashes of rows by their keys, which choose the temporary file (partition) for each row when an operator spills to
// disk. Equal keys have equal hashes on both sides of a join or set operation, whatever the types and dictionaries of
// the two columns. A partition that is still too large is divided again by hashes with another seed.

import { hashKinds } from '../../kernels/aggregate.js'
import { type DataType, storageOf } from '../../types/column-types.js'
import { keyText } from '../../types/compare.js'
import type { ExecContext } from '../batch/context.js'
import { valueReader } from '../batch/values.js'
import { batchRowsMax, type Vector } from '../batch/vector.js'
import { isText, textEntries } from '../join/join-keys.js'

/** Adds the values of a column to the hashes of the rows (u32). */
type ColumnHash = (vector: Vector, rows: number, hashes: number) => void

export class KeyHashes {
  readonly #context: ExecContext
  readonly #columns: readonly ColumnHash[]
  readonly #hashes: number

  /** `others`: the types of the columns that the keys are compared with. */
  constructor(context: ExecContext, types: readonly DataType[], others: readonly DataType[]) {
    this.#context = context
    this.#columns = types.map((type, index) => columnHash(context, type, others[index] ?? type))
    this.#hashes = context.arena.take(batchRowsMax * 4)
  }

  /** Address of the hashes of at most batchRowsMax rows; valid until the next call. */
  of(keys: readonly Vector[], rows: number, seed: number): number {
    const { u32 } = this.#context.memory
    u32.fill(seed, this.#hashes >>> 2, (this.#hashes >>> 2) + rows)
    for (const [index, key] of keys.entries()) this.#columns[index]?.(key, rows, this.#hashes)
    return this.#hashes
  }
}

function columnHash(context: ExecContext, type: DataType, other: DataType): ColumnHash {
  const { aggregate } = context.kernels
  if (isText(type) && isText(other)) {
    const entriesOf = textEntries(context)
    return (vector, rows, hashes) => aggregate.hashKeys(hashKinds.entry, entriesOf(vector, rows), rows, hashes)
  }
  const storage = storageOf(type)
  if (storage !== storageOf(other)) return valueHash(context)
  const kind = hashKinds[storage === 'u16' ? 'i16' : storage]
  return ({ address }, rows, hashes) => aggregate.hashKeys(kind, address, rows, hashes)
}

/** For equal values that are stored differently, such as decimals of different precision. */
function valueHash({ memory, strings }: ExecContext): ColumnHash {
  return (vector, rows, hashes) => {
    const read = valueReader(memory, strings, vector)
    for (let row = 0, word = hashes >>> 2; row < rows; row++, word++) {
      let hash = memory.u32[word]!
      const key = keyText(read(row))
      for (let at = 0; at < key.length; at++) hash = Math.imul(hash ^ key.charCodeAt(at), 0x0100_0193)
      memory.u32[word] = Math.imul(hash ^ (hash >>> 15), 0x2c1b_3c6d)
    }
  }
}
