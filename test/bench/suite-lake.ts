// Benchmark of the lake and of rows in object storage. The store is the S3 service in $PENSTOCK_S3, which .ci/s3.sh starts, or
// lake-store.ts: in both cases a process of its own, whose processor time is not counted.
//
//   upload    The same lines (5 columns) into a table and into one with LAKE ON. Reported: processor time of the server per
//             row until all is in Parquet files and, with LAKE ON, in a snapshot, and the share of the lake in it; then the
//             same of a storage policy, which uploads the parts as they are. A load and an upload before compile the code.
//   size      Bytes a row of the data files of the lake and of our parts, beside Parquet files of DuckDB with the same
//             codecs and the same order of rows.
//   cold      A query of rows that are only in the store, with nothing in the local cache, beside a plain reader of the
//             same objects with as many and as large requests.
//   warm      The same query in a new process that finds everything in the local cache, beside the same rows in local
//             parts.

import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DuckDBInstance } from '@duckdb/node-api'
import type { ObjectStoreOptions } from '../../engine/object-store/open-store.js'
import type { ReaderOptions, ReaderReport } from './lake-read.js'
import { type Peer, startPenstock } from './peers.js'
import { queryRows, runModule, startModule, untilQuiet, usageOf } from './processes.js'
import { measureLines } from './suite-lines.js'
import { median } from './suite-scan.js'

export interface LakeOptions {
  readonly rows: number
  readonly runs: number
  readonly settings: readonly string[]
}

interface Place {
  readonly endpoint: string
  readonly bucket: string
  readonly accessKeyId: string
  readonly secretAccessKey: string
}

type Print = (line: string) => void

/** Those of the server (engine/object-store/block-cache.ts). */
const rangeBytes = 8 * 1024 * 1024
const rangesAtOnce = 8
const warmRows = 100_000
const compilingRuns = 20
/** V8 compiles the code of a load during so many rows, which is done before the first measurement. */
const compilingRowsMax = 2_000_000
const waitMs = 300_000
/** Every question takes processor time of the server. */
const askAgainMs = 250
const columns = 'symbol symbol, side symbol, price double, amount double, timestamp timestamp'
const shape = 'timestamp(timestamp) partition by hour'

export async function lake(options: LakeOptions, print: Print): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'penstock-bench-lake-'))
  const own = process.env['PENSTOCK_S3'] === undefined ? await startModule('lake-store.js') : null
  const place: Place = own === null ? placeOfEnvironment() : JSON.parse(own.line)
  const bench = new LakeBench(options, place, folder, print)
  try {
    await bench.run()
  } finally {
    await bench.end()
    own?.child.kill()
    rmSync(folder, { recursive: true, force: true })
  }
}

function placeOfEnvironment(): Place {
  const { PENSTOCK_S3: endpoint = '', PENSTOCK_S3_BUCKET: bucket = '' } = process.env
  const { AWS_ACCESS_KEY_ID: accessKeyId = '', AWS_SECRET_ACCESS_KEY: secretAccessKey = '' } = process.env
  return { endpoint, bucket, accessKeyId, secretAccessKey }
}

class LakeBench {
  readonly #options: LakeOptions
  readonly #place: Place
  readonly #folder: string
  readonly #print: Print
  readonly #url: string
  #peer: Peer | null = null

  constructor(options: LakeOptions, place: Place, folder: string, print: Print) {
    this.#options = options
    this.#place = place
    this.#folder = folder
    this.#print = print
    this.#url = `s3://${place.bucket}/bench-${process.pid}`
  }

  async run(): Promise<void> {
    await this.#start()
    await this.#load('warm_up', '', warmRows)
    await this.#remote('warm_remote', warmRows)
    await this.#load('compiling', 'lake on', Math.min(compilingRowsMax, this.#options.rows))
    await this.#loads()
    await this.#sizes()
    await this.#scans()
  }

  async end(): Promise<void> {
    await this.#peer?.end()
    this.#peer = null
  }

  get #server(): Peer['server'] {
    if (this.#peer === null) throw new Error('the server does not run')
    return this.#peer.server
  }

