// A fake of the engine's interface (engine/engine.ts) for tests of gateways, in memory. Lines are kept as text; a line
// with the word `bad` cannot be stored. It executes only these statements:
//
//   rows <n> [<bytes>]      n rows with a number each, in blocks of about this size
//   fail <class>            rejects: sql, timeout, resource, gone, bug
//   late <class>            the same after the first block
//   update <n>, create      statements without rows
//   later <ms>              as create, after this time
//   hang                    does not respond until it is aborted

import {
  AssertionError,
  CancelledError,
  errorRecord,
  ResourceError,
  RowError,
  SqlError,
  TimeoutError,
} from '../../engine/base/errors.js'
import type {
  Engine,
  EngineMetrics,
  ExecuteOptions,
  LineRequest,
  LineTicket,
  Receipt,
  RowsResult,
  StatementResult,
  VirtualRelation,
} from '../../engine/engine.js'
import { noLake } from '../../engine/engine.js'
import { metrics } from '../../engine/memory/metrics.js'
import { dataType } from '../../engine/types/column-types.js'
import { noUsers } from '../../gateways/common/users.js'

export interface FakeEngine extends Engine {
  readonly requests: LineRequest[]
  readonly stored: string[]
  readonly executed: { sql: string; options: ExecuteOptions }[]
  readonly relations: VirtualRelation[]
  /** Bytes of result blocks asked for so far. */
  readonly pulled: { bytes: number }
  readonly returned: { count: number }
  /** While set, requests wait for room until the promise resolves. */
  room: Promise<void> | null
  /** Refuses requests when set. */
  refusal: Error | null
  /** The receipt of the next QWP request has this error. */
  rejectNext: Error | null
  /** What receipts of QWP requests name. */
  tables: NonNullable<Receipt['tables']>
  closed: boolean
}

/** Takes no rows. */
const noRows: ReturnType<Engine['begin']> = {
  rows: 0,
  bytes: 0,
  tables: [],
  join: () => {},
  see: () => {},
  insert: () => 0,
  insertText: () => -1,
  spill: async () => true,
  binds: (_parsed, _session, _bytes, at) => ({ binds: 0, at, described: false, synced: false }),
  add: () => {},
  register: () => {},
  registered: 0,
  spillable: true,
  binaryRows: () => ({ push: () => {}, end: () => 0 }),
  mark: () => ({ taken: 0, entries: 0, rows: 0, loads: 0 }),
  backTo: () => {},
  clear: () => {},
  own: () => [],
  commit: async () => null,
}

export function fakeEngine(): FakeEngine {
  const engine: FakeEngine = {
    users: noUsers,
    lake: noLake,
    backups: { register: () => {}, pin: async () => async () => {} },
    requests: [],
    stored: [],
    executed: [],
    relations: [],
    pulled: { bytes: 0 },
    returned: { count: 0 },
    room: null,
    refusal: null,
    rejectNext: null,
    tables: [],
    closed: false,
    lines: (request) => takeLines(engine, request),
    forgetConnection: () => {},
    execute: async (sql, options) => engine.run(sql, options),
    run: async (sql, options) => {
      engine.executed.push({ sql, options })
      return run(engine, sql, options)
    },
    preview: async () => {
      throw new AssertionError('the fake engine looks at no changes')
    },
    table: () => undefined,
    csv: () => {
      throw new AssertionError('the fake engine decodes no CSV')
    },
    load: () => {
      throw new AssertionError('the fake engine loads no files')
    },
    rows: async () => {
      throw new AssertionError('the fake engine stores no packed rows')
    },
    rejects: () => {},
    parse: () => [],
    begin: () => noRows,
    draft: async () => {
      throw new AssertionError('the fake engine changes no schemas')
    },
    isLarge: () => false,
    commitDraft: async () => {
      throw new AssertionError('the fake engine changes no schemas')
    },
    holdSnapshot: () => ({ snapshotOf: () => undefined, release: () => {} }),
    describe: () => ({ tag: 'SELECT', columns: [], timestampIndex: -1, parameters: [] }),
    validate: () => ({ tag: 'SELECT', queryType: 'SELECT', columns: [], timestampIndex: -1 }),
    copier: () => {},
    relation: (relation) => void engine.relations.push(relation),
    positions: () => [],
    connector: () => {},
    tableExists: () => false,
    tableNames: () => [],
    metrics: () => noMetrics,
    refuseBelow: () => {},
    close: async () => {
      engine.closed = true
    },
  }
  return engine
}

const none = { used: 0, limit: 0 }
const noMetrics: EngineMetrics = {
  counts: Object.fromEntries(Object.keys(metrics).map((name) => [name, 0])) as EngineMetrics['counts'],
  writesRefused: null,
  commitSeconds: { bounds: [1], counts: [0, 0], sum: 0 },
  memory: { ingest: none, memtables: none, cache: none, queries: none, flush: none, lent: none },
  allocations: 0,
  frees: 0,
  cache: { hits: 0, misses: 0, evictions: 0 },
  tables: 0,
  queries: 0,
  readers: 0,
  readerLeaks: 0,
}

