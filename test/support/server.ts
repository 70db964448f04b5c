// For tests: runs the built server as a separate process, as users do: on free ports, with a root folder that survives
// restarts. Sends statements to /exec and lines to /write.

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { repositoryRoot } from './docs/source-tree.js'

export const command = join(repositoryRoot, 'dist/deploy/cli.js')
/** Between two queries that wait for a state: without it they would take the processors from what they wait for. */
const pollMs = 20
const listeners = ['http.net.bind.to', 'http.min.net.bind.to', 'line.tcp.net.bind.to', 'pg.net.bind.to']

export interface Answer {
  readonly status: number
  /** As sent: 64-bit integers lose digits in `body`. */
  readonly text: string
  readonly body: ExecBody
}

/** Members of every kind of answer of /exec. */
export interface ExecBody {
  readonly columns?: readonly { readonly name: string; readonly type: string }[]
  readonly dataset?: readonly (readonly unknown[])[]
  readonly count?: number
  readonly ddl?: string
  readonly error?: string
  readonly position?: number
}

/** Settings of the shared server, whose tests do not ask whether rows outlive a crash. */
const sharedSettings = ['query.threads=1', 'wal.commit.mode=nosync', 'telemetry.enabled=false']

/** What a database holds, in this order: each kind may refer to those after it. */
const objects = [
  ['materialized view', 'select view_name from materialized_views()'],
  ['view', 'select view_name from views()'],
  ['table', 'select table_name from tables()'],
] as const
/** What may not differ between a server that has just started and one that another test file gets. */
const contents = [
  'select table_name from all_tables() order by table_name',
  'select view_name from views() order by view_name',
  'select typname from pg_type order by typname',
  'select nspname from pg_namespace order by nspname',
  'select relname from pg_class order by relname',
  'select rolname from pg_roles order by rolname',
]

/** The server that files of tests in this process use in turn. */
let shared: TestServer | null = null

/** One server at a time on one root folder. */
export class TestServer {
  readonly root = mkdtempSync(join(tmpdir(), 'penstock-test-'))
  #settings: readonly string[]
  #child: ChildProcess | null = null
  #output = ''
  readonly #clients: pg.Client[] = []
  /** What the shared server contained at its start. */
  #empty: string | null = null

  /** Settings are texts `key=value`. */
  constructor(settings: readonly string[] = []) {
    this.#settings = settings
  }

  /**
   * A server for tests of statements and of the protocol: `remove` empties it for the next file of tests, because a
   * start takes a second of a processor.
   */
  static shared(): TestServer {
    if (shared === null) {
      const server = new TestServer(sharedSettings)
      shared = server
      process.once('SIGTERM', () => process.exit(143))
      process.once('exit', () => server.#abandon())
    }
    return shared
  }

  /** How drivers of PostgreSQL enter the running server. */
  get login(): { host: string; port: number; user: string; password: string; database: string } {
    const [host = '', port = ''] = this.address('postgres').split(':')
    return { host, port: Number(port), user: 'admin', password: 'quest', database: 'qdb' }
  }

  /** A connected client of PostgreSQL, which ends at the latest when the server is removed. */
  async connect(changes: pg.ClientConfig = {}): Promise<pg.Client> {
    const client = new pg.Client({ ...this.login, ...changes })
    await client.connect()
    this.#clients.push(client)
    return client
  }

  /** Resolves when the server answers. Ports change from start to start. */
  async start(): Promise<void> {
    if (this !== shared) await this.#start()
    else if (!this.#isRunning) {
      await this.#start()
      this.#empty ??= await this.#contents()
    }
  }

  get #isRunning(): boolean {
    return this.#child !== null && this.#child.exitCode === null && this.#child.signalCode === null
  }

