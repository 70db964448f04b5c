// Reads the columns, the number of rows and the first rows of a Parquet file that a client has uploaded, for the
// preview of an import.

import { typeText } from '../engine/types/column-types.js'
import {
  ofFile,
  type ParquetFile,
  type ParquetImport,
  parquetColumns,
  parquetSource,
  reading,
  wholeResult,
} from './parquet-rows.js'

const encoding = { kind: 'json', quoteLargeNumbers: true, geohashAsText: true } as const

/** A JSON object: columns, rowCount and, as arrays of values, the first rows in `dataset`. */
export async function previewParquet(request: ParquetImport, file: ParquetFile, rowsMax: number): Promise<string> {
  const { engine, session, signal } = request
  const from = parquetSource(file)
  const columns = parquetColumns(request, file)
  const rowsOf = async (sql: string): Promise<string> => {
    const options = { ...wholeResult, session: reading(session), signal, timeoutMs: 0, encoding, rowsMax }
    const result = await engine.execute(sql, options)
    if (result.kind !== 'rows') return ''
    const blocks: Buffer[] = []
    for await (const block of result.blocks) blocks.push(Buffer.from(block))
    await result.summary
    return Buffer.concat(blocks).toString()
  }
  try {
    const count = await rowsOf(`select count() from ${from}`)
    const dataset = await rowsOf(`select * from ${from}`)
    const described = columns.map(({ name, type }) => ({ name, type: typeText(type) }))
    const rowCount = Number(/\d+/.exec(count)?.[0] ?? 0)
    return `{"status":"OK","columns":${JSON.stringify(described)},"rowCount":${rowCount},"dataset":[${dataset}]}`
  } catch (error) {
    throw ofFile(error, file)
  }
}
