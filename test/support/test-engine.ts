// Starts an engine with its threads in a directory of the test, with settings that make it fast and silent, and
// provides default options for statements of a test.

import { internalSession } from '../../engine/api/session.js'
import { systemClock } from '../../engine/base/clock.js'
import { type Engine, type EngineOptions, type ExecuteOptions, openEngine } from '../../engine/engine.js'

/** What does not depend on the test: nothing is synced, nothing is told. */
const plain: Omit<EngineOptions, 'directory'> = {
  memoryBytes: 512 * 1024 * 1024,
  queryThreads: 1,
  commitMode: 'nosync',
  syncIntervalMs: 100,
  walBytesMax: 128 * 1024 * 1024,
  writer: {},
  jit: true,
  log: () => {},
  clock: systemClock,
  parameters: () => [],
  configuredUsers: [],
  fatal: (error) => {
    throw error
  },
}

export function openTestEngine(directory: string, options: Partial<EngineOptions> = {}): Promise<Engine> {
  return openEngine({ ...plain, ...options, directory })
}

/** All rows as values, of a user who may do everything. */
export const executeOptions: ExecuteOptions = {
  session: internalSession('admin'),
  encoding: { kind: 'values' },
  parameters: [],
  skip: 0,
  rowsMax: Number.POSITIVE_INFINITY,
  countAll: false,
  columns: null,
  timeoutMs: 0,
  signal: null,
  explain: false,
}

/** All rows of a query; none of other statements. */
export async function rowsFrom(engine: Engine, sql: string, options: Partial<ExecuteOptions> = {}): Promise<unknown[]> {
  const result = await engine.execute(sql, { ...executeOptions, ...options })
  const rows: unknown[] = []
  if (result.kind === 'rows') for await (const some of result.values) rows.push(...some)
  return rows
}