  async #start(): Promise<void> {
    const { endpoint, accessKeyId, secretAccessKey } = this.#place
    const store = [
      ...[`object.store.url=${this.#url}`, `object.store.s3.endpoint=${endpoint}`],
      ...[`object.store.access.key.id=${accessKeyId}`, `object.store.secret.access.key=${secretAccessKey}`],
    ]
    this.#peer = await startPenstock([...store, 'lake.commit.lag=1s', ...this.#options.settings], this.#folder)
  }

  /** A new process on the same root. `cold`: without the blocks of the local cache. */
  async #restart(cold: boolean): Promise<void> {
    const root = this.#peer?.root ?? ''
    await this.end()
    if (cold) rmSync(join(root, 'tmp/parts'), { recursive: true, force: true })
    await this.#start()
    // Code is compiled by tables of their own.
    for (const table of ['warm_up', 'warm_remote'])
      for (let run = 0; run < compilingRuns; run++) await this.#rows(scanOf(table, run))
    await untilQuiet([this.#server], this.#print)
  }

  #rows(sql: string): Promise<unknown[][]> {
    return queryRows(this.#server.httpPort, sql)
  }

  async #until(what: string, sql: string): Promise<void> {
    const end = performance.now() + waitMs
    while ((await this.#rows(sql)).length === 0) {
      if (performance.now() > end) throw new Error(`${what} was waited for in vain`)
      await new Promise((resolve) => setTimeout(resolve, askAgainMs))
    }
  }

  /** Microseconds of processor time a row, and seconds from the first row on until all are where they belong. */
  async #load(table: string, more: string, rows: number): Promise<{ micros: number; seconds: number }> {
    const peer = this.#peer
    if (peer === null) throw new Error('the server does not run')
    await this.#rows(`create table ${table} (${columns}) ${shape} ${more}`)
    await untilQuiet([peer.server], this.#print)
    const [before, begun] = [usageOf(peer.server.pid).cpuSeconds, performance.now()]
    await measureLines(peer, { shape: 'trades', order: 'sorted', protocol: 'tcp', connections: 1, rows, table })
    await this.#rows('checkpoint')
    if (more === 'lake on') {
      const isThere = `table_name = '${table}' and state = 'committed' and rows = ${rows}`
      await this.#until('the lake', `select 1 from lake_tables() where ${isThere}`)
    }
    const seconds = (performance.now() - begun) / 1000
    await untilQuiet([peer.server], this.#print)
    return { micros: ((usageOf(peer.server.pid).cpuSeconds - before) / rows) * 1e6, seconds }
  }

  async #loads(): Promise<void> {
    const { rows, runs } = this.#options
    const [plain, lake, uploads]: [number[], number[], number[]] = [[], [], []]
    for (let run = 1; run <= runs; run++) {
      const without = await this.#load(`plain_${run}`, '', rows)
      const within = await this.#load(`lake_${run}`, 'lake on', rows)
      const upload = await this.#remote(`remote_${run}`, rows)
      plain.push(without.micros)
      lake.push(within.micros)
      uploads.push(upload)
      const times = `${without.seconds.toFixed(1)} s to the disk, ${within.seconds.toFixed(1)} s to the snapshot`
      this.#print(`lines ${without.micros.toFixed(2)} us a row, with LAKE ON ${within.micros.toFixed(2)}; ${times}`)
      this.#print(`upload of parts by a policy: ${upload.toFixed(3)} us a row`)
    }
    const share = (whole: number): string => `${((1 - median(plain) / whole) * 100).toFixed(1)} %`
    this.#print(`lake: ${share(median(lake))} of the processor time of the server`)
    this.#print(`upload by a policy: ${share(median(plain) + median(uploads))} of the processor time of the server`)
  }

  async #sizes(): Promise<void> {
    const { rows } = this.#options
    const own = await this.#partPaths('lake_1')
    const parts = own.reduce((sum, path) => sum + statSync(path).size, 0)
    const url = `http://127.0.0.1:${this.#server.httpPort}/iceberg/v1/namespaces/qdb/tables/lake_1`
    const text = await (await fetch(url)).text()
    const sizes = [...text.matchAll(/"total-files-size":"(\d+)"/g)]
    const inLake = Number(sizes.at(-1)?.[1])
    const list = own.map((path) => `'${path}'`).join()
    const duckdb = await DuckDBInstance.create()
    const connection = await duckdb.connect()
    const sizeBy = async (codec: string): Promise<number> => {
      const path = join(this.#folder, `${codec}.parquet`)
      const select = `select symbol, side, price, amount, timestamp from read_parquet([${list}]) order by timestamp`
      await connection.run(`copy (${select}) to '${path}' (format parquet, compression ${codec})`)
      return statSync(path).size
    }
    const bytes = (size: number): string => `${(size / rows).toFixed(2)} bytes a row`
    const found = await connection.runAndReadAll(`select lower(mode(compression)) from parquet_metadata([${list}])`)
    const files = [
      { name: 'lake', size: inLake, codec: 'snappy' },
      { name: 'parts', size: parts, codec: String(found.getRows()[0]?.[0]) },
    ]
    for (const { name, size, codec } of files) {
      const theirs = await sizeBy(codec)
      this.#print(`${name}, ${codec}: ${bytes(size)}, DuckDB ${bytes(theirs)}: ratio ${(size / theirs).toFixed(2)}`)
    }
    connection.closeSync()
    duckdb.closeSync()
  }

  async #partPaths(table: string): Promise<string[]> {
    const root = this.#peer?.root ?? ''
    return (await this.#rows(`select file from table_parts('${table}')`)).map(([file]) =>
      join(root, 'db', String(file)),
    )
  }

  /** A table whose parts are only in the store: microseconds of processor time a row from the policy on. */
  async #remote(table: string, rows: number): Promise<number> {
    await this.#load(table, 'lake off', rows)
    // By this row all others are old.
    await this.#rows(`insert into ${table} values ('none', 'none', 0, 0, '2024-06-01')`)
    await this.#rows('checkpoint')
    await untilQuiet([this.#server], this.#print)
    const before = usageOf(this.#server.pid).cpuSeconds
    await this.#rows(`alter table ${table} set storage policy (to remote 1h, drop local 1h)`)
    const done = 'waiting_parts = 0 and local_parts <= 1 and remote_parts > 0'
    await this.#until('the upload', `select 1 from storage_policies() where table_name = '${table}' and ${done}`)
    await untilQuiet([this.#server], this.#print)
    return ((usageOf(this.#server.pid).cpuSeconds - before) / rows) * 1e6
  }

  async #scans(): Promise<void> {
    const cold: number[] = []
    const ratios: number[] = []
    for (let run = 1; run <= this.#options.runs; run++) {
      await this.#restart(true)
      const coldMs = await this.#timeOf(scanOf('remote_1', run))
      const fetched = bytesBelow(join(this.#peer?.root ?? '', 'tmp/parts'))
      const reader = await this.#plainReader()
      const [own, plain] = [fetched / coldMs / 1048.576, reader.bytes / reader.seconds / 1048576]
      await this.#restart(false)
      const [warm, local] = [await this.#timeOf(scanOf('remote_1', run)), await this.#timeOf(scanOf('plain_1', run))]
      const what = `cold ${coldMs.toFixed(1)} ms, ${own.toFixed(1)} MiB/s of ${(fetched / 1048576).toFixed(1)} MiB`
      this.#print(`${what}; plain reader ${plain.toFixed(1)} MiB/s of ${(reader.bytes / 1048576).toFixed(1)} MiB`)
      this.#print(`warm ${warm.toFixed(1)} ms, local parts ${local.toFixed(1)} ms`)
      cold.push(own / plain)
      ratios.push(warm / local)
    }
    this.#print(`cold scan: ${median(cold).toFixed(2)} of the rate of a plain reader`)
    this.#print(`warm scan: ${median(ratios).toFixed(2)} of the time of local parts`)
  }

  async #timeOf(sql: string): Promise<number> {
    const begun = performance.now()
    await this.#rows(sql)
    return performance.now() - begun
  }

  async #plainReader(): Promise<ReaderReport> {
    const { endpoint, accessKeyId, secretAccessKey } = this.#place
    const setting = { accessKeyId, secretAccessKey, sessionToken: '' }
    const store: ObjectStoreOptions = {
      url: this.#url,
      s3: {
        ...{ endpoint, region: 'us-east-1', pathStyle: 'auto', connections: rangesAtOnce },
        ...{ timeoutMs: 30_000, multipartBytes: rangeBytes },
      },
      credentials: { source: 'setting', setting, file: '', profile: '' },
      retryMs: 30_000,
    }
    const root = this.#peer?.root ?? ''
    const id = readFileSync(join(root, 'root.id'), 'utf8').trim()
    const [[table] = []] = await this.#rows("select id from tables() where table_name = 'remote_1'")
    const options: ReaderOptions = { store, prefix: `${id}/${table}/`, rangeBytes, atOnce: rangesAtOnce }
    return JSON.parse(await runModule('lake-read.js', options, () => {})) as ReaderReport
  }
}

/** Reads four columns; no statistics answer it. */
function scanOf(table: string, n: number): string {
  const where = "timestamp < '2024-05-01'"
  return `select symbol, side, sum(price) + ${n}, sum(amount) from ${table} where ${where} group by symbol, side`
}

function bytesBelow(folder: string): number {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  return files.reduce((sum, entry) => sum + statSync(join(entry.parentPath, entry.name)).size, 0)
}