  async #start(): Promise<void> {
    const sets = [...listeners.map((key) => `${key}=127.0.0.1:0`), ...this.#settings]
    const args = [command, 'start', '-d', this.root, ...sets.flatMap((set) => ['--set', set])]
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] })
    this.#child = child
    this.#output = ''
    await new Promise<void>((resolve, reject) => {
      const gather = (chunk: Buffer): void => {
        this.#output += chunk
        if (this.#output.includes('Ctrl-C')) resolve()
      }
      child.stdout.on('data', gather)
      child.stderr.on('data', gather)
      child.once('close', (code) => reject(new Error(`the server ended with code ${code}: ${this.#output}`)))
    })
  }

  get pid(): number {
    return this.#child?.pid ?? 0
  }

  /** Host and port of a listener by the name that the server prints. */
  address(name: 'http' | 'line protocol' | 'health' | 'postgres'): string {
    const match = new RegExp(`^ {2}${name} +(\\S+)$`, 'm').exec(this.#output)
    if (match === null) throw new Error(`the server does not listen [name=${name}, output=${this.#output}]`)
    return match[1] as string
  }

  get linePort(): number {
    return Number(this.address('line protocol').split(':')[1])
  }

  /** Ends the process and waits for it: SIGTERM is the clean way, SIGKILL the power cut. */
  async end(signal: 'SIGTERM' | 'SIGKILL' = 'SIGTERM'): Promise<void> {
    const child = this.#child
    if (child === null || !this.#isRunning) return
    const closed = once(child, 'close')
    child.kill(signal)
    const [code] = (await closed) as [number | null]
    if (signal === 'SIGTERM' && code !== 0) throw new Error(`the server ended with code ${code}: ${this.#output}`)
  }

  async restart(signal: 'SIGTERM' | 'SIGKILL' = 'SIGTERM'): Promise<void> {
    await this.end(signal)
    await this.start()
  }

  /** Restarts with other settings. */
  async restartWith(settings: readonly string[]): Promise<void> {
    await this.end()
    this.#settings = settings
    await this.start()
  }

  /** Ends the server and removes its root folder; empties the shared server. */
  async remove(): Promise<void> {
    try {
      for (const client of this.#clients.splice(0)) await client.end()
      if (this === shared && (await this.#emptied())) return
      await this.end()
    } finally {
      if (!this.#isRunning) rmSync(this.root, { recursive: true, force: true })
      if (this === shared && !this.#isRunning) shared = null
    }
  }

  /** Whether the server contains nothing any more; it is not used again if something cannot be dropped like this. */
  async #emptied(): Promise<boolean> {
    if (!this.#isRunning || this.#empty === null) return false
    for (const [kind, names] of objects) {
      for (const [name] of await this.rows(names))
        await this.exec(`drop ${kind} "${String(name).replaceAll('"', '""')}"`)
    }
    return (await this.#contents()) === this.#empty
  }

  async #contents(): Promise<string> {
    return JSON.stringify(await Promise.all(contents.map((query) => this.rows(query))))
  }

  /** At the end of the process. */
  #abandon(): void {
    this.#child?.kill('SIGKILL')
    rmSync(this.root, { recursive: true, force: true })
  }

  async exec(sql: string, options: Readonly<Record<string, string>> = {}): Promise<Answer> {
    const query = new URLSearchParams({ query: sql, ...options })
    const answer = await fetch(`http://${this.address('http')}/exec?${query}`)
    const text = await answer.text()
    return { status: answer.status, text, body: JSON.parse(text) as ExecBody }
  }

  /** The rows of a statement that must succeed. */
  async rows(sql: string): Promise<readonly (readonly unknown[])[]> {
    const { status, text, body } = await this.exec(sql)
    if (status !== 200) throw new Error(`${sql}: ${text}`)
    return body.dataset ?? []
  }

  async write(body: string | Buffer, { query = '', headers = {} as Record<string, string> } = {}): Promise<Response> {
    return fetch(`http://${this.address('http')}/write${query}`, { method: 'POST', body, headers })
  }

  /** Polls until the query gives the wanted rows: for what arrives over TCP, which answers nothing. */
  async untilRows(sql: string, wanted: readonly (readonly unknown[])[], timeoutMs = 600_000): Promise<void> {
    const end = performance.now() + timeoutMs
    for (;;) {
      const { body, text } = await this.exec(sql)
      if (JSON.stringify(body.dataset) === JSON.stringify(wanted)) return
      if (performance.now() > end) throw new Error(`${sql}: wanted ${JSON.stringify(wanted)}, has ${text}`)
      await new Promise((later) => setTimeout(later, pollMs))
    }
  }
}
