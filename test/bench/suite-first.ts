// Benchmark of the first request of each kind in a fresh process, a latency that medians of a warm server hide. Starts
// each build repeatedly on a root folder with data, and measures the time until the server is ready and then the time
// of one request of each kind. The compared builds take turns.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { Client } from 'undici'
import { type Build, type Peer, startBuild } from './peers.js'
import { percentile } from './suite-latency.js'
import { loadOnce } from './suite-lines.js'

const steps = ['ready', 'select 1', 'SAMPLE BY', 'lines', 'connection'] as const
type Step = (typeof steps)[number]

const sampled = 'select timestamp, symbol, avg(price), sum(amount) from t sample by 1m'
const lines = Array.from({ length: 1000 }, (_, row) => `first,host=h${row % 50} value=${row}.5,n=${row}i\n`).join('')

/** Milliseconds of each step in `processes` fresh processes of each build. */
export async function firsts(
  builds: readonly Build[],
  { processes, rows }: { readonly processes: number; readonly rows: number },
  print: (line: string) => void,
): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'penstock-bench-first-'))
  try {
    // Also warms the clients of this process.
    for (const build of builds) await prepare(build, folder, rows)
    const samples = builds.map(() => new Map<Step, number[]>(steps.map((step) => [step, []])))
    for (let round = 0; round < processes; round++) {
      for (const [index, build] of builds.entries()) {
        const took = await measure(build, folder)
        for (const step of steps) samples[index]?.get(step)?.push(took[step])
      }
    }
    for (const [index, { name }] of builds.entries()) print(report(name, samples[index] as Map<Step, number[]>))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

async function prepare(build: Build, folder: string, rows: number): Promise<void> {
  const peer = await startBuild(build, [], folder)
  await loadOnce(peer, 'trades', 't', rows, rows)
  await ask(peer)
  await peer.end()
}

async function measure(build: Build, folder: string): Promise<Record<Step, number>> {
  const begun = performance.now()
  const peer = await startBuild(build, [], folder, { readyText: 'is ready' })
  const ready = performance.now() - begun
  const took = { ready, ...(await ask(peer)) }
  await peer.end()
  return took
}

async function ask({ server }: Peer): Promise<Omit<Record<Step, number>, 'ready'>> {
  const client = new Client(`http://127.0.0.1:${server.httpPort}`)
  const took = {
    'select 1': await timed(() => query(client, 'select 1')),
    'SAMPLE BY': await timed(() => query(client, sampled)),
    lines: await timed(() => send(client)),
    connection: await timed(() => connection(server.pgPort)),
  }
  await client.close()
  return took
}

async function timed(work: () => Promise<void>): Promise<number> {
  const begun = performance.now()
  await work()
  return performance.now() - begun
}

async function query(client: Client, sql: string): Promise<void> {
  const path = `/exec?query=${encodeURIComponent(sql)}`
  const { statusCode, body } = await client.request({ path, method: 'GET' })
  const text = await body.text()
  if (statusCode !== 200) throw new Error(`refused: ${text}`)
}

async function send(client: Client): Promise<void> {
  const { statusCode, body } = await client.request({ path: '/write', method: 'POST', body: lines })
  const text = await body.text()
  if (statusCode !== 204) throw new Error(`refused: ${text}`)
}

/** From the first packet until the server is ready for a query. */
async function connection(port: number): Promise<void> {
  const client = new pg.Client({ host: '127.0.0.1', port, user: 'admin', password: 'quest', database: 'qdb' })
  await client.connect()
  await client.end()
}

function report(name: string, samples: ReadonlyMap<Step, readonly number[]>): string {
  const times = [...samples].map(([step, all]) => {
    return `${step} ${percentile(all, 0.5).toFixed(1)} (${Math.min(...all).toFixed(1)} to ${Math.max(...all).toFixed(1)})`
  })
  return `${name.padEnd(9)} median ms: ${times.join(', ')}`
}
