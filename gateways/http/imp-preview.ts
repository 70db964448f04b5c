// Handles POST /imp?preview=100: the columns and the first rows of a Parquet file, sent as the part `data` of a multipart
// body. Nothing is stored.
//
//   {"status":"OK","columns":[{"name":"ts","type":"TIMESTAMP"}],"rowCount":5,"dataset":[["2026-03-02T00:00:00.000000Z"]]}

import type { Readable } from 'node:stream'
import {
  expandedFile,
  expandingStages,
  ImportError,
  lookForParquet,
  previewParquet,
  readMultipart,
} from '../../pipeline/ingest.js'
import { importing } from './access.js'
import type { Exchange, HttpContext } from './context.js'
import { parseQueryString } from './query-string.js'

const rowsMax = 1000

/** The number of rows that are asked for; null: the request is no preview. */
export function previewRows(queryString: string): number | null {
  const text = parseQueryString(queryString).parameters.get('preview')
  if (text === undefined) return null
  const rows = /^\d{1,4}$/.test(text) ? Number(text) : 0
  if (rows < 1 || rows > rowsMax)
    throw new ImportError(`invalid preview, expected 1 to ${rowsMax} rows [value=${text}]`)
  return rows
}

export async function previewBody(
  context: HttpContext,
  { request, session: own }: Exchange,
  { rows, signal }: { readonly rows: number; readonly signal: AbortSignal },
): Promise<string> {
  const { engine, options } = context
  let preview: string | null = null
  const onFile = async (_part: string, filename: string | undefined, stream: Readable): Promise<void> => {
    if (preview !== null) throw new ImportError('a preview is of one file')
    const title = filename ?? 'data'
    const { isParquet, whole } = await lookForParquet(expandedFile(stream, options.importExpandedBytesMax))
    if (!isParquet) throw new ImportError(`not a Parquet file: only these have a preview [file=${title}]`)
    const file = await context.uploads.receive(whole, title)
    try {
      preview = await previewParquet({ engine, session: importing(own), signal }, file, rows)
    } finally {
      await context.uploads.remove(file)
    }
  }
  await readMultipart(
    request,
    request.headers,
    {
      isFile: (part) => part === 'data',
      onField: (part) => {
        throw new ImportError(`a preview needs the part data only [part=${part}]`)
      },
      onFile,
    },
    signal,
    expandingStages(request.headers['content-encoding'], options.importExpandedBytesMax),
  )
  if (preview === null) throw new ImportError('the body has no part data')
  return preview
}
