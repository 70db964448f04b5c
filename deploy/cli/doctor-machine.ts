// Checks of `penstock doctor` on the machine: versions, limits, memory, clock, disk, ports. Each check returns
// findings. The only file that is written is one below the root's tmp/, to measure the disk.

import { spawnSync } from 'node:child_process'
import { closeSync, fsyncSync, openSync, readFileSync, rmSync, statfsSync, writeSync } from 'node:fs'
import { createServer } from 'node:net'
import { totalmem } from 'node:os'
import { join } from 'node:path'
import { freeBytesMin, machineBytes, memoryBytes } from '../settings/machine.js'
import type { Settings } from '../settings/settings.js'

export interface Finding {
  /** `problem`: a server cannot start or loses something. `warning`: it runs worse than it could, or not for long. */
  readonly level: 'ok' | 'warning' | 'problem'
  readonly subject: string
  readonly text: string
  /** What to do; empty where nothing has to be done. */
  readonly advice: string
}

export const found = (level: Finding['level'], subject: string, text: string, advice = ''): Finding => {
  return { level, subject, text, advice }
}

const MIB = 1024 ** 2
/** A sync of a disk with a cache that survives power cuts takes less than a millisecond. */
const slowSyncMs = 20
const filesMin = 4096
/** Part of the disk below which a warning is due. */
const lowShare = 0.1

export function checkNode(): Finding {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
  if (major > 20 || (major === 20 && minor >= 19)) return found('ok', 'Node.js', process.versions.node)
  return found('problem', 'Node.js', `${process.versions.node} is too old`, 'install 20.19 or newer')
}

/** The limits of this process: a service has its own (LimitNOFILE). */
export function checkFileLimit(limits = procText('/proc/self/limits')): Finding[] {
  const [, soft] = /^Max open files +(\d+|unlimited)/m.exec(limits) ?? []
  if (soft === undefined) return []
  if (soft === 'unlimited' || Number(soft) >= filesMin) return [found('ok', 'open files', `${soft} permitted`)]
  const advice = `ulimit -n 65536 in the shell, or LimitNOFILE=65536 in the unit of systemd`
  return [found('warning', 'open files', `only ${soft} permitted: a connection and a file each need one`, advice)]
}

export function checkMemory(settings: Settings): Finding {
  const machine = machineBytes()
  const shared = memoryBytes(settings['memory.bytes'], machine)
  const text = `${mib(shared)} of shared memory (memory.bytes), ${mib(machine)} in the machine`
  // Heaps of the threads, buffers of connections, and the page cache.
  if (shared + 512 * MIB > machine) {
    const advice = 'lower memory.bytes, or give the container more memory'
    return found('warning', 'memory', `${text}: too little is left for the process and the page cache`, advice)
  }
  return found('ok', 'memory', machine < totalmem() ? `${text}, by the limit of the container` : text)
}

export function checkKernel(): Finding[] {
  const overcommit = procText('/proc/sys/vm/overcommit_memory').trim()
  const findings: Finding[] = []
  if (overcommit === '2') {
    const advice = 'sysctl vm.overcommit_memory=0'
    const text = 'the kernel refuses to overcommit: reserving address space may fail'
    findings.push(found('warning', 'memory', text, advice))
  }
  const backlog = procText('/proc/sys/net/core/somaxconn').trim()
  if (backlog !== '' && Number(backlog) < 1024) {
    const text = `only ${backlog} connections may wait to be accepted`
    findings.push(found('warning', 'connections', text, 'sysctl net.core.somaxconn=4096'))
  }
  return findings
}

