// Benchmark of HTTP exports, imports and query responses, ours compared with QuestDB and DuckDB on the same rows.
// Responses are read by a raw socket that discards them; DuckDB works in this process, with files. Servers take turns.
// Reports rows per second of wall time and of processor time, and the medians of the runs.

import { once } from 'node:events'
import { createReadStream, mkdtempSync, rmSync, statSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DuckDBInstance } from '@duckdb/node-api'
import type { Peer } from './peers.js'
import { usageOf } from './processes.js'
import { median } from './suite-scan.js'

export interface HttpSuiteOptions {
  readonly rows: number
  readonly runs: number
  readonly duckdb: boolean
  /** What is measured, by its name. */
  readonly only: RegExp
}

/** What is exported: QuestDB 9.3 writes VARCHAR columns to Parquet as NULLs, so texts are of other types. */
const types = `ts timestamp, symbol symbol, side symbol, venue symbol, price double, qty long, user_id long, flags int,
  maker boolean, note string`

const jsonRows = 1_000_000

const readBuffer = Buffer.allocUnsafeSlow(1 << 20)

interface Measured {
  readonly seconds: number
  readonly cpuSeconds: number
  readonly firstMs: number
  readonly bytes: number
}

export async function httpFiles(
  peers: readonly Peer[],
  options: HttpSuiteOptions,
  print: (line: string) => void,
): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'penstock-bench-files-'))
  try {
    const csv = join(folder, 'rows.csv')
    await makeRows(csv, options.rows)
    const medians = new Medians()
    const duckdb = options.duckdb ? await openDuckdb(csv, folder, options) : null
    for (let run = 0; run < options.runs; run++) {
      const say = (line: Figures): void => print(medians.add(line))
      for (const peer of peers) await measurePeer(peer, csv, run, options, say)
      await duckdb?.run(run, say)
    }
    duckdb?.close()
    if (options.runs > 1) for (const line of medians.lines()) print(line)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** One measurement of a server. */
interface Figures {
  readonly name: string
  readonly what: string
  readonly rate: number
  readonly cpuRate: number
  /** What else is printed. */
  readonly note: string
}

class Medians {
  readonly #all = new Map<string, Figures[]>()

  /** Returns the line of the measurement. */
  add(figures: Figures): string {
    const key = `${figures.what} ${figures.name}`
    this.#all.set(key, [...(this.#all.get(key) ?? []), figures])
    return lineOf(figures)
  }

  lines(): string[] {
    return [...this.#all.values()].map((all) => {
      const { name, what } = all[0] as Figures
      const of = (key: 'rate' | 'cpuRate'): number => median(all.map((figures) => figures[key]))
      return `median of ${all.length} runs: ${lineOf({ name, what, rate: of('rate'), cpuRate: of('cpuRate'), note: '' })}`
    })
  }
}

function lineOf({ name, what, rate, cpuRate, note }: Figures): string {
  const millions = (value: number): string => (value / 1e6).toFixed(2).padStart(6)
  return `${name.padEnd(9)} ${what.padEnd(16)} ${millions(rate)} Mrows/s ${millions(cpuRate)} Mrows/cpu-s${note}`
}

async function measurePeer(
  peer: Peer,
  csv: string,
  run: number,
  { rows, only }: HttpSuiteOptions,
  print: (figures: Figures) => void,
): Promise<void> {
  const { name } = peer.server
  const say = (what: string, count: number, measured: Measured): void => {
    const { seconds, cpuSeconds, firstMs, bytes } = measured
    const note = `, ${(bytes / 1e6).toFixed(0)} MB, first byte ${firstMs.toFixed(1)} ms`
    print({ name, what, rate: rate(count, seconds), cpuRate: rate(count, cpuSeconds), note })
  }
  if (only.test('CSV import')) say('CSV import', rows, await upload(peer, csv, `imported${run}`, rows))
  const exports = exportsOf(name, `typed${run}`, rows).filter(({ what }) => only.test(what))
  if (exports.length === 0) return
  await call(
    peer,
    `/exec?query=${encodeURIComponent(`create table typed${run} (${types}) timestamp(ts) partition by day`)}`,
  )
  await upload(peer, csv, `typed${run}`, rows)
  for (const { what, count, path } of exports) say(what, count, await call(peer, path))
}

