// Tells whether a column of integers in a Parquet file may contain the smallest value of its type, which represents
// NULL in INT and LONG. The answer comes from the statistics in the file's footer, so no page is read. Without
// statistics, or in a file of very many column chunks, it is yes.

import { foreignColumns, leafCount } from './columns.js'
import { chunkOf, readGroups, readSchema } from './footer.js'
import type { ForeignFile, ForeignSource } from './foreign-file.js'
import { openForeign } from './read-columns.js'

/** The statistics of more column chunks are not decoded. */
const chunksMax = 1000

/** Throws SqlError. */
export function mayHoldSmallest(source: ForeignSource): boolean {
  const file = openForeign(source)
  try {
    return mayHold(file)
  } finally {
    file.close()
  }
}

function mayHold(file: ForeignFile): boolean {
  const { elements } = readSchema(file)
  const { columns } = foreignColumns(file, elements, false)
  const wanted = columns.filter(({ form, type }) => form === 'same' && (type.name === 'INT' || type.name === 'LONG'))
  if (wanted.length === 0) return false
  const { groups, dataEnd } = readGroups(file, leafCount(elements), new Set(wanted.map(({ leaf }) => leaf)))
  if (groups.length * wanted.length > chunksMax) return true
  return groups.some((found, group) =>
    wanted.some(({ name, type, leaf }) => {
      const { least } = chunkOf(file, found, leaf, dataEnd, { column: name, group })
      // A damaged file may give another type to the chunk than to the column. Whoever reads the pages refuses it.
      if (least === null || least.length !== (type.name === 'INT' ? 4 : 8)) return true
      return type.name === 'INT' ? least.readInt32LE(0) === -(2 ** 31) : least.readBigInt64LE(0) === -(2n ** 63n)
    }),
  )
}
