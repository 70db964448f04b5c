// Texts as numbers of the distinct ones that a part knows, so that what is asked of a text can be asked once for each of
// those (text-answers.ts, key-table.ts). A vector of such texts makes its entries only when somebody reads them.

import type { DataType } from '../../types/column-types.js'
import type { Vector } from './vector.js'

export interface CodedTexts {
  /** Address of a u32 per row: 0 is NULL in a column, and any in what is computed; the entry says so. */
  readonly codes: number
  /** Address of an entry {address u32, bytes i32} by code. */
  readonly entries: number
  /** Entries, that of NULL among them. */
  readonly count: number
  /** Codes of the same owner and column mean the same texts. */
  readonly owner: object
  readonly columnId: number
}

/** Beside the vectors, so that a changed copy of one is not taken for it. */
const coded = new WeakMap<Vector, CodedTexts>()

/** undefined: the vector has nothing but its entries. */
export function codedTexts(vector: Vector): CodedTexts | undefined {
  return coded.get(vector)
}

export function sameTexts(a: CodedTexts, b: Pick<CodedTexts, 'owner' | 'columnId'> | null): boolean {
  return b !== null && a.owner === b.owner && a.columnId === b.columnId
}

/** `entries` gives the address of the rows' entries, and is asked at most once. */
export function codedVector(type: DataType, texts: CodedTexts, entries: () => number): Vector {
  let address = 0
  const vector: Vector = {
    type,
    dictionary: 0,
    get address() {
      if (address === 0) address = entries()
      return address
    },
  }
  coded.set(vector, texts)
  return vector
}

interface Columns {
  texts(columnId: number): CodedTexts | undefined
  column(columnId: number): number
}

/** A column of texts of a piece from a row on; undefined when it is not coded. */
export function codedColumn(piece: Columns, columnId: number, type: DataType, from: number): Vector | undefined {
  if (type.name !== 'VARCHAR' && type.name !== 'STRING') return undefined
  const texts = piece.texts(columnId)
  if (texts === undefined) return undefined
  return codedVector(type, { ...texts, codes: texts.codes + from * 4 }, () => piece.column(columnId) + from * 8)
}
