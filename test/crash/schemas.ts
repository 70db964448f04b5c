// `node dist/test/crash/schemas.js [--kills n] [--seed n]`: a client writes batches like Telegraf's PostgreSQL output:
// each is a transaction with savepoints that creates tables and columns before it copies rows into them. The server is
// killed with SIGKILL before it gets a statement or shortly afterwards, also at COMMIT.
//
// After each kill the batch is stored entirely, with its tables and columns, or not at all. It must be stored if COMMIT
// was answered, and must not be if COMMIT was not sent. Missing batches are sent again, as Telegraf does. At the end
// each row is stored once.

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import pg from 'pg'
// @ts-expect-error it has no types
import { from as copyFrom } from 'pg-copy-streams'
import { randomNumbers } from '../bench/line-template.js'

const { values } = parseArgs({
  options: {
    kills: { type: 'string', default: '10' },
    seed: { type: 'string', default: String(Date.now() % 1e9) },
    port: { type: 'string', default: '17100' },
  },
})
const port = Number(values.port)
const kills = Number(values.kills)
const random = randomNumbers(Number(values.seed))
const below = (limit: number): number => Math.floor(random() * limit)

let running: ChildProcess | undefined
process.on('exit', () => running?.kill('SIGKILL'))

async function startServer(root: string): Promise<ChildProcess> {
  const command = new URL('../../deploy/cli.js', import.meta.url).pathname
  const sets = [
    'http.enabled=false',
    'http.min.enabled=false',
    'line.tcp.enabled=false',
    `pg.net.bind.to=127.0.0.1:${port}`,
  ]
  const child = spawn(process.execPath, [command, 'start', '-d', root, ...sets.flatMap((set) => ['--set', set])], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  running = child
  return child
}

async function connect(server: ChildProcess): Promise<pg.Client> {
  for (let attempt = 0; attempt < 3000; attempt++) {
    if (server.exitCode !== null) throw new Error(`the server ended with code ${server.exitCode}`)
    const client = new pg.Client({ host: '127.0.0.1', port, user: 'admin', password: 'quest', database: 'qdb' })
    client.on('error', () => {})
    try {
      await client.connect()
      return client
    } catch {
      await sleep(20)
    }
  }
  throw new Error('the server does not answer')
}

interface Batch {
  readonly number: number
  readonly rows: number
}

type Step = (client: pg.Client) => Promise<unknown>

/** Each batch has a column of its own, every third a table of its own. */
function stepsOf({ number, rows }: Batch): readonly Step[] {
  const sql =
    (text: string): Step =>
    (client) =>
      client.query(text)
  const lines = Array.from(
    { length: rows },
    (_, row) => `2024-01-01 00:00:00.${String(number).padStart(6, '0')}\t${number}\t${row}`,
  )
  const copy =
    (table: string, column: string): Step =>
    (client) =>
      pipeline(
        [Buffer.from(lines.map((line) => `${line}\t${number}\n`).join(''))],
        client.query(copyFrom(`copy ${table} ("time", batch, row, ${column}) from stdin`)),
      )
  const columns = 'select column_name, data_type from information_schema.columns where table_name = '
  const own = `metric_${number}`
  const table = [
    sql('savepoint sp_1'),
    sql(`${columns}'${own}'`),
    sql(`create table ${own} ("time" timestamp, batch bigint, row bigint, v double precision)`),
    sql('release savepoint sp_1'),
    copy(own, 'v'),
  ]
  return [
    sql('begin'),
    sql('savepoint sp_0'),
    sql('select pg_advisory_xact_lock(5705450890675909945)'),
    sql(`${columns}'metric'`),
    sql(`alter table metric add column if not exists "f${number}" double precision`),
    sql(`comment on column metric."f${number}" is 'field'`),
    sql('release savepoint sp_0'),
    copy('metric', `"f${number}"`),
    ...(number % 3 === 0 ? table : []),
    sql('commit'),
  ]
}

/** Whether the batch is there. Throws when it is there in part. */
async function isThere(client: pg.Client, { number, rows }: Batch): Promise<boolean> {
  const found = async (text: string): Promise<number> => Number((await client.query(text)).rows[0].n)
  const counts = [await found(`select count(*) n from metric where batch = ${number}`)]
  const columns = await found(
    `select count(*) n from information_schema.columns where table_name = 'metric' and column_name = 'f${number}'`,
  )
  if (columns > 0) counts.push(await found(`select count("f${number}") n from metric`))
  const tables = await found(`select count(*) n from information_schema.tables where table_name = 'metric_${number}'`)
  if (tables > 0) counts.push(await found(`select count(*) n from metric_${number}`))
  const isWhole = counts.every((count) => count === rows) && columns === 1 && tables === (number % 3 === 0 ? 1 : 0)
  const isAbsent = counts.every((count) => count === 0) && columns + tables === 0
  if (isWhole || isAbsent) return isWhole
  throw new Error(`batch ${number} of ${rows} rows is there in part: ${JSON.stringify({ counts, columns, tables })}`)
}

/** Sends the batch; true: COMMIT was answered. The server dies within the step `killAt`, or not. */
async function send(
  client: pg.Client,
  steps: readonly Step[],
  killAt: number,
  kill: () => void,
): Promise<{ readonly answered: boolean; readonly commitSent: boolean }> {
  let commitSent = false
  try {
    for (const [index, step] of steps.entries()) {
      const isKill = index === killAt
      if (isKill && random() < 0.5) {
        kill()
        break
      }
      commitSent = index === steps.length - 1
      const done = step(client)
      if (isKill) setTimeout(kill, random() * 4)
      await done
    }
    return { answered: commitSent, commitSent }
  } catch {
    return { answered: false, commitSent }
  }
}

async function main(): Promise<void> {
  const root = mkdtempSync(join(tmpdir(), 'penstock-schemas-'))
  let server = await startServer(root)
  let client = await connect(server)
  await client.query('create table if not exists metric ("time" timestamp, batch bigint, row bigint)')
  const stored: Batch[] = []
  let [killed, again, within] = [0, 0, 0]
  for (let number = 1; killed < kills; number++) {
    const batch: Batch = { number, rows: 1 + below(200) }
    const steps = stepsOf(batch)
    for (;;) {
      // COMMIT more often than the others.
      const place = below(steps.length + 3)
      const killAt = random() < 0.6 ? Math.min(place, steps.length - 1) : -1
      const kill = (): void => void server.kill('SIGKILL')
      const { answered, commitSent } = await send(client, steps, killAt, kill)
      if (killAt >= 0) {
        killed++
        kill()
        if (server.exitCode === null && server.signalCode === null) await once(server, 'exit')
        await client.end().catch(() => {})
        server = await startServer(root)
        client = await connect(server)
      } else if (!answered) throw new Error(`batch ${number} was refused`)
      const there = await isThere(client, batch)
      if (answered && !there) throw new Error(`batch ${number} was acknowledged and is lost`)
      if (!commitSent && there) throw new Error(`batch ${number} is there without COMMIT`)
      if (commitSent && killAt >= 0) within++
      if (there) break
      again++
    }
    stored.push(batch)
  }
  for (const batch of stored) if (!(await isThere(client, batch))) throw new Error(`batch ${batch.number} has gone`)
  const [counted] = (await client.query('select count(*) n, count(distinct batch) b from metric')).rows
  const rows = stored.reduce((sum, batch) => sum + batch.rows, 0)
  if (Number(counted.n) !== rows || Number(counted.b) !== stored.length)
    throw new Error(`there are ${counted.n} rows of ${counted.b} batches, not ${rows} of ${stored.length}`)
  await client.end()
  const ended = once(server, 'exit')
  server.kill('SIGTERM')
  await ended
  rmSync(root, { recursive: true, force: true })
  console.log(
    `${killed} kills (${within} within COMMIT), ${stored.length} batches, ${rows} rows, ${again} batches sent again: each is there once [seed=${values.seed}]`,
  )
}

await main()
