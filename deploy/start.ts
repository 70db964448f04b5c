// `penstock start`: runs the server in the foreground, as one process, until a signal ends it.

import { setFlagsFromString } from 'node:v8'
import type { Log } from '../engine/base/log.js'
import type { Engine, EngineOptions } from '../engine/engine.js'
import { type BindAddress, bindAddressText } from '../gateways/common/bind-address.js'
import type { ServerLog } from './log.js'
import { type Server, startServer } from './main.js'
import { openRoot } from './opened-root.js'
import { openServiceManager, type ServiceManager } from './service-manager.js'

export interface StartOptions {
  readonly root: string
  readonly assignments: readonly string[]
  readonly version: string
}

/**
 * A second signal within this time in ms is a duplicate: npm forwards signals that the terminal sends to us as well.
 */
const sameSignalMs = 500
/** Time in ms to write the log before the process ends after a fatal error. */
const fatalExitMs = 500
/** Interval in ms at which a server that npm started checks whether npm still runs. */
const launcherMs = 200

/** Percentage by which a heap may grow before it is marked. */
const growthPercent = 300

/** Process id of npm's shell, or of whatever started this process. */
const launcher = process.ppid

export async function start({ root, assignments, version }: StartOptions): Promise<void> {
  const begunMs = performance.now()
  const manager = openServiceManager(
    process.env,
    (reason) => void process.stderr.write(`penstock: systemd cannot be notified: ${reason}\n`),
  )
  manager.status('starting')
  const { path, lock, live, logging, warnings } = await openRoot({
    ...{ root, version, assignments },
    terminal: process.stdout.isTTY ? process.stdout : null,
    waiting: (text) => void process.stderr.write(`penstock: ${text}\n`),
  })
  const { log } = logging
  const executePath = live.current.values['http.context.execute']
  const fatal = (error: Error): void => endAtOnce(logging, error)
  lock.onLost(fatal)
  try {
    // The engine's code is loaded while the ports are bound.
    const loading = import('../engine/engine.js')
    const openEngine = async (options: EngineOptions): Promise<Engine> => (await loading).openEngine(options)
    const server = await startServer({ root: path, version, live, log, fatal, openEngine })
    relaxCollector()
    watchErrors(server, log)
    watchSignals(server, logging, manager, lock.release)
    process.on('SIGHUP', () => void live.reload())
    const readyMs = Math.round(performance.now() - begunMs)
    log('I', 'server', `ready [ms=${readyMs}, ${server.listeners.map(listenerText).join(', ')}]`)
    process.stdout.write(welcome(server, { version, root: path, executePath, warnings }))
    manager.ready()
  } catch (error) {
    log('C', 'server', `cannot start: ${error instanceof Error ? error.stack : String(error)}`)
    logging.flush()
    throw error
  }
}

function listenerText({ name, address }: Server['listeners'][number]): string {
  return `${name}=${bindAddressText(address)}`
}

interface Welcome {
  readonly version: string
  readonly root: string
  readonly executePath: string
  readonly warnings: readonly string[]
}

function welcome({ listeners }: Server, { version, root, executePath, warnings }: Welcome): string {
  const lines = [`Penstock ${version} is ready. Its data is in ${root}`]
  for (const listener of listeners) lines.push(`  ${listener.name.padEnd(14)} ${bindAddressText(listener.address)}`)
  const http = listeners.find(({ name }) => name === 'http')
  if (http !== undefined) {
    const url = `${http.secure ? 'https' : 'http'}://${bindAddressText(reachable(http.address))}`
    lines.push('Send the first line, then ask for it:')
    lines.push(`  curl '${url}/write' --data-binary 'weather,city=Oslo temperature=3.5'`)
    lines.push(`  curl -G '${url}${executePath}' --data-urlencode 'query=select * from weather'`)
  }
  for (const warning of warnings) lines.push(`WARNING: ${warning}`)
  lines.push('Ctrl-C ends the server.')
  return `${lines.join('\n')}\n`
}

/** An address by which this machine reaches a listener on all addresses. */
function reachable({ host, port }: BindAddress): BindAddress {
  return { host: host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host, port }
}

/** Logs and counts uncaught errors. The server continues, since acknowledged data is in the engine's log. */
function watchErrors(server: Server, log: Log): void {
  const unexpected = (kind: string) => (thrown: unknown) => {
    server.unhandledError()
    log('C', 'server', `${kind}: ${thrown instanceof Error ? thrown.stack : String(thrown)}`)
  }
  process.on('uncaughtException', unexpected('uncaught exception'))
  process.on('unhandledRejection', unexpected('unhandled rejection'))
}

function watchSignals(server: Server, logging: ServerLog, manager: ServiceManager, unlock: () => void): void {
  let firstMs = Number.NaN
  const stop = (signal: string): void => {
    if (!Number.isNaN(firstMs)) {
      if (performance.now() - firstMs < sameSignalMs) return
      logging.log('W', 'server', `${signal} again: exiting immediately`)
      logging.flush()
      process.exit(130)
    }
    firstMs = performance.now()
    logging.log('I', 'server', `${signal}: shutting down`)
    manager.stopping()
    void shutDown(server, logging, unlock)
  }
  process.on('SIGINT', stop)
  process.on('SIGTERM', stop)
  if (startedByNpm(process.env)) whenOrphaned(() => stop('npm has ended'))
}

/** True for `npm start` and `npx penstock`, but not for another command of npx that starts a server. */
function startedByNpm({ npm_lifecycle_event: event, npm_lifecycle_script: script = '' }: NodeJS.ProcessEnv): boolean {
  return event === 'start' || (event === 'npx' && /^['"]?penstock\b/.test(script))
}

/** Calls `report` when the parent process has ended: npm and its shell end on a signal, but do not forward it. */
function whenOrphaned(report: () => void): void {
  const timer = setInterval(() => {
    if (process.ppid === launcher) return
    clearInterval(timer)
    report()
  }, launcherMs)
  timer.unref()
}

async function shutDown(server: Server, { log, flush }: ServerLog, unlock: () => void): Promise<void> {
  let status = 0
  // The compiled code that the threads save at their end is for the flags of a start: see load-program.js.
  setGrowth(0)
  try {
    await server.close()
    log('I', 'server', 'ended')
  } catch (error) {
    log('C', 'server', `shutdown failed: ${error instanceof Error ? error.stack : String(error)}`)
    status = 1
  }
  flush()
  unlock()
  process.exit(status)
}

function endAtOnce({ log, flush }: ServerLog, error: Error): void {
  log('C', 'server', `the engine cannot continue: ${error.stack ?? error.message}`)
  flush()
  process.stderr.write(`penstock: the engine cannot continue: ${error.message}\n`)
  setTimeout(() => process.exit(1), fatalExitMs)
}

/**
 * Tunes V8's garbage collector for this process. Rows, pages and results are in shared memory, so the JavaScript heaps
 * are small, and V8 by default lets a small heap grow only little before it marks all of it. Buffers read from sockets
 * count as heap growth, so line protocol would trigger a full marking every few megabytes.
 *
 * V8 reads the flag at each collection. It is set after all threads have started, because V8 rejects the code
 * cache of its own modules if flags differ from those with which it was created.
 */
function relaxCollector(): void {
  setGrowth(growthPercent)
}

/** 0: as V8 decides. */
function setGrowth(percent: number): void {
  setFlagsFromString(`--heap-growing-percent=${percent}`)
}
