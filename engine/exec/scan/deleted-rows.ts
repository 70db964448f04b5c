// DeletedRows: the positions of rows that an Iceberg table has deleted from one of its data files. Iceberg stores them
// in two forms: Parquet files with the columns file_path and pos, each for many data files, and deletion vectors (a
// bitmap for one data file). Rows that are deleted by their values have no positions: see equality-deletes.ts.

import type { SharedMemory } from '../../memory/shared-memory.js'
import { supportedColumns } from '../../parquet/columns.js'
import { decodeDeletionVector } from '../../parquet/deletion-vector.js'
import type { ForeignColumn } from '../../parquet/foreign-column.js'
import { type DeleteSource, type ForeignFile, foreignError, type TableData } from '../../parquet/foreign-file.js'
import { openForeign } from '../../parquet/read-columns.js'
import type { ExecContext } from '../batch/context.js'
import { textAt } from '../batch/text-at.js'
import { readRows } from './read-rows.js'

/** Field ids that the specification reserves. */
const ids = { path: 2_147_483_546, position: 2_147_483_545 } as const
const vectorBytesMax = 256 * 1024 * 1024

export class DeletedRows {
  readonly #context: ExecContext
  /** Positions by data file, of each file of positions that was read. */
  readonly #read = new Map<string, ReadonlyMap<string, readonly number[]>>()

  constructor(context: ExecContext) {
    this.#context = context
  }

  /** In ascending order, with repetitions, without those that equality deletes delete. Throws SqlError. */
  of({ uri, positions: deletes }: TableData): Float64Array {
    const [only] = deletes
    if (only?.vector != null) return vectorOf(only, only.vector)
    const lists = deletes.map((source) => this.#positionsIn(source).get(uri) ?? [])
    return Float64Array.from(lists.flat()).sort()
  }

  #positionsIn(source: DeleteSource): ReadonlyMap<string, readonly number[]> {
    const known = this.#read.get(source.path)
    if (known !== undefined) return known
    const file = openForeign(source)
    try {
      const positions = readPositions(this.#context, file)
      this.#read.set(source.path, positions)
      return positions
    } finally {
      file.close()
    }
  }
}

function vectorOf(source: DeleteSource, { offset, bytes }: NonNullable<DeleteSource['vector']>): Float64Array {
  const file = openForeign(source)
  try {
    const isInside = offset >= 0 && bytes >= 0 && bytes <= vectorBytesMax && offset + bytes <= file.size
    if (!isInside) throw foreignError(source, 'a deletion vector is not inside the file', { offset })
    const blob = new Uint8Array(bytes)
    file.read(blob, offset)
    return decodeDeletionVector(blob)
  } catch (error) {
    if (!(error instanceof RangeError) && (error as Error).name !== 'Error') throw error
    const reason = error instanceof Error ? error.message : ''
    throw foreignError(source, `a deletion vector is damaged: ${reason}`, { offset })
  } finally {
    file.close()
  }
}

function readPositions(context: ExecContext, file: ForeignFile): Map<string, number[]> {
  const { memory } = context
  const found = new Map<string, number[]>()
  const columnsOf = (elements: Parameters<typeof supportedColumns>[1]): ForeignColumn[] => {
    const columns = supportedColumns(file, elements)
    return [
      columnOf(file, columns, ids.path, 'file_path', 'VARCHAR'),
      columnOf(file, columns, ids.position, 'pos', 'LONG'),
    ]
  }
  readRows(context, file, columnsOf, ([paths = 0, positions = 0], rows) =>
    collect(memory, paths >>> 2, positions >>> 3, rows, found),
  )
  return found
}

function collect(memory: SharedMemory, text: number, number: number, rows: number, found: Map<string, number[]>): void {
  // Neighbours usually have the same text, even the same entry of a dictionary.
  let [address, bytes] = [-1, -1]
  let list: number[] = []
  for (let row = 0; row < rows; row++) {
    const [at, length] = [memory.u32[text + row * 2]!, memory.i32[text + row * 2 + 1]!]
    if (at !== address || length !== bytes) {
      const name = length < 0 ? '' : textAt(memory, at, length)
      list = found.get(name) ?? []
      found.set(name, list)
      address = at
      bytes = length
    }
    list.push(Number(memory.i64[number + row]))
  }
}

function columnOf(
  file: ForeignFile,
  columns: readonly ForeignColumn[],
  id: number,
  name: string,
  type: string,
): ForeignColumn {
  const found = columns.find(({ fieldId }) => fieldId === id) ?? columns.find((column) => column.name === name)
  if (found?.type.name !== type) throw file.error('a file of deletes lacks a column', { column: name })
  return found
}
