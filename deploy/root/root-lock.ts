// Locks a root folder, so that only one server writes to it. The lock belongs to the folder itself, whatever path
// leads to it, and does not depend on a name that somebody can remove:
//
//   1. On Linux the kernel holds it: a socket in the abstract namespace, named after device and inode of the folder,
//      exists as long as its process. It excludes processes of the same network namespace, and a killed process leaves
//      nothing behind. The folder db/ has a socket of its own, since two roots may share it.
//   2. Other network namespaces (containers) and machines are excluded by a file, `server.<n>.lock`: the process that
//      creates the file with the next number, exclusively, holds the lock. lock-record.ts decides by the file's content
//      whether the holder is alive. If it cannot decide, the time of the file is watched: a holder that does not update
//      it for 15 s is considered dead. A holder that was suspended terminates when it finds the file of a later holder.
//   3. tmp/server.sock: a holder that listens on it is reachable across the namespaces of one kernel.
//
// On systems other than Linux, the file and the socket decide. If no lock file can be written, as on a full disk, the
// process starts without it, with a warning.

import { randomBytes } from 'node:crypto'
import {
  type BigIntStats,
  closeSync,
  constants,
  existsSync,
  linkSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { connect, createServer, type Server } from 'node:net'
import { join } from 'node:path'
import { type Holder, holderText, judge, ownRecord, parseRecord } from './lock-record.js'

export interface RootLock {
  /** Log messages about processes that the lock cannot exclude. */
  readonly warnings: readonly string[]
  /** The listener is called when another process has taken the folder over. */
  onLost(listener: (error: Error) => void): void
  release(): void
}

export interface LockOptions {
  /** What the lock is for, as reported to others. */
  readonly purpose?: string
  /** Called when the start has to wait for a holder that cannot be judged. */
  readonly waiting?: (text: string) => void
  /** How long such a holder may be silent. */
  readonly silentMs?: number
}

/** Another process holds the folder. */
export class FolderInUse extends Error {}

const silentMsDefault = 15_000
const heartbeatMs = 1000
const lookMs = 200
/** A killed process may hold the name until its memory has been released. */
const endingMs = 1000
const endingLookMs = 20
/** Length of a local socket's address. Names are padded, because versions of Node pad them differently. */
const abstractNameBytes = 108
/** Maximum length of a local socket's path on every system. */
const socketPathBytesMax = 100
/** Sockets left by failed starts. */
const socketPattern = /^server\.[0-9a-f]{8}\.sock$/
const lockPattern = /^server\.(\d+)\.lock$/
/** Left by starts that were killed. */
const unfinishedPattern = /^server\.[0-9a-f]{8}\.lock\.new$/
/** The file system has no hard links. */
const linkless = new Set(['EPERM', 'ENOSYS', 'ENOTSUP', 'EOPNOTSUPP', 'EMLINK'])
/** The folder rejects new files, although db/ in it may be usable. */
const unwritable = new Set(['ENOSPC', 'EDQUOT', 'EROFS', 'EACCES', 'EPERM'])

/** Rejects with FolderInUse when another process holds the folder. `root`: an existing folder. */
export async function lockRoot(root: string, options: LockOptions = {}): Promise<RootLock> {
  const closers: (() => void)[] = []
  try {
    return await acquire(root, options, closers)
  } catch (error) {
    closeAll(closers)
    throw error
  }
}

/** Whether a process uses the root folder. */
export async function isServed(root: string): Promise<boolean> {
  if (!existsSync(root)) return false
  if (process.platform === 'linux' && (await responds(abstractName(statSync(root, { bigint: true }))))) return true
  if (await atSocket(root, (path) => responds(path))) return true
  const found = newest(root)
  if (found?.holder == null) return false
  const own = ownRecord(statSync(root, { bigint: true }), '', null)
  return (await judgeHolder(root, found.holder, own)) !== 'dead'
}

async function acquire(root: string, options: LockOptions, closers: (() => void)[]): Promise<RootLock> {
  const purpose = options.purpose ?? 'server'
  const stats = statSync(root, { bigint: true })
  for (const folder of [root, join(root, 'db')]) await takeKernelName(root, folder, closers)
  if (await atSocket(root, (path) => responds(path))) throw inUse(root, newest(root)?.holder ?? null)
  const socket = purpose === 'server' ? await listenInFolder(root, closers) : null
  const own = ownRecord(stats, purpose, socket?.inode ?? null)
  const number = await claim(root, own, options)
  if (number === null) {
    const reason = 'no lock file can be written: containers and machines that share it are not kept out'
    return { warnings: [`${reason} [folder=${root}]`], onLost: () => {}, release: () => closeAll(closers) }
  }
  closers.push(() => rmSync(lockPath(root, number), { force: true }))
  socket?.publish()
  const heartbeat = new Heartbeat(root, number, own)
  closers.push(() => heartbeat.end())
  return {
    warnings: [],
    onLost: (listener) => {
      heartbeat.lost = listener
    },
    release: () => closeAll(closers),
  }
}

function closeAll(closers: (() => void)[]): void {
  for (let close = closers.pop(); close !== undefined; close = closers.pop()) close()
}

function inUse(root: string, holder: Holder | null): FolderInUse {
  return new FolderInUse(`another server uses the folder ${root}${holder === null ? '' : ` ${holderText(holder)}`}`)
}

/** Does nothing where the system has no such names or the folder does not exist. */
async function takeKernelName(root: string, folder: string, closers: (() => void)[]): Promise<void> {
  if (process.platform !== 'linux' || !existsSync(folder)) return
  const name = abstractName(statSync(folder, { bigint: true }))
  const deadlineMs = performance.now() + endingMs
  for (;;) {
    const server = await listenOn(name)
    if (server !== null) {
      closers.push(() => server.close())
      return
    }
    if (performance.now() > deadlineMs) throw inUse(root, newest(root)?.holder ?? null)
    await pause(endingLookMs)
  }
}

function abstractName({ dev, ino }: BigIntStats): string {
  return `\0penstock-${dev}-${ino}-`.padEnd(abstractNameBytes, '.')
}

/**
 * Listens under a temporary name, which `publish` renames to the public one. Null: the folder does not support
 * sockets.
 */
async function listenInFolder(
  root: string,
  closers: (() => void)[],
): Promise<{ inode: string; publish: () => void } | null> {
  const folder = join(root, 'tmp')
  const name = `server.${randomBytes(4).toString('hex')}.sock`
  const known = join(folder, 'server.sock')
  const opened = openFolder(folder)
  if (opened === null) return null
  const server = await listenOn(`${opened.path}/${name}`).catch(() => null)
  if (server === null) {
    opened.close()
    return null
  }
  const inode = inodeOf(join(folder, name))
  closers.push(() => {
    if (inode !== null && inodeOf(known) === inode) rmSync(known, { force: true })
    server.close(opened.close)
  })
  if (inode === null) return null
  const publish = (): void => {
    for (const other of readdirSync(folder))
      if (other !== name && socketPattern.test(other)) rmSync(join(folder, other), { force: true })
    renameSync(join(folder, name), known)
  }
  return { inode, publish }
}

/** A path to the folder that is short enough for sockets. Null: there is none. */
function openFolder(folder: string): { path: string; close: () => void } | null {
  const isShort = Buffer.byteLength(folder) <= socketPathBytesMax - 'server.12345678.sock'.length
  if (!existsSync(folder) || process.platform === 'win32') return null
  if (isShort) return { path: folder, close: () => {} }
  if (process.platform !== 'linux') return null
  const descriptor = openSync(folder, constants.O_RDONLY | constants.O_DIRECTORY)
  return { path: `/proc/self/fd/${descriptor}`, close: () => closeSync(descriptor) }
}

/** False where there is no socket. */
async function atSocket(root: string, ask: (path: string) => Promise<boolean>): Promise<boolean> {
  const opened = openFolder(join(root, 'tmp'))
  if (opened === null) return false
  try {
    return await ask(`${opened.path}/server.sock`)
  } finally {
    opened.close()
  }
}

/**
 * Creates the lock file with the next number once the newest one's holder is dead. Null when no file can be
 * written.
 */
async function claim(root: string, own: Holder, options: LockOptions): Promise<number | null> {
  for (;;) {
    const found = newest(root)
    if (found !== null) await awaitDeath(root, own, found, options)
    const number = (found?.number ?? 0) + 1
    try {
      createWhole(root, lockPath(root, number), `${JSON.stringify(own)}\n`)
    } catch (error) {
      const code = codeOf(error)
      if (code === 'EEXIST' || code === 'ENOENT') continue
      if (!unwritable.has(code)) throw error
      rmSync(lockPath(root, number), { force: true })
      return null
    }
    if (newest(root)?.number === number) {
      for (const older of numbers(root)) if (older < number) rmSync(lockPath(root, older), { force: true })
      for (const name of readdirSync(root)) if (unfinishedPattern.test(name)) rmSync(join(root, name), { force: true })
      return number
    }
    rmSync(lockPath(root, number), { force: true })
  }
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : ''
}

/**
 * Creates a file that no process ever sees without its content, even if this one is killed: the next start would have
 * to wait for a holder of which it knows nothing. Throws EEXIST if the file exists, and ENOENT if another start, which
 * has the lock now, has cleaned up.
 */
function createWhole(root: string, path: string, content: string): void {
  const unfinished = join(root, `server.${randomBytes(4).toString('hex')}.lock.new`)
  writeFileSync(unfinished, content, { flag: 'wx' })
  try {
    linkSync(unfinished, path)
  } catch (error) {
    if (!linkless.has(codeOf(error))) throw error
    writeFileSync(path, content, { flag: 'wx' })
  } finally {
    rmSync(unfinished, { force: true })
  }
}

interface LockFile {
  readonly number: number
  readonly holder: Holder | null
  /** Changes with every heartbeat. */
  readonly sign: string
}

/** Returns when the holder is dead or has left; throws when it is alive. */
async function awaitDeath(root: string, own: Holder, first: LockFile, options: LockOptions): Promise<void> {
  const { silentMs = silentMsDefault, waiting } = options
  const deadlineMs = performance.now() + silentMs
  let reported = false
  for (;;) {
    const now = newest(root)
    if (now === null || now.number !== first.number) return
    const judgement = now.holder === null ? 'unknown' : await judgeHolder(root, now.holder, own)
    if (judgement === 'dead') return
    if (judgement === 'alive' || now.sign !== first.sign) throw inUse(root, now.holder)
    if (performance.now() > deadlineMs) return
    if (!reported) waiting?.(`waits up to ${silentMs / 1000} s for a sign of ${lockPath(root, now.number)}'s holder`)
    reported = true
    await pause(lookMs)
  }
}

async function judgeHolder(root: string, holder: Holder, own: Holder): Promise<ReturnType<typeof judge>> {
  const isUnresponsive = !(await atSocket(root, (path) => responds(path)))
  const isSocketDeaf = (inode: string): boolean => isUnresponsive && inodeOf(join(root, 'tmp', 'server.sock')) === inode
  return judge(holder, own, { root, excluded: process.platform === 'linux', isSocketDeaf })
}

function lockPath(root: string, number: number): string {
  return join(root, `server.${number}.lock`)
}

function numbers(root: string): number[] {
  return readdirSync(root).flatMap((name) => Number(lockPattern.exec(name)?.[1] ?? []))
}

function newest(root: string): LockFile | null {
  const number = Math.max(0, ...numbers(root))
  if (number === 0) return null
  try {
    // Opened before its times are read, because network file systems otherwise return cached ones.
    const text = readFileSync(lockPath(root, number), 'utf8')
    const { mtimeNs } = statSync(lockPath(root, number), { bigint: true })
    return { number, holder: parseRecord(text), sign: `${mtimeNs} ${text}` }
  } catch {
    return null
  }
}

/** Signals that the holder is alive, and notices when it has lost the lock. */
class Heartbeat {
  lost: (error: Error) => void = () => {}
  readonly #root: string
  readonly #number: number
  readonly #own: Holder
  readonly #timer: NodeJS.Timeout

  constructor(root: string, number: number, own: Holder) {
    this.#root = root
    this.#number = number
    this.#own = own
    this.#timer = setInterval(() => this.#beat(), heartbeatMs)
    // The lock alone does not keep a process running.
    this.#timer.unref()
  }

  end(): void {
    clearInterval(this.#timer)
  }

  #beat(): void {
    const path = lockPath(this.#root, this.#number)
    try {
      const found = newest(this.#root)
      if (found === null) writeFileSync(path, `${JSON.stringify(this.#own)}\n`, { flag: 'wx' })
      else if (found.holder?.token === this.#own.token) utimesSync(path, new Date(), new Date())
      else if (found.holder !== null && found.number >= this.#number) {
        this.end()
        this.lost(
          new FolderInUse(`another process has taken over the folder ${this.#root} ${holderText(found.holder)}`),
        )
      }
    } catch {
      // Modules that write data report disk errors.
    }
  }
}

/** Null when the name is in use. */
function listenOn(path: string): Promise<Server | null> {
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => socket.destroy())
    server.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE') resolve(null)
      else reject(error)
    })
    server.listen(path, () => resolve(server.unref()))
  })
}

function responds(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path)
    socket.once('error', () => resolve(false))
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
  })
}

function inodeOf(path: string): string | null {
  try {
    return String(statSync(path, { bigint: true }).ino)
  } catch {
    return null
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