interface Export {
  readonly what: string
  readonly count: number
  readonly path: string
}

function exportsOf(name: string, table: string, rows: number): Export[] {
  const query = encodeURIComponent(`select * from ${table}`)
  const filtered = encodeURIComponent(`select * from ${table} where flags >= 0`)
  const limit = name === 'questdb' ? `1,${jsonRows}` : `${jsonRows}`
  const parquet = (rowsOf: string, codec: string): string =>
    `/exp?query=${rowsOf}&fmt=parquet&rmode=nodelay&compression_codec=${codec}`
  const all = [
    { what: 'CSV export', count: rows, path: `/exp?query=${query}` },
    { what: 'JSON', count: Math.min(rows, jsonRows), path: `/exec?query=${query}&limit=${limit}` },
    { what: 'Parquet snappy', count: rows, path: parquet(query, 'snappy') },
    { what: 'Parquet zstd', count: rows, path: parquet(query, 'zstd') },
    { what: 'Parquet filtered', count: rows, path: parquet(filtered, 'snappy') },
  ]
  if (name !== 'penstock') return all
  const own = (format: string): string => `/exp?query=${query}&fmt=${format}`
  return [
    ...all,
    { what: 'Arrow', count: rows, path: own('arrow') },
    { what: 'ndjson', count: rows, path: own('ndjson') },
  ]
}

function rate(count: number, seconds: number): number {
  return count / Math.max(seconds, 0.001)
}

/** Reads an answer to its end and throws it away. */
async function call(peer: Peer, path: string): Promise<Measured> {
  return exchange(peer, `GET ${path} HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n\r\n`, null)
}

const edge = 'penstock-bench'
/** Some write its length as `00`. Rows end with a quoted text, so none looks like it. */
const lastChunk = Buffer.from('0\r\n\r\n')

async function upload(peer: Peer, file: string, table: string, rows: number): Promise<Measured> {
  const head = `--${edge}\r\nContent-Disposition: form-data; name="data"; filename="rows.csv"\r\n\r\n`
  const tail = `\r\n--${edge}--\r\n`
  const length = head.length + statSync(file).size + tail.length
  const type = `Content-Type: multipart/form-data; boundary=${edge}`
  const parameters = `name=${table}&timestamp=ts&partitionBy=DAY&forceHeader=true&fmt=json`
  const request = `POST /imp?${parameters} HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n${type}\r\nContent-Length: ${length}\r\n\r\n`
  await warm(file)
  const measured = await exchange(peer, request + head, { file, tail })
  await settled(peer, table, rows)
  return { ...measured, bytes: length }
}

async function exchange(
  { server }: Peer,
  request: string,
  body: { readonly file: string; readonly tail: string } | null,
): Promise<Measured> {
  const cpuBefore = usageOf(server.pid).cpuSeconds
  const begin = performance.now()
  let bytes = 0
  let firstMs = 0
  let status = ''
  const take = (chunk: Buffer): void => {
    if (bytes === 0) {
      firstMs = performance.now() - begin
      status = chunk.toString('latin1', 9, 12)
    }
    bytes += chunk.length
    // Not everybody closes a connection when asked to.
    if (chunk.subarray(-lastChunk.length).equals(lastChunk)) socket.destroy()
  }
  // One buffer for all: a chunk of its own for every 64 KiB takes more of the processors than discarding should.
  const callback = (length: number, buffer: Uint8Array): boolean => {
    take(Buffer.from(buffer.buffer, 0, length))
    return true
  }
  const socket = connect({ port: server.httpPort, host: '127.0.0.1', onread: { buffer: readBuffer, callback } })
  const closed = once(socket, 'close')
  socket.write(request)
  if (body !== null) {
    for await (const chunk of createReadStream(body.file, { highWaterMark: 1 << 20 })) {
      if (!socket.write(chunk as Buffer)) await Promise.race([once(socket, 'drain'), closed])
    }
    socket.write(body.tail)
  }
  await closed
  if (status !== '200') throw new Error(`${server.name} answered ${status} [request=${request.slice(0, 200)}]`)
  const seconds = (performance.now() - begin) / 1000
  return { seconds, cpuSeconds: usageOf(server.pid).cpuSeconds - cpuBefore, firstMs, bytes }
}

