// Goal: golden SQL files hold: every record of every .slt file below this folder gives the same result with every
// client (the engine with and without generated WebAssembly kernels, /exec of a server and the PostgreSQL protocol),
// apart from records that mean something else to a client, and, in the engine, whether its rows are in memtables, in
// Parquet files, or in both.
//
// By default, as in `npm test`, the engine runs all files, in turn with rows in memtables and in both places; each
// other client runs an eighth of the files. Environment variables change that:
//
//   SLT_COMPLETE=1      writes the results of the first client into the files as expectations: read the diff
//   SLT_FILE=name       runs only files with the name in their path, with these clients: the engine with kernels, and
//                       rows in memtables and in both places; /exec; the PostgreSQL protocol
//   SLT_MODES=all       runs all files with every client, the engine with rows in each of the three places (as .ci/run)
//   SLT_MODES=memory    runs one client, with rows in memtables

import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { repositoryRoot } from '../support/docs/source-tree.js'
import { engineClient, type SltClient, serverClient } from './clients.js'
import { pgClient } from './pg-client.js'
import { difference, type Mode, modes, parseSlt, printSlt, type SltAnswer, type SltRecord } from './slt-file.js'
import { run, withFixtures } from './slt-run.js'

const folder = join(repositoryRoot, 'test/sql')
const complete = process.env['SLT_COMPLETE'] === '1'
const wantedFile = process.env['SLT_FILE'] ?? ''
const files = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.slt') && !name.startsWith('fixtures') && name.includes(wantedFile))
  .sort()

const wantedModes = process.env['SLT_MODES'] ?? ''
/** Each file is run by some clients only. */
const isShare = wantedModes === '' && wantedFile === ''
const clients: SltClient[] = []
/** Each has an eighth of the files, unless all are wanted. */
const servers: SltClient[] = []

beforeAll(async () => {
  clients.push(await engineClient(true))
  if (complete || wantedModes === 'memory') return
  servers.push(await serverClient(), await pgClient())
  if (wantedModes === 'all') clients.push(await engineClient(false), ...servers)
})

afterAll(async () => {
  for (const client of new Set([...clients, ...servers])) await client.close()
})

for (const [index, file] of files.entries()) {
  test(file, async () => {
    const path = join(folder, file)
    if (complete) return rewrite(path)
    const records = withFixtures(parseSlt(readFileSync(path, 'utf8')))
    const failures = new Map<SltRecord, string>()
    // Each client has a database of its own, and mostly waits.
    const server = servers[index % (4 * servers.length)]
    const requested = new Set(isShare ? clients : [...clients, ...servers])
    if (isShare && server !== undefined) requested.add(server)
    await Promise.all([...requested].map((client) => allModes(client, modesOf(client, index), records, failures)))
    const found = records.flatMap((record) => finding(file, record, failures.get(record)))
    expect(found.length, `\n${found.join('\n\n')}\n`).toBe(0)
  })
}

function modesOf(client: SltClient, index: number): readonly Mode[] {
  const all = client.modes ?? modes
  return isShare ? [all[(index >> 1) % all.length] as Mode] : all
}

async function allModes(
  client: SltClient,
  places: readonly Mode[],
  records: readonly SltRecord[],
  failures: Map<SltRecord, string>,
): Promise<void> {
  for (const mode of places) {
    await run(client, mode, records, (record, answer) => {
      const text = difference(record, answer)
      if (text !== null && !failures.has(record)) failures.set(record, `[${client.name}, rows ${mode}]\n${text}`)
    })
  }
}

function finding(file: string, record: SltRecord, failure: string | undefined): string[] {
  const place = `test/sql/${file}:${record.line}`
  if (record.failing) return failure === undefined ? [`${place} passes: take its mark 'failing' off`] : []
  return failure === undefined ? [] : [`${place} ${failure}\n  ${record.sql}`]
}

/** Keeps the expectation of a record marked as failing, and the mark unless the record passes. */
async function rewrite(path: string): Promise<void> {
  const [client] = clients
  if (client === undefined) throw new Error('no client is open')
  const records = parseSlt(readFileSync(path, 'utf8'))
  const found = new Map<SltRecord, SltRecord>()
  await run(client, 'in memory', withFixtures(records), (record, answer) =>
    found.set(record, completed(record, answer)),
  )
  writeFileSync(path, printSlt(records.map((record) => found.get(record) ?? record)))
}

function completed(record: SltRecord, answer: SltAnswer): SltRecord {
  const same = difference(record, answer) === null
  if (record.failing) return same ? { ...record, failing: false } : record
  return same ? record : { ...record, kind: answer.kind, expected: answer.lines }
}