/** `newestMs` is the latest time of change of a file in the root; 0 for none. */
export function checkClock(newestMs: number, nowMs = Date.now()): Finding {
  const now = new Date(nowMs).toISOString()
  if (nowMs < Date.UTC(2024, 0)) return found('problem', 'clock', `it is ${now} here`, 'set the clock; use NTP')
  if (newestMs > nowMs + 60_000) {
    const text = `it is ${now} here, but a file of the root was written at ${new Date(newestMs).toISOString()}`
    return found('warning', 'clock', text, 'set the clock: TTL and default timestamps of rows follow it')
  }
  const { stdout } = spawnSync('timedatectl', ['show', '-p', 'NTPSynchronized', '--value'], { timeout: 2000 })
  if (String(stdout).trim() === 'no')
    return found('warning', 'clock', 'it is not synchronised', 'enable NTP: timedatectl set-ntp true')
  return found('ok', 'clock', now)
}

export function checkSpace(settings: Settings, folder: string): Finding[] {
  const { blocks, bavail, bsize, files, ffree } = statfsSync(folder)
  const [size, free] = [blocks * bsize, bavail * bsize]
  const floor = freeBytesMin(settings['disk.free.bytes.min'], folder)
  const text = `${mib(free)} of ${mib(size)} free`
  const findings: Finding[] = []
  if (free < floor) {
    const what = `${text}: less than disk.free.bytes.min (${mib(floor)}), so rows are rejected`
    findings.push(found('problem', 'disk space', what, 'free space, or drop old partitions'))
  } else if (free < size * lowShare)
    findings.push(found('warning', 'disk space', text, 'plan for more, or set a TTL on large tables'))
  else findings.push(found('ok', 'disk space', text))
  if (files > 0 && ffree < 10_000) {
    const level = ffree === 0 ? 'problem' : 'warning'
    findings.push(found(level, 'disk space', `${ffree} inodes free`, 'remove small files: each part is a file'))
  }
  return findings
}

/** Times a few syncs of 4 KB below the root's tmp/. */
export function checkDiskSpeed(folder: string): Finding {
  const path = join(folder, `doctor-${process.pid}`)
  const file = openSync(path, 'w')
  const times: number[] = []
  try {
    const block = Buffer.alloc(4096)
    for (let n = 0; n < 9; n++) {
      const begin = performance.now()
      writeSync(file, block)
      fsyncSync(file)
      times.push(performance.now() - begin)
    }
  } finally {
    closeSync(file)
    rmSync(path, { force: true })
  }
  const ms = times.toSorted((a, b) => a - b)[4] ?? 0
  const text = `a sync takes ${ms.toFixed(ms < 10 ? 2 : 0)} ms`
  if (ms < slowSyncMs) return found('ok', 'disk speed', text)
  const advice =
    'small commits wait for it: let clients send more rows in a request, or use a disk with a protected cache'
  return found('warning', 'disk speed', text, advice)
}

export async function checkPorts(settings: Settings): Promise<Finding[]> {
  const keys = ['http', 'pg', 'line.tcp', 'http.min'] as const
  const findings: Finding[] = []
  for (const key of keys) {
    if (!settings[`${key}.enabled`]) continue
    const { host, port } = settings[`${key}.net.bind.to`]
    const code = port === 0 ? null : await bindError(host, port)
    const subject = `port ${port}`
    if (code === null) findings.push(found('ok', subject, `free on ${host} (${key}.net.bind.to)`))
    else
      findings.push(
        found('problem', subject, reasons[code] ?? code, `set ${key}.net.bind.to, or end the other program`),
      )
  }
  return findings
}

const reasons: Readonly<Record<string, string>> = {
  EADDRINUSE: 'another program listens there',
  EACCES: 'no permission: ports below 1024 need it',
  EADDRNOTAVAIL: 'this machine does not have that address',
}

/** Null: the port can be bound. */
function bindError(host: string, port: number): Promise<string | null> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message))
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(null)))
  })
}

function procText(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

function mib(bytes: number): string {
  return bytes < 10 * 1024 * MIB ? `${Math.round(bytes / MIB)} MiB` : `${Math.round(bytes / 1024 / MIB)} GiB`
}
