// Starts the servers that a benchmark compares: our build, the builds of Penstock in other clones, a real QuestDB
// fetched through Maven, and PostgreSQL if it is installed.

import { execFileSync } from 'node:child_process'
import {
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type RunningServer, type StartOptions, startServer } from './processes.js'

const questdbVersion = '9.3.4'
const repositoryRoot = fileURLToPath(new URL('../../..', import.meta.url))

export interface Peer {
  readonly server: RunningServer
  readonly root: string
  /** Stops the server, and removes its data unless they are to stay. */
  end(): Promise<void>
}

function newRoot(name: string): string {
  return mkdtempSync(join(tmpdir(), `penstock-bench-${name}-`))
}

/**
 * Four ports that another run of a benchmark does not use, below those that outgoing connections take; `offset` is 0,
 * 4, .. 28.
 */
function ports(offset: number): [number, number, number, number] {
  const first = 20_000 + (process.pid % 375) * 32 + offset
  return [first, first + 1, first + 2, first + 3]
}

function peer(server: RunningServer, root: string, retained: boolean): Peer {
  return {
    server,
    root,
    end: async () => {
      await server.stop()
      if (!retained) rmSync(root, { recursive: true, force: true })
    },
  }
}

/** Where a server has its data: in a folder that stays, or in a new one of its own. */
function rootOf(name: string, keep: string | undefined): string {
  if (keep === undefined) return newRoot(name)
  const root = resolve(keep, name)
  mkdirSync(root, { recursive: true })
  return root
}

/** A build of Penstock: the folder of its package, and the name that its figures have. */
export interface Build {
  readonly name: string
  readonly folder: string
  /** Of its ports. */
  readonly offset: number
}

const ownBuild: Build = { name: 'penstock', folder: repositoryRoot, offset: 0 }
const otherBuild = (folder: string): Build => ({ name: 'other', folder: resolve(folder), offset: 16 })

/** Ours, and the clones in `others` after `npm run build`: to compare a change with what was before. */
export function buildsOf(others: readonly string[]): Build[] {
  return [ownBuild, ...others.map(otherBuild)]
}

/** Starts our server on ports of its own; `settings` as of --set. Its root is new, or in the folder that stays. */
export function startPenstock(settings: readonly string[] = [], keep?: string): Promise<Peer> {
  return startBuild(ownBuild, settings, keep)
}

/** Starts another build of Penstock, the clone in `folder` after `npm run build`. */
export function startOtherBuild(folder: string, settings: readonly string[] = [], keep?: string): Promise<Peer> {
  return startBuild(otherBuild(folder), settings, keep)
}

/** Whether `folder` holds a build of Penstock. */
export function isBuild(folder: string): boolean {
  return existsSync(join(folder, 'dist/deploy/cli.js'))
}

/** Ours once more, which syncs nothing before it answers: so QuestDB commits. */
export function startUnsynced(settings: readonly string[] = []): Promise<Peer> {
  return startBuild({ ...ownBuild, name: 'unsynced', offset: 8 }, ['wal.commit.mode=nosync', ...settings])
}

export async function startBuild(
  { name, folder, offset }: Build,
  settings: readonly string[] = [],
  keep?: string,
  options: StartOptions = {},
): Promise<Peer> {
  const root = rootOf(name, keep)
  const [httpPort, linePort, healthPort, pgPort] = ports(offset)
  const own = [
    `http.net.bind.to=127.0.0.1:${httpPort}`,
    `line.tcp.net.bind.to=127.0.0.1:${linePort}`,
    `http.min.net.bind.to=127.0.0.1:${healthPort}`,
    `pg.net.bind.to=127.0.0.1:${pgPort}`,
  ]
  const sets = [...own, ...settings].flatMap((setting) => ['--set', setting])
  const args = [...startFlags(folder), join(folder, 'dist/deploy/cli.js'), 'start', '-d', root, ...sets]
  const server = await startServer(name, process.execPath, args, { httpPort, linePort, pgPort }, options)
  return peer(server, root, keep !== undefined)
}

/** Flags of Node in the `npm start` of a build: older ones have some. */
function startFlags(folder: string): string[] {
  const { scripts } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as { scripts: { start: string } }
  return scripts.start.split(' ').filter((word) => word.startsWith('--'))
}

/** Starts QuestDB with two workers. */
export function startQuestdb(keep?: string): Promise<Peer> {
  return startTheirs('questdb', 4, [], keep)
}

