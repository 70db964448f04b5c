// The clients through which golden SQL files (slt-file.ts) are run: the engine in this process (its threads come from
// the build), and /exec of a server process. Both return results in the format of slt-file.ts. pg-client.ts has the
// client for the PostgreSQL protocol.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { SqlError } from '../../engine/base/errors.js'
import { allRights } from '../../engine/base/rights.js'
import type { Engine, ExecuteOptions, RowsResult } from '../../engine/engine.js'
import { nativeDialect } from '../../engine/sql/dialect.js'
import { typeText } from '../../engine/types/column-types.js'
import { copyRelations } from '../../pipeline/ingest.js'
import { repositoryRoot } from '../support/docs/source-tree.js'
import { type ExecBody, TestServer } from '../support/server.js'
import { executeOptions, openTestEngine } from '../support/test-engine.js'
import { cellsOfRows } from './json-rows.js'
import { cellText, type Mode, modes, plainText, type SltAnswer, type SltRecord } from './slt-file.js'

/** Files that golden files read. */
export const importFiles = join(repositoryRoot, 'test/sql/files')

export interface SltClient {
  readonly name: string
  /** `header`: names and types that are expected, for clients that get no types. */
  run(sql: string, header?: string): Promise<SltAnswer>
  /** Statements that mean something else with this client. */
  skips?(record: SltRecord): boolean
  /** In which modes `restart` records are followed: recovery is slow, and one client covers the kernels of another. */
  readonly restartsIn: readonly Mode[]
  /** Where rows lie when this client runs; all of them, where nothing is said. */
  readonly modes?: readonly Mode[]
  restart(): Promise<void>
  close(): Promise<void>
}

const options: ExecuteOptions = {
  ...executeOptions,
  session: { user: 'admin', protocol: 'http', dialect: nativeDialect, readOnly: false, rights: allRights },
  encoding: { kind: 'json', quoteLargeNumbers: false, geohashAsText: true },
}

/** Where rows lie for the engine's own clients: `all`, `memory`, else the two that differ most. */
const places = ((given = process.env['SLT_MODES']): readonly Mode[] =>
  given === 'all' ? modes : given === 'memory' ? ['in memory'] : ['in memory', 'in both'])()

export interface EngineClient extends SltClient {
  /** The rows as JSON texts, commas between them. Throws what the engine throws. */
  rows(sql: string): Promise<string>
}

export async function engineClient(
  jit: boolean,
  viewRewrite: 'on' | 'off' | 'exact' = 'on',
  viewRead: 'fresh' | 'stored' = 'fresh',
): Promise<EngineClient> {
  const directory = mkdtempSync(join(tmpdir(), 'penstock-slt-'))
  let failure: Error | null = null
  const open = async (): Promise<Engine> => {
    const opened = await openTestEngine(join(directory, 'db'), {
      queryThreads: 2,
      jit,
      viewRewrite,
      viewRead,
      fatal: (error) => {
        failure = error
      },
    })
    const directories = { importRoot: importFiles, exportRoot: join(directory, 'export'), spool: directory }
    for (const relation of copyRelations(directories)) opened.relation(relation)
    return opened
  }
  let engine: Engine = await open()
  const idle = held(engine)
  return {
    name: `engine, jit ${jit ? 'on' : 'off'}`,
    run: async (sql) => {
      if (failure !== null) throw failure
      return executed(engine, sql)
    },
    rows: async (sql) => {
      if (failure !== null) throw failure
      const result = await engine.execute(sql, options)
      return result.kind === 'rows' ? blocksText(result) : ''
    },
    restartsIn: jit ? ['in memory', 'in parts'] : [],
    modes: places,
    restart: async () => {
      await expectHeld(engine, idle)
      await engine.close()
      engine = await open()
    },
    close: async () => {
      await expectHeld(engine, idle)
      await engine.close()
      rmSync(directory, { recursive: true, force: true })
    },
  }
}

/** Bytes of the budget of queries. */
function held(engine: Engine): number {
  return engine.metrics().memory.queries.used
}

/** Queries give back all they took, those of other threads a moment after their answers. */
async function expectHeld(engine: Engine, bytes: number): Promise<void> {
  for (let tries = 0; tries < 200 && held(engine) !== bytes; tries++) await setTimeout(10)
  if (held(engine) !== bytes) throw new Error(`${held(engine) - bytes} bytes of memory were not given back by queries`)
}

async function executed(engine: Engine, sql: string): Promise<SltAnswer> {
  try {
    const result = await engine.execute(sql, options)
    if (result.kind === 'rows') return { kind: 'query', lines: await rowLines(result) }
    return { kind: 'ok', lines: result.kind === 'plan' ? result.lines : [] }
  } catch (error) {
    const position = error instanceof SqlError ? error.position : 0
    return { kind: 'error', lines: errorLines(position, error instanceof Error ? error.message : String(error)) }
  }
}

async function rowLines(result: RowsResult): Promise<string[]> {
  const text = await blocksText(result)
  const header = result.columns.map(({ name, type }) => plainText(`${name}:${typeText(type)}`))
  return [header.join(' | '), ...linesOfRows(text)]
}

async function blocksText(result: RowsResult): Promise<string> {
  result.summary.catch(() => {})
  const parts: Buffer[] = []
  for await (const block of result.blocks) parts.push(Buffer.from(block))
  return Buffer.concat(parts).toString()
}

function linesOfRows(json: string): string[] {
  return cellsOfRows(json).map((row) => row.map(cellText).join(' | '))
}

/** A message of several lines stays one line of the file. */
export function errorLines(position: number, message: string): string[] {
  return [`${position}: ${message.replaceAll('\n', '\\n')}`]
}

export async function serverClient(): Promise<SltClient> {
  const server = new TestServer([
    'memory.bytes=512m',
    'wal.commit.mode=nosync',
    'http.json.query.max.response.rows=1000000',
    'telemetry.enabled=false',
    `copy.import.root=${importFiles}`,
  ])
  await server.start()
  return {
    name: 'http',
    run: async (sql) => {
      const { status, text, body } = await server.exec(sql)
      if (status !== 200) return { kind: 'error', lines: errorLines(body.position ?? 0, body.error ?? '') }
      if (body.columns === undefined) return { kind: 'ok', lines: [] }
      const head = /"timestamp":-?\d+,"dataset":\[/.exec(text)
      const begin = head === null ? 0 : head.index + head[0].length
      const rows = text.slice(begin, text.lastIndexOf('],"count":'))
      return { kind: 'query', lines: [headerOf(body), ...linesOfRows(rows)] }
    },
    // Where rows lie is the engine's business, which its own clients try.
    modes: ['in both'],
    restartsIn: ['in both'],
    restart: () => server.restart(),
    close: () => server.remove(),
  }
}

function headerOf({ columns = [] }: ExecBody): string {
  return columns.map(columnText).join(' | ')
}

function columnText(column: { readonly name: string; readonly type: string; readonly dim?: number }): string {
  const type = column.type === 'ARRAY' ? `DOUBLE${'[]'.repeat(column.dim ?? 1)}` : column.type
  return plainText(`${column.name}:${type}`)
}
