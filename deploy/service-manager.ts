// Reports the state of the server to systemd, as units with `Type=notify` ask for: READY=1 when it serves, STOPPING=1
// when it ends, WATCHDOG=1 while the main thread runs. Does nothing without NOTIFY_SOCKET.
//
// The messages go to a Unix datagram socket, which Node.js cannot open. systemd's own program `systemd-notify` sends
// them, so the unit needs `NotifyAccess=all`. A shell that is started once, while the process is small, runs it for each
// line that it reads: starting a process from a server with gigabytes of memory would stop the main thread for long.
//
//   line   VARIABLE=VALUE, separated by tabs

import { spawn } from 'node:child_process'
import type { Writable } from 'node:stream'

export interface ServiceManager {
  status(text: string): void
  ready(): void
  stopping(): void
}

/** systemd ends all processes of a unit at the same time: the shell has to report until the server has ended. */
const script = `trap '' TERM INT
set -f
IFS=$(printf '\\t')
while read -r line; do
  systemd-notify $line
done`

const silent: ServiceManager = { status: () => {}, ready: () => {}, stopping: () => {} }

/** `failed` is called at most once, when nothing can be reported. */
export function openServiceManager(
  environment: Readonly<Record<string, string | undefined>>,
  failed: (reason: string) => void,
): ServiceManager {
  if ((environment['NOTIFY_SOCKET'] ?? '') === '') return silent
  const shell = spawn('/bin/sh', ['-c', script], { stdio: ['pipe', 'ignore', 'inherit'], env: environment })
  let input: Writable | null = shell.stdin
  const fail = (error: Error): void => {
    if (input === null) return
    input = null
    failed(error.message)
  }
  shell.once('error', fail)
  shell.stdin.on('error', fail)
  shell.unref()
  const send = (...messages: readonly string[]): void => void input?.write(`${messages.join('\t')}\n`)
  return {
    status: (text) => send(`STATUS=${text}`),
    ready: () => {
      send('READY=1', 'STATUS=ready')
      const everyMs = watchdogMs(environment)
      if (everyMs !== null) setInterval(() => send('WATCHDOG=1'), everyMs).unref()
    },
    stopping: () => send('STOPPING=1', 'STATUS=storing accepted rows'),
  }
}

/** Interval at which systemd wants a sign of life, halved; null if it wants none of this process. */
function watchdogMs({ WATCHDOG_USEC: usec, WATCHDOG_PID: pid }: Readonly<Record<string, string | undefined>>) {
  const ms = Number(usec) / 2000
  return ms >= 1 && (pid === undefined || Number(pid) === process.pid) ? ms : null
}