/** Rows that are acknowledged may still be on their way into the table. */
async function settled(peer: Peer, table: string, rows: number): Promise<void> {
  for (;;) {
    const answer = await fetch(`http://127.0.0.1:${peer.server.httpPort}/exec?query=select%20count()%20from%20${table}`)
    const { dataset } = (await answer.json()) as { dataset: [[number]] }
    if (dataset[0][0] === rows) return
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

/** Reads a file, so that nobody is measured by what the page cache has forgotten: 2 GB take 3 s more then. */
async function warm(file: string): Promise<void> {
  for await (const _chunk of createReadStream(file, { highWaterMark: 1 << 20 }));
}

/** No server makes its own rows: 20 M of them are written in seconds, and are the same for all. */
async function makeRows(file: string, rows: number): Promise<void> {
  const instance = await DuckDBInstance.create(':memory:', { threads: '2' })
  const connection = await instance.connect()
  const one = (...strings: readonly string[]): string =>
    `['${strings.join("','")}'][1 + (random() * ${strings.length})::int % ${strings.length}]`
  await connection.run('select setseed(0.5)')
  await connection.run(`copy (select
      strftime(timestamp '2024-01-01' + to_microseconds(row * 100000), '%Y-%m-%dT%H:%M:%S.%fZ') ts,
      ${one('AAPL', 'MSFT', 'GOOG', 'AMZN', 'TSLA')} symbol, ${one('buy', 'sell')} side,
      ${one('NYSE', 'NASDAQ', 'LSE')} venue, random() * 1000 price, 1 + (random() * 999)::bigint qty,
      1 + (random() * 999999)::bigint user_id, (random() * 100)::int flags, random() < 0.5 maker,
      translate(lpad(to_base((hash(row) % 208827064576)::bigint, 26), 8, '0'), '0123456789', 'QRSTUVWXYZ') note
    from range(${rows}) made(row)
  ) to '${file}' (format csv, header, force_quote (symbol, side, venue, note))`)
  connection.closeSync()
  instance.closeSync()
}

interface DuckdbRuns {
  run(run: number, print: (figures: Figures) => void): Promise<void>
  close(): void
}

async function openDuckdb(csv: string, folder: string, { rows, only }: HttpSuiteOptions): Promise<DuckdbRuns> {
  const instance = await DuckDBInstance.create(join(folder, 'peer.duckdb'), { threads: '2' })
  const connection = await instance.connect()
  const measure = async (what: string, count: number, ...statements: readonly string[]): Promise<Figures[]> => {
    if (!only.test(what) && !what.endsWith('import')) return []
    await warm(csv)
    const cpuBefore = process.cpuUsage()
    const begin = performance.now()
    for (const statement of statements) await connection.run(statement)
    const { user, system } = process.cpuUsage(cpuBefore)
    const seconds = (performance.now() - begin) / 1000
    const cpuRate = rate(count, (user + system) / 1e6)
    return only.test(what) ? [{ name: 'duckdb', what, rate: rate(count, seconds), cpuRate, note: '' }] : []
  }
  return {
    run: async (run, print) => {
      const say = (all: readonly Figures[]): void => {
        for (const figures of all) print(figures)
      }
      const table = `imported${run}`
      say(await measure('CSV import', rows, `create table ${table} as select * from read_csv('${csv}')`, 'checkpoint'))
      say(await measure('CSV export', rows, `copy ${table} to '/dev/null' (format csv)`))
      const limited = `(select * from ${table} limit ${jsonRows})`
      say(await measure('JSON', Math.min(rows, jsonRows), `copy ${limited} to '/dev/null' (format json)`))
      for (const codec of ['snappy', 'zstd']) {
        const copied = `copy ${table} to '${join(folder, `${codec}.parquet`)}' (format parquet, compression ${codec})`
        say(await measure(`Parquet ${codec}`, rows, copied))
      }
    },
    close: () => {
      connection.closeSync()
      instance.closeSync()
    },
  }
}
