// Converts the key columns of both sides of a join to a common form in which equal keys are equal bytes, so that rows
// can be hashed and compared as bytes. Most columns have this form already. The others are converted:
//
// - CHARs and symbols (dictionary-encoded strings) that are compared with strings become strings.
// - If both sides are symbols, FLOATs, of types that are stored differently, or of types of less than 32 bits, each
//   value becomes a 32-bit number that is the same for equal values of both sides (join-keys.ts).
//
// NULL equals NULL. A single integer of 4 or 8 bytes, such a number included, is compared directly; otherwise hashes
// are compared first, then values.

import { hashKinds } from '../../kernels/aggregate.js'
import { type DataType, dataType, storageOf, widthOf } from '../../types/column-types.js'
import type { ExecContext } from '../batch/context.js'
import { keyCoder } from '../batch/key-codes.js'
import { batchRowsMax, type Vector } from '../batch/vector.js'
import { codeType, isText, type JoinCoder, symbolCodes, textEntries, valueCoder } from './join-keys.js'

type Kind = 'i32' | 'i64' | 'f64' | 'entry' | 'b16' | 'b32'

interface KeyColumn {
  readonly kind: Kind
  /** Type of the values that the build side stores; null when the column itself serves. */
  readonly retained: DataType | null
  /** Address of the values; valid until the next call. */
  readonly values: (vector: Vector, rows: number) => number
}

export class JoinColumns {
  readonly columns: readonly KeyColumn[]
  /** Bytes that a bucket stores for a row's key. */
  readonly width: 4 | 8
  /** Whether a bucket stores the key itself, and not its hash. */
  readonly exact: boolean
  readonly #context: ExecContext
  #hashes = 0

  /** `bases`: for each key, the dictionary whose ids are codes, as the build side has chosen it. */
  constructor(
    context: ExecContext,
    left: readonly DataType[],
    right: readonly DataType[],
    bases: readonly number[] | null = null,
  ) {
    this.#context = context
    this.columns = left.map((type, index) => keyColumn(context, type, right[index] as DataType, bases?.[index] ?? 0))
    const [only] = this.columns
    const single = this.columns.length === 1
    this.width = single && only?.kind === 'i64' ? 8 : 4
    this.exact = single && (only?.kind === 'i64' || only?.kind === 'i32')
  }

  values(vectors: readonly Vector[], rows: number): number[] {
    return this.columns.map(({ values }, index) => values(vectors[index] as Vector, rows))
  }

  /** Address of the hashes of a batch; valid until the next call. */
  hashes(values: readonly number[], rows: number): number {
    const { memory, kernels, arena } = this.#context
    if (this.#hashes === 0) this.#hashes = arena.take(batchRowsMax * 4)
    memory.u32.fill(0, this.#hashes >>> 2, (this.#hashes >>> 2) + rows)
    this.columns.forEach(({ kind }, index) => {
      kernels.aggregate.hashKeys(hashKinds[kind], values[index] as number, rows, this.#hashes)
    })
    return this.#hashes
  }
}

function keyColumn(context: ExecContext, left: DataType, right: DataType, base: number): KeyColumn {
  if (left.name === 'SYMBOL' && right.name === 'SYMBOL') return codes(context, symbolCodes(context, base).code)
  if (isText(left) && isText(right)) {
    const plain = isEntry(left) && isEntry(right)
    return { kind: 'entry', retained: plain ? null : dataType('VARCHAR'), values: textEntries(context) }
  }
  if (storageOf(left) !== storageOf(right)) return codes(context, valueCoder(context))
  const storage = storageOf(left)
  switch (storage) {
    case 'i32':
    case 'i64':
    case 'f64':
    case 'entry':
    case 'b16':
    case 'b32':
      return { kind: storage, retained: null, values: ({ address }) => address }
    default: {
      const code = keyCoder(context, left)
      return codes(context, (vector, rows, out) => code(vector, 0, rows, out))
    }
  }
}

function isEntry({ name }: DataType): boolean {
  return name === 'STRING' || name === 'VARCHAR'
}

function codes({ arena }: ExecContext, code: JoinCoder): KeyColumn {
  let out = 0
  const values = (vector: Vector, rows: number): number => {
    if (out === 0) out = arena.take(batchRowsMax * widthOf(codeType))
    code(vector, rows, out)
    return out
  }
  return { kind: 'i32', retained: codeType, values }
}