function takeLines(engine: FakeEngine, request: LineRequest): LineTicket {
  if (engine.refusal !== null) {
    const refused = Promise.reject(engine.refusal)
    refused.catch(() => {})
    return { taken: refused, receipt: refused }
  }
  // Copied when there is room, as the engine does: the blocks are the caller's again afterwards.
  const taken = (engine.room ?? Promise.resolve()).then(() => {
    engine.requests.push({ ...request, blocks: request.blocks.map((block) => Uint8Array.from(block)) })
  })
  const receipt = taken.then(() =>
    request.format === 'qwp' ? messageReceipt(engine) : store(engine, request, engine.requests.at(-1)?.blocks ?? []),
  )
  return { taken, receipt }
}

function messageReceipt(engine: FakeEngine): Receipt {
  const error = engine.rejectNext === null ? null : errorRecord(engine.rejectNext)
  engine.rejectNext = null
  const rows = error === null ? 1 : 0
  return { requestId: 1, rows, rejects: [], rejected: 0, error, lsn: 1, existed: false, tables: engine.tables }
}

function store(engine: FakeEngine, request: LineRequest, blocks: readonly Uint8Array[]): Receipt {
  const lines = Buffer.concat(blocks).toString('latin1').split('\n')
  const rejects = []
  const good: string[] = []
  for (const [index, line] of lines.entries()) {
    if (line === '') continue
    if (!line.includes('bad')) good.push(line)
    else {
      rejects.push({ line: index + 1, message: 'Could not parse timestamp: bad', table: 'fake' })
      if (!request.skipBadLines) break
    }
  }
  const refused = request.atomic && request.partial !== true && rejects[0] !== undefined
  const error = refused ? errorRecord(new RowError(rejects[0]?.message ?? '', rejects[0]?.line ?? 0)) : null
  if (!refused) engine.stored.push(...good)
  return {
    requestId: 1,
    rows: refused ? 0 : good.length,
    rejects,
    rejected: rejects.length,
    error,
    lsn: 1,
    existed: false,
  }
}

async function run(engine: FakeEngine, sql: string, options: ExecuteOptions): Promise<StatementResult> {
  const [verb = '', first = '', second = ''] = sql.split(' ')
  // It has no tables.
  if (sql.endsWith('from all_tables()')) return rowsResult(engine, 0, 1000, options, null)
  if (options.explain) return { kind: 'plan', lines: ['scan fake'], compilerMs: 0.1 }
  switch (verb) {
    case 'rows':
      return rowsResult(engine, Number(first), Number(second) || 1000, options, null)
    case 'fail':
      throw failure(first)
    case 'late':
      return rowsResult(engine, 1_000_000, 100_000, options, failure(first))
    case 'update':
      return { kind: 'done', tag: 'UPDATE', rows: Number(first), compilerMs: 0.1 }
    case 'create':
      return { kind: 'done', tag: 'CREATE TABLE', rows: 0, compilerMs: 0.1 }
    case 'later':
      await new Promise((resolve) => setTimeout(resolve, Number(first)))
      return { kind: 'done', tag: 'CREATE TABLE', rows: 0, compilerMs: 0.1 }
    case 'hang':
      return new Promise((_resolve, reject) => {
        options.signal?.addEventListener('abort', () => reject(new CancelledError()))
      })
    default:
      throw SqlError.tableMissing(verb, 0)
  }
}

function failure(kind: string): Error {
  if (kind === 'timeout') return new TimeoutError(50)
  if (kind === 'resource') return new ResourceError('no memory now')
  if (kind === 'gone') return Object.assign(new Error('write EPIPE'), { code: 'EPIPE' })
  return kind === 'bug' ? new AssertionError('a bug') : new SqlError('unexpected token', 7)
}

function rowsResult(
  engine: FakeEngine,
  rowCount: number,
  blockBytes: number,
  options: ExecuteOptions,
  lateFailure: Error | null,
): RowsResult {
  const last = Math.min(rowCount, options.skip + options.rowsMax)
  let settle: (summary: { rows: number; cut: boolean }) => void = () => {}
  const summary = new Promise<{ rows: number; cut: boolean }>((resolve) => {
    settle = resolve
  })
  // One buffer for all blocks: a reader that keeps a view reads what came later.
  const shared = Buffer.alloc(blockBytes + 100)
  async function* blocks(): AsyncGenerator<Uint8Array> {
    try {
      let at = 0
      for (let row = options.skip; row < last && options.encoding.kind !== 'count'; row++) {
        at += shared.write(`${row === options.skip ? '' : ','}[${row}]`, at, 'latin1')
        if (at < blockBytes && row + 1 < last) continue
        engine.pulled.bytes += at
        yield shared.subarray(0, at)
        shared.fill(0x21)
        at = 0
        if (lateFailure !== null) throw lateFailure
      }
      settle({ rows: options.countAll ? rowCount : Math.max(0, last - options.skip), cut: last < rowCount })
    } finally {
      engine.returned.count++
    }
  }
  return {
    kind: 'rows',
    columns: [
      { name: 'x', type: dataType('LONG') },
      { name: 'a', type: dataType('ARRAY', 2) },
    ],
    timestampIndex: -1,
    blocks: blocks(),
    values: (async function* () {})(),
    packed: (async function* () {})(),
    summary,
    rowsCertain: () => 0,
    ready: null,
    compilerMs: 0.25,
    cached: false,
  }
}
