// The only importer of hyparquet: it reads the footer, the pages of every encoding and the levels of NULL. Codecs are ours
// (parquet-codecs.ts), and so are the forms of values (parquet-text.ts).

import { asyncBufferFromFile, type Compressors, parquetMetadataAsync, parquetRead } from 'hyparquet'
import type { ParquetCodecs } from './parquet-codecs.js'
import { type ParquetElement, timeParsers } from './parquet-text.js'

export interface OpenParquet {
  /** The root first. */
  readonly schema: readonly ParquetElement[]
  readonly groupRows: readonly number[]
  rows(from: number, to: number): Promise<readonly (readonly unknown[])[]>
}

export async function openParquet(path: string, codecs: ParquetCodecs): Promise<OpenParquet> {
  const file = await asyncBufferFromFile(path)
  const metadata = await parquetMetadataAsync(file)
  const shared = { file, metadata, compressors: codecs as Compressors, parsers: timeParsers, geoparquet: false }
  return {
    schema: metadata.schema as readonly ParquetElement[],
    groupRows: metadata.row_groups.map(({ num_rows: rows }) => Number(rows)),
    rows: async (rowStart, rowEnd) => {
      let found: readonly (readonly unknown[])[] = []
      await parquetRead({
        ...{ ...shared, rowStart, rowEnd },
        rowFormat: 'array',
        onComplete: (rows) => {
          found = rows
        },
      })
      return found
    },
  }
}
