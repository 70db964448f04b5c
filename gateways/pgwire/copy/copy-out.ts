// Runs COPY .. TO STDOUT: the engine encodes rows as CopyData messages; this module adds header and trailer of the
// binary format.

import { whenReady } from '../../../engine/base/errors.js'
import type { ParsedStatement } from '../../../engine/engine.js'
import { LazySignal } from '../../common/lazy-signal.js'
import type { PgSession } from '../context.js'
import { copyData, copyDone, copyResponse } from '../protocol/messages.js'
import { PgError } from '../protocol/sqlstate.js'
import { timeoutOf } from '../transaction/run-engine.js'
import { takeSnapshot } from '../transaction/snapshots.js'
import { chosenColumns, copyOptions } from './copy-options.js'

type Copy = Extract<ParsedStatement['statement'], { kind: 'copy' }>

const binaryHeader = Buffer.concat([Buffer.from('PGCOPY\n\xff\r\n\0', 'latin1'), Buffer.alloc(8)])
const binaryTrailer = Buffer.from([0xff, 0xff])

/** Returns the command tag. */
export async function copyOut(pg: PgSession, parsed: ParsedStatement, statement: Copy): Promise<string> {
  const options = copyOptions(statement, pg.out.encoding)
  const { format, delimiter, nullText, header, quote, encoding } = options
  if (encoding?.write === null) throw new PgError('0A000', `COPY TO cannot write encoding "${encoding.name}"`)
  const query = queryOf(pg, parsed, statement)
  if (options.forceQuote.names.length > 0) {
    const described = await whenReady((planning) => pg.engine.describe(query, { ...pg.session, planning }, []))
    chosenColumns(options.forceQuote, described.columns ?? [])
  }
  const running = new LazySignal()
  pg.running = running
  takeSnapshot(pg)
  const result = await pg.engine.execute(query.text, {
    session: pg.session,
    parsed: query,
    encoding: {
      ...{ kind: 'pgCopy', format, delimiter, nullText, header, quote, quoteEscape: options.quoteEscape },
      force: { all: options.forceQuote.all, names: options.forceQuote.names },
    },
    ...{ parameters: [], skip: 0, rowsMax: Number.POSITIVE_INFINITY, countAll: false, columns: null },
    ...{ timeoutMs: timeoutOf(pg), signal: running, explain: false },
  })
  if (result.kind !== 'rows') throw new PgError('42601', 'COPY TO needs a query')
  result.summary.catch(() => {})
  pg.counters.queries.select++
  const binary = format === 'binary'
  const write = encoding?.write ?? null
  pg.out.put(copyResponse('out', binary, result.columns.length))
  let prefix = binary ? binaryHeader : null
  for await (const block of result.blocks) {
    const sent = prefix === null ? 0 : putFirstRow(pg, prefix, block)
    prefix = null
    const messages = block.subarray(sent)
    await pg.out.block(write === null || binary ? messages : recoded(messages, write))
  }
  if (binary) pg.out.put(copyData(prefix === null ? binaryTrailer : Buffer.concat([prefix, binaryTrailer])))
  pg.out.put(copyDone)
  return `COPY ${(await result.summary).rows}`
}

/**
 * Sends the header in the same message as the first row, where drivers expect it. Returns how much of the block it
 * consumed.
 */
function putFirstRow({ out }: PgSession, header: Buffer, block: Uint8Array): number {
  const bytes = 1 + new DataView(block.buffer, block.byteOffset, block.byteLength).getInt32(1)
  out.put(copyData(Buffer.concat([header, block.subarray(5, bytes)])))
  return bytes
}

/** Converts the rows within CopyData messages to another encoding. */
function recoded(block: Uint8Array, write: (utf8: Uint8Array) => Buffer): Buffer {
  const view = new DataView(block.buffer, block.byteOffset, block.byteLength)
  const messages: Buffer[] = []
  for (let at = 0; at < block.length; ) {
    const end = at + 1 + view.getInt32(at + 1)
    messages.push(copyData(write(block.subarray(at + 5, end))))
    at = end
  }
  return Buffer.concat(messages)
}

/** A view is not a table, but it exists. */
function isMissing({ engine, session }: PgSession, name: string): boolean {
  return engine.table(name, session) === undefined && !engine.tableExists(name, session)
}

function queryOf(pg: PgSession, parsed: ParsedStatement, { source, columns }: Copy): ParsedStatement {
  if (source.kind === 'query') return { ...parsed, statement: source }
  if (source.kind !== 'table') throw new PgError('42601', 'COPY TO needs a table or a query', source.position)
  const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`
  const { schema, name, position } = source.table
  if (schema === null && isMissing(pg, name)) {
    throw new PgError('42P01', `table does not exist [table=${name}]`, position)
  }
  const list = columns.length === 0 ? '*' : columns.map((column) => quoted(column.name)).join(', ')
  const table = schema === null ? quoted(name) : `${quoted(schema)}.${quoted(name)}`
  const [query] = pg.engine.parse(`select ${list} from ${table}`)
  if (query === undefined) throw new PgError('XX000', 'the query of COPY is empty')
  return query
}
