// Reads columns of a Parquet file that lists deleted rows of an Iceberg table: all rows of the file, batch by batch.

import { budgets } from '../../memory/budgets.js'
import { ColumnReader, type ColumnTools } from '../../parquet/column-reader.js'
import { leafCount } from '../../parquet/columns.js'
import { chunkOf, readGroups, readSchema } from '../../parquet/footer.js'
import type { ForeignColumn } from '../../parquet/foreign-column.js'
import type { ForeignFile } from '../../parquet/foreign-file.js'
import { Scratch } from '../../storage/part/part-scratch.js'
import { arenaAllocator } from '../batch/arena-allocator.js'
import type { ExecContext } from '../batch/context.js'

type Elements = ReturnType<typeof readSchema>['elements']

/** `take` gets the addresses of the columns' values, which are valid during the call. Throws SqlError. */
export function readRows(
  context: ExecContext,
  file: ForeignFile,
  columnsOf: (elements: Elements) => readonly ForeignColumn[],
  take: (addresses: readonly number[], rows: number) => void,
): void {
  const { memory, kernels, arena } = context
  const { elements } = readSchema(file)
  const columns = columnsOf(elements)
  const { groups, dataEnd } = readGroups(file, leafCount(elements), new Set(columns.map(({ leaf }) => leaf)))
  const allocator = arenaAllocator(arena)
  const shared = new Scratch(memory, allocator, budgets.queries)
  const tools: ColumnTools = { memory, allocator, file, shared, parquet: kernels.parquet, foreign: kernels.foreign }
  const readers = columns.map((column) => new ColumnReader(tools, column))
  try {
    for (const [group, { rows, chunks, offset }] of groups.entries()) {
      for (const reader of readers) {
        const { name, leaf } = reader.column
        const place = { column: name, group }
        reader.open([chunkOf(file, { rows, chunks, offset }, leaf, dataEnd, place)], rows, place)
      }
      for (let left = rows; left > 0; ) left -= takeSome(context, readers, left, take)
    }
  } finally {
    for (const reader of readers) reader.release()
    shared.release()
  }
}

/** Returns how many rows it has taken. */
function takeSome(
  { alive }: ExecContext,
  readers: readonly ColumnReader[],
  left: number,
  take: (addresses: readonly number[], rows: number) => void,
): number {
  alive()
  for (const reader of readers) while (reader.ready === 0) reader.load()
  const rows = readers.reduce((least, { ready }) => Math.min(least, ready), left)
  take(
    readers.map((reader) => reader.take(rows)),
    rows,
  )
  return rows
}
