// Files and answers over HTTP, ours beside QuestDB and DuckDB on the same rows: a raw socket that discards what comes reads
// from the servers; DuckDB works in this process, from and to files. Rates in rows a second of wall time, then of the
// processor time of whoever did the work.

import { once } from 'node:events'
import { createReadStream, mkdtempSync, rmSync, statSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DuckDBInstance } from '@duckdb/node-api'
import type { Peer } from './peers.js'
import { usageOf } from './processes.js'

export interface HttpSuiteOptions {
  readonly rows: number
  readonly runs: number
  readonly duckdb: boolean
}

const columns = `timestamp_sequence('2024-01-01', 100000) ts, rnd_symbol('AAPL','MSFT','GOOG','AMZN','TSLA') symbol,
  rnd_symbol('buy','sell') side, rnd_symbol('NYSE','NASDAQ','LSE') venue, rnd_double() * 1000 price,
  rnd_long(1, 1000, 0) qty, rnd_long(1, 1000000, 0) user_id, rnd_int(0, 100, 0) flags, rnd_boolean() maker,
  rnd_str(8, 8, 0) note`

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
    const [first] = peers
    if (first === undefined) return
    await call(
      first,
      `/exec?query=${encodeURIComponent(`create table files as (select ${columns} from long_sequence(${options.rows})) timestamp(ts) partition by day`)}`,
    )
    await download(first, '/exp?query=files', csv)
    for (const peer of peers) await measurePeer(peer, csv, options, print)
    if (options.duckdb) await measureDuckdb(csv, folder, options, print)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

async function measurePeer(
  peer: Peer,
  csv: string,
  { rows, runs }: HttpSuiteOptions,
  print: (line: string) => void,
): Promise<void> {
  const { name } = peer.server
  const say = (what: string, count: number, measured: Measured): void => {
    const { seconds, cpuSeconds, firstMs, bytes } = measured
    print(
      `${name.padEnd(9)} ${what.padEnd(16)} ${rate(count, seconds)} Mrows/s ${rate(count, cpuSeconds)} Mrows/cpu-s, ${(bytes / 1e6).toFixed(0)} MB, first byte ${firstMs.toFixed(1)} ms`,
    )
  }
  for (let run = 0; run < runs; run++) {
    say('CSV import', rows, await upload(peer, csv, `imported${run}`))
    await settled(peer, `imported${run}`, rows)
    await call(
      peer,
      `/exec?query=${encodeURIComponent(`create table typed${run} (${types}) timestamp(ts) partition by day`)}`,
    )
    await upload(peer, csv, `typed${run}`)
    await settled(peer, `typed${run}`, rows)
    const query = encodeURIComponent(`select * from typed${run}`)
    say('CSV export', rows, await call(peer, `/exp?query=${query}`))
    const limit = name === 'questdb' ? `1,${jsonRows}` : `${jsonRows}`
    say('JSON', Math.min(rows, jsonRows), await call(peer, `/exec?query=${query}&limit=${limit}`))
    for (const codec of ['snappy', 'zstd']) {
      say(
        `Parquet ${codec}`,
        rows,
        await call(peer, `/exp?query=${query}&fmt=parquet&rmode=nodelay&compression_codec=${codec}`),
      )
    }
    if (name === 'penstock') say('Arrow', rows, await call(peer, `/exp?query=${query}&fmt=arrow`))
  }
}

function rate(count: number, seconds: number): string {
  return (count / Math.max(seconds, 0.001) / 1e6).toFixed(2).padStart(6)
}

/** Reads an answer to its end and throws it away. */
async function call(peer: Peer, path: string): Promise<Measured> {
  return exchange(peer, `GET ${path} HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n\r\n`, null)
}

const edge = 'penstock-bench'
/** Some write its length as `00`. Rows end with a quoted text, so none looks like it. */
const lastChunk = Buffer.from('0\r\n\r\n')

async function upload(peer: Peer, file: string, table: string): Promise<Measured> {
  const head = `--${edge}\r\nContent-Disposition: form-data; name="data"; filename="rows.csv"\r\n\r\n`
  const tail = `\r\n--${edge}--\r\n`
  const length = head.length + statSync(file).size + tail.length
  const type = `Content-Type: multipart/form-data; boundary=${edge}`
  const parameters = `name=${table}&timestamp=ts&partitionBy=DAY&forceHeader=true&fmt=json`
  const request = `POST /imp?${parameters} HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n${type}\r\nContent-Length: ${length}\r\n\r\n`
  const measured = await exchange(peer, request + head, { file, tail })
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

async function download(peer: Peer, path: string, file: string): Promise<void> {
  const answer = await fetch(`http://127.0.0.1:${peer.server.httpPort}${path}`)
  if (answer.body === null) throw new Error('no rows to measure with')
  await writeFile(file, answer.body)
}

async function measureDuckdb(
  csv: string,
  folder: string,
  { rows, runs }: HttpSuiteOptions,
  print: (line: string) => void,
): Promise<void> {
  const instance = await DuckDBInstance.create(join(folder, 'peer.duckdb'), { threads: '2' })
  const connection = await instance.connect()
  const measure = async (what: string, count: number, ...statements: readonly string[]): Promise<void> => {
    const cpuBefore = process.cpuUsage()
    const begin = performance.now()
    for (const statement of statements) await connection.run(statement)
    const { user, system } = process.cpuUsage(cpuBefore)
    const seconds = (performance.now() - begin) / 1000
    const cpu = rate(count, (user + system) / 1e6)
    print(`${'duckdb'.padEnd(9)} ${what.padEnd(16)} ${rate(count, seconds)} Mrows/s ${cpu} Mrows/cpu-s`)
  }
  for (let run = 0; run < runs; run++) {
    const table = `imported${run}`
    await measure('CSV import', rows, `create table ${table} as select * from read_csv('${csv}')`, 'checkpoint')
    await measure('CSV export', rows, `copy ${table} to '/dev/null' (format csv)`)
    const limited = `(select * from ${table} limit ${jsonRows})`
    await measure('JSON', Math.min(rows, jsonRows), `copy ${limited} to '/dev/null' (format json)`)
    for (const codec of ['snappy', 'zstd']) {
      const target = join(folder, `${codec}.parquet`)
      await measure(`Parquet ${codec}`, rows, `copy ${table} to '${target}' (format parquet, compression ${codec})`)
    }
  }
  connection.closeSync()
  instance.closeSync()
}
