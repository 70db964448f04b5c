// Parses the record in the lock file of a root folder and decides from it whether the process that holds the lock is
// still alive.
//
// `server.<n>.lock` in the root is one JSON object. A later holder has a larger n: it creates its file exclusively
// (root-lock.ts) and removes those of its predecessors.
//
//   token                unique to this lock
//   purpose              server, check, restore, ..
//   pid, started         the process and its start time, which distinguishes it from a later process with the same pid
//   boot                 id of the kernel's boot; null where the system does not provide one
//   networkNamespace, pidNamespace   of Linux: which sockets and which processes the holder sees
//   device, inode        of the root folder as the holder sees it
//   socket               inode of tmp/server.sock, on which the holder listens; null: none
//   host                 for people
//
// The holder sets the modification time of the file every second. A process that cannot decide by these fields (on
// another machine, for example) watches that time.

import { spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { type BigIntStats, readFileSync, readlinkSync, statfsSync } from 'node:fs'
import { hostname } from 'node:os'

export interface Holder {
  readonly token: string
  readonly purpose: string
  readonly pid: number
  readonly started: string | null
  readonly boot: string | null
  readonly networkNamespace: string | null
  readonly pidNamespace: string | null
  readonly device: string
  readonly inode: string
  readonly socket: string | null
  readonly host: string
}

/** 'unknown': the holder may be on another machine, or in another process namespace. */
export type Liveness = 'alive' | 'dead' | 'unknown'

/** File systems that only one kernel at a time can mount, by the magic number of statfs. */
const localFileSystems: ReadonlySet<number> = new Set([
  0xef53, // ext2, ext3, ext4
  0x58465342, // xfs
  0x9123683e, // btrfs
  0xf2f52010, // f2fs
  0x2fc12fc1, // zfs
  0xca451a4e, // bcachefs
  0x01021994, // tmpfs
  0x794c7630, // overlayfs
])

/** The record of this process. */
export function ownRecord(root: BigIntStats, purpose: string, socket: string | null): Holder {
  return {
    token: randomBytes(8).toString('hex'),
    purpose,
    pid: process.pid,
    started: processStart(process.pid)?.started ?? null,
    boot: bootId(),
    networkNamespace: namespaceOf('net'),
    pidNamespace: namespaceOf('pid'),
    device: String(root.dev),
    inode: String(root.ino),
    socket,
    host: hostname(),
  }
}

/** Null: incomplete, or of another version of this format. */
export function parseRecord(text: string): Holder | null {
  try {
    const value = JSON.parse(text) as Partial<Holder> | null
    const isWhole = typeof value?.token === 'string' && typeof value.pid === 'number' && typeof value.host === 'string'
    return isWhole ? (value as Holder) : null
  } catch {
    return null
  }
}

export function holderText({ purpose, pid, host }: Holder): string {
  return `[${purpose === 'server' ? '' : `by=penstock ${purpose}, `}process=${pid}, host=${host}]`
}

/**
 * `own`: the record of this process. `excluded`: whether this process holds the kernel's lock of the folder, so that
 * no process in its network namespace can. `isSocketDeaf`: whether the holder's socket exists and nobody listens on
 * it.
 */
export function judge(
  holder: Holder,
  own: Holder,
  { root, excluded, isSocketDeaf }: { root: string; excluded: boolean; isSocketDeaf: (inode: string) => boolean },
): Liveness {
  if (own.boot === null) return judgeProcess(holder)
  const isLocal = isLocalFolder(root)
  // A local file system is mounted by one kernel at a time, so the other one is down.
  if (holder.boot !== own.boot) return isLocal ? 'dead' : 'unknown'
  const isSameFolder = holder.device === own.device && holder.inode === own.inode
  // The file was copied with its folder.
  if (!isSameFolder && isLocal) return 'dead'
  if (isSameFolder && excluded && holder.networkNamespace === own.networkNamespace) return 'dead'
  if (holder.pidNamespace === own.pidNamespace) return judgeProcess(holder)
  return holder.socket !== null && isSocketDeaf(holder.socket) ? 'dead' : 'unknown'
}

/** Judges by the process table, which both processes share. */
function judgeProcess({ pid, started }: Holder): Liveness {
  const found = processStart(pid)
  if (found === null) return 'dead'
  if (found.started === null || started === null) return 'unknown'
  return found.started === started && !found.hasEnded ? 'alive' : 'dead'
}

/** Null: there is no such process. `started` null: the system does not provide it. */
function processStart(pid: number): { started: string | null; hasEnded: boolean } | null {
  if (process.platform === 'linux') return linuxProcessStart(pid)
  if (!exists(pid)) return null
  if (process.platform === 'win32') return { started: null, hasEnded: false }
  const { stdout } = spawnSync('ps', ['-o', 'lstart=', '-p', String(pid)], { encoding: 'utf8' })
  return { started: stdout?.trim() || null, hasEnded: false }
}

/** Clock ticks since boot (field 22); the command's name, in parentheses, may contain blanks. */
function linuxProcessStart(pid: number): { started: string | null; hasEnded: boolean } | null {
  const stat = textOf(`/proc/${pid}/stat`)
  // Processes of other users may be hidden.
  if (stat === null) return exists(pid) ? { started: null, hasEnded: false } : null
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const threads = Number(fields[17])
  // A killed process is a zombie until its last thread has ended.
  return { started: fields[19] ?? '', hasEnded: /[ZX]/.test(fields[0] ?? '') && threads <= 1 }
}

function exists(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH'
  }
}

function bootId(): string | null {
  if (process.platform === 'linux') return textOf('/proc/sys/kernel/random/boot_id')?.trim() ?? null
  if (process.platform !== 'darwin') return null
  const { stdout } = spawnSync('sysctl', ['-n', 'kern.bootsessionuuid'], { encoding: 'utf8' })
  return stdout?.trim() || null
}

function namespaceOf(kind: 'net' | 'pid'): string | null {
  try {
    return readlinkSync(`/proc/self/ns/${kind}`)
  } catch {
    return null
  }
}

function isLocalFolder(path: string): boolean {
  if (process.platform !== 'linux') return false
  try {
    return localFileSystems.has(statfsSync(path).type)
  } catch {
    return false
  }
}

function textOf(path: string): string | null {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return null
  }
}