/** QuestDB once more, which syncs before it answers: so ours and PostgreSQL commit. */
export function startSyncedQuestdb(): Promise<Peer> {
  return startTheirs('synced questdb', 12, ['cairo.commit.mode=sync'], undefined)
}

async function startTheirs(
  name: string,
  offset: number,
  settings: readonly string[],
  keep: string | undefined,
): Promise<Peer> {
  const root = rootOf(name.replace(' ', '-'), keep)
  const [httpPort, linePort, pgPort] = ports(offset)
  const conf = [
    `http.net.bind.to=127.0.0.1:${httpPort}`,
    `line.tcp.net.bind.to=127.0.0.1:${linePort}`,
    'http.min.enabled=false',
    `pg.net.bind.to=127.0.0.1:${pgPort}`,
    'shared.worker.count=2',
    'telemetry.enabled=false',
    ...settings,
  ]
  mkdirSync(join(root, 'conf'), { recursive: true })
  writeFileSync(join(root, 'conf', 'server.conf'), `${conf.join('\n')}\n`)
  const modules = [
    '--add-exports',
    'java.base/jdk.internal.math=io.questdb',
    '-p',
    questdbLibrary(),
    '-m',
    'io.questdb/io.questdb.ServerMain',
    '-d',
    root,
  ]
  return peer(await startServer(name, 'java', modules, { httpPort, linePort, pgPort }), root, keep !== undefined)
}

/** Starts PostgreSQL as it comes, with a cluster of its own; null where there is none. */
export async function startPostgresql(): Promise<Peer | null> {
  const bin = postgresqlFolder()
  if (bin === null) return null
  const root = newRoot('postgresql')
  const [, , , pgPort] = ports(4)
  // It refuses to run as root.
  const user = process.getuid?.() === 0 ? { uid: nobody, gid: nobody } : undefined
  if (user !== undefined) chownSync(root, user.uid, user.gid)
  const data = join(root, 'data')
  const made = ['-D', data, '-U', 'admin', '-A', 'trust', '-E', 'UTF8', '--locale=C']
  execFileSync(join(bin, 'initdb'), made, { stdio: ['ignore', 'ignore', 'inherit'], cwd: root, ...user })
  const listening = ['-c', 'listen_addresses=127.0.0.1', '-c', `port=${pgPort}`, '-c', 'unix_socket_directories=']
  const started = ['-D', data, ...listening, '-c', 'log_min_messages=panic']
  const server = await startServer(
    'postgresql',
    join(bin, 'postgres'),
    started,
    { httpPort: 0, linePort: 0, pgPort },
    user === undefined ? {} : { user },
  )
  await createDatabase(bin, pgPort)
  return peer(server, root, false)
}

async function createDatabase(bin: string, port: number): Promise<void> {
  for (let attempt = 0; ; attempt++) {
    try {
      execFileSync(join(bin, 'createdb'), ['-h', '127.0.0.1', '-p', `${port}`, '-U', 'admin', 'qdb'], {
        stdio: 'ignore',
      })
      return
    } catch (error) {
      if (attempt === 100) throw error
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
  }
}

const nobody = 65_534

function postgresqlFolder(): string | null {
  const folder = '/usr/lib/postgresql'
  const [newest] = existsSync(folder) ? readdirSync(folder).sort((a, b) => Number(b) - Number(a)) : []
  const bin = newest === undefined ? null : join(folder, newest, 'bin')
  return bin !== null && existsSync(join(bin, 'initdb')) ? bin : null
}

/** The folder with QuestDB's modules; fetched at first use. */
function questdbLibrary(): string {
  const folder = join(tmpdir(), `penstock-bench-peer-${questdbVersion}`)
  if (existsSync(join(folder, 'lib'))) return join(folder, 'lib')
  mkdirSync(folder, { recursive: true })
  const dependency = `<dependency><groupId>org.questdb</groupId><artifactId>questdb</artifactId><version>${questdbVersion}</version></dependency>`
  const head =
    '<modelVersion>4.0.0</modelVersion><groupId>peer</groupId><artifactId>peer</artifactId><version>1</version>'
  writeFileSync(join(folder, 'pom.xml'), `<project>${head}<dependencies>${dependency}</dependencies></project>`)
  execFileSync('mvn', ['-q', '-f', join(folder, 'pom.xml'), 'dependency:copy-dependencies', '-DoutputDirectory=lib'], {
    stdio: 'inherit',
  })
  return join(folder, 'lib')
}
