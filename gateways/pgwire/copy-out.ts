// COPY .. TO STDOUT: the engine encodes rows as CopyData messages; the binary form has a header and a trailer.

import type { ParsedStatement } from '../../engine/engine.js'
import type { PgSession } from './context.js'
import { copyOptions } from './copy-options.js'
import { copyData, copyDone, copyResponse } from './messages.js'
import { timeoutOf } from './run.js'
import { PgError } from './sqlstate.js'

type Copy = Extract<ParsedStatement['statement'], { kind: 'copy' }>

const binaryHeader = Buffer.concat([Buffer.from('PGCOPY\n\xff\r\n\0', 'latin1'), Buffer.alloc(8)])
const binaryTrailer = Buffer.from([0xff, 0xff])

/** The tag. */
export async function copyOut(pg: PgSession, parsed: ParsedStatement, statement: Copy): Promise<string> {
  const { format, delimiter, nullText, header } = copyOptions(statement)
  const query = queryOf(pg, parsed, statement)
  const controller = new AbortController()
  pg.running = controller
  const result = await pg.engine.execute(query.text, {
    session: pg.session,
    parsed: query,
    encoding: { kind: 'pgCopy', format, delimiter, nullText, header },
    ...{ parameters: [], skip: 0, rowsMax: Number.POSITIVE_INFINITY, countAll: false, columns: null },
    ...{ timeoutMs: timeoutOf(pg), signal: controller.signal, explain: false },
  })
  if (result.kind !== 'rows') throw new PgError('42601', 'COPY takes a query')
  result.summary.catch(() => {})
  pg.counters.queries.select++
  const binary = format === 'binary'
  pg.out.put(copyResponse('out', binary, result.columns.length))
  if (binary) pg.out.put(copyData(binaryHeader))
  for await (const block of result.blocks) await pg.out.block(block)
  if (binary) pg.out.put(copyData(binaryTrailer))
  pg.out.put(copyDone)
  return `COPY ${(await result.summary).rows}`
}

function queryOf(pg: PgSession, parsed: ParsedStatement, { source, columns }: Copy): ParsedStatement {
  if (source.kind === 'query') return { ...parsed, statement: source }
  if (source.kind !== 'table') throw new PgError('42601', 'COPY TO needs a table or a query', source.position)
  const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`
  const { schema, name, position } = source.table
  if (schema === null && pg.engine.table(name) === undefined && !pg.engine.tableExists(name)) {
    throw new PgError('42P01', `table does not exist [table=${name}]`, position)
  }
  const list = columns.length === 0 ? '*' : columns.map((column) => quoted(column.name)).join(', ')
  const table = schema === null ? quoted(name) : `${quoted(schema)}.${quoted(name)}`
  const [query] = pg.engine.parse(`select ${list} from ${table}`)
  if (query === undefined) throw new PgError('XX000', 'the query of COPY is empty')
  return query
}
