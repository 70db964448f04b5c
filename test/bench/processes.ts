// Starts and stops the server processes that a benchmark measures, and reads their processor time and memory from
// /proc. Also runs modules of this folder, such as load generators, as processes, and queries a server over HTTP.

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { createInterface } from 'node:readline'

export interface Usage {
  readonly cpuSeconds: number
  readonly rssBytes: number
}

const ticksPerSecond = 100
const pageBytes = 4096

/**
 * Processor time so far (all threads) and resident memory of a process; `family`: with its children, ended ones too.
 */
export function usageOf(pid: number, family = false): Usage {
  const fields = statOf(pid)
  let ticks = Number(fields[11]) + Number(fields[12])
  if (family) {
    ticks += Number(fields[13]) + Number(fields[14])
    for (const child of childrenOf(pid)) ticks += usageOf(child).cpuSeconds * ticksPerSecond
  }
  return { cpuSeconds: ticks / ticksPerSecond, rssBytes: Number(fields[21]) * pageBytes }
}

/** Fields behind the name, as proc(5) has them from the third on. */
function statOf(pid: number): string[] {
  const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
  return text.slice(text.lastIndexOf(')') + 2).split(' ')
}

function childrenOf(pid: number): number[] {
  const text = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')
  return text.split(' ').filter(Boolean).map(Number)
}

/** A process that uses less than this part of a processor for so long has nothing to do: longer than ours rests. */
const quietPart = 0.05
const quietMs = 1500
const quietWaitMs = 60_000

/**
 * Until all of the servers have had nothing to do for a while: merges are done, code is compiled. A minute at most;
 * then it says so.
 */
export async function untilQuiet(servers: readonly RunningServer[], print: (line: string) => void): Promise<void> {
  const used = (): number[] => servers.map(({ pid }) => usageOf(pid, true).cpuSeconds)
  for (let waitedMs = 0; waitedMs < quietWaitMs; waitedMs += quietMs) {
    const before = used()
    await new Promise((resolve) => setTimeout(resolve, quietMs))
    if (used().every((now, index) => now - (before[index] as number) < (quietPart * quietMs) / 1000)) return
  }
  print(`measured although not all servers were quiet within ${quietWaitMs / 1000} s`)
}

export interface RunningServer {
  readonly name: string
  readonly pid: number
  readonly httpPort: number
  readonly linePort: number
  readonly pgPort: number
  stop(): Promise<void>
}

/** 0: the server has no such port. */
export type ServerPorts = Pick<RunningServer, 'httpPort' | 'linePort' | 'pgPort'>

export interface StartOptions {
  readonly user?: { readonly uid: number; readonly gid: number }
  /** The server is ready when it has printed this, and has been asked for nothing by then. */
  readonly readyText?: string
}

const children = new Set<ChildProcess>()
const signals = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 } as const
let isWatching = false

/** The process ends with the bench: also when a signal or an error ends that. */
function owned<Child extends ChildProcess>(child: Child): Child {
  if (!isWatching) {
    isWatching = true
    process.once('exit', () => {
      for (const one of children) one.kill('SIGTERM')
    })
    for (const [signal, code] of Object.entries(signals)) process.once(signal, () => process.exit(code))
  }
  children.add(child)
  child.once('exit', () => children.delete(child))
  return child
}

/** Starts a command and waits until its HTTP port answers, without one until its PostgreSQL port takes connections. */
export async function startServer(
  name: string,
  command: string,
  args: readonly string[],
  ports: ServerPorts,
  { user, readyText }: StartOptions = {},
): Promise<RunningServer> {
  const output = readyText === undefined ? 'ignore' : 'pipe'
  const child = owned(spawn(command, args, { stdio: ['ignore', output, 'inherit'], ...user }))
  if (readyText === undefined) await untilAnswers(child, ports)
  else await untilPrinted(child, readyText)
  return { name, pid: child.pid as number, ...ports, stop: () => stop(child) }
}

async function untilPrinted({ stdout }: ChildProcess, text: string): Promise<void> {
  let printed = ''
  for await (const chunk of stdout ?? []) {
    printed += chunk
    if (printed.includes(text)) return
  }
  throw new Error(`the server ended before it was ready: ${printed}`)
}

async function untilAnswers(child: ChildProcess, { httpPort, pgPort }: ServerPorts): Promise<void> {
  for (let attempt = 0; attempt < 4000; attempt++) {
    if (child.exitCode !== null) throw new Error(`the server ended with code ${child.exitCode}`)
    if (httpPort === 0 ? await connects(pgPort) : await responds(httpPort)) return
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  child.kill('SIGKILL')
  throw new Error('the server does not answer')
}

async function responds(port: number): Promise<boolean> {
  const answer = await fetch(`http://127.0.0.1:${port}/`).catch(() => null)
  await answer?.body?.cancel()
  // 503: the server starts.
  return answer !== null && answer.status !== 503
}

async function connects(port: number): Promise<boolean> {
  const socket = connect({ port, host: '127.0.0.1' })
  try {
    await once(socket, 'connect')
    return true
  } catch {
    return false
  } finally {
    socket.destroy()
  }
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return
  const ended = once(child, 'exit')
  child.kill('SIGTERM')
  await ended
}

/**
 * Runs a module of this folder as a process; calls `ready` at its first line and `done` at its second, before it has
 * ended, and gives its last line back.
 */
export async function runModule(
  module: string,
  argument: unknown,
  ready: () => void,
  done: () => void = () => {},
): Promise<string> {
  const url = new URL(module, import.meta.url)
  const child = owned(
    spawn(process.execPath, [url.pathname, JSON.stringify(argument)], { stdio: ['ignore', 'pipe', 'inherit'] }),
  )
  const ended = once(child, 'exit')
  const lines: string[] = []
  for await (const line of createInterface({ input: child.stdout })) {
    if (lines.length === 0) ready()
    if (lines.length === 1) done()
    lines.push(line)
  }
  const [code] = await ended
  if (code !== 0) throw new Error(`${module} ended with code ${code}`)
  return lines.at(-1) ?? ''
}

/** Starts a module of this folder as a process that goes on, and gives its first line back. */
export async function startModule(module: string): Promise<{ child: ChildProcess; line: string }> {
  const child = owned(
    spawn(process.execPath, [new URL(module, import.meta.url).pathname], { stdio: ['ignore', 'pipe', 'inherit'] }),
  )
  for await (const line of createInterface({ input: child.stdout })) return { child, line }
  throw new Error(`${module} ended before it was ready`)
}

/** The rows of a query over HTTP. Throws with the server's words when it is refused. */
export async function queryRows(port: number, sql: string): Promise<unknown[][]> {
  const answer = await fetch(`http://127.0.0.1:${port}/exec?query=${encodeURIComponent(sql)}`)
  const body = (await answer.json()) as { dataset?: unknown[][]; error?: string }
  if (body.dataset === undefined && body.error !== undefined) throw new Error(body.error)
  return body.dataset ?? []
}
