// Goal: a server that systemd starts reports that it is ready, alive and stopping. Method: a fake program
// `systemd-notify` in the path records its arguments; .ci/run tests the real one.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { openServiceManager } from '../../deploy/service-manager.js'
import { command } from '../support/server.js'

const folder = mkdtempSync(join(tmpdir(), 'penstock-notify-'))
const written = join(folder, 'messages')
const program = join(folder, 'systemd-notify')
const environment = { PATH: `${folder}:${process.env['PATH']}`, NOTIFY_SOCKET: '/run/systemd/notify' }

afterEach(() => rmSync(written, { force: true }))

function fakeProgram(): void {
  writeFileSync(program, `#!/bin/sh\nfor word; do printf '%s\\n' "$word"; done >>'${written}'\n`)
  chmodSync(program, 0o755)
  writeFileSync(written, '')
}

const messages = (): readonly string[] => readFileSync(written, 'utf8').split('\n').slice(0, -1)

test.skipIf(process.platform === 'win32')('a server reports its start, its life and its end', async () => {
  fakeProgram()
  const sets = ['http.net.bind.to', 'http.min.net.bind.to', 'line.tcp.net.bind.to', 'pg.net.bind.to'].flatMap((key) => [
    ...['--set', `${key}=127.0.0.1:0`],
  ])
  const server = spawn(process.execPath, [command, 'start', '-d', join(folder, 'root'), ...sets], {
    stdio: 'ignore',
    env: { ...process.env, ...environment, WATCHDOG_USEC: '100000' },
  })
  try {
    await expect.poll(() => messages().filter((text) => text === 'WATCHDOG=1').length).toBeGreaterThan(2)
    const beforeReady = messages().slice(0, messages().indexOf('READY=1'))
    expect(beforeReady).toEqual(['STATUS=starting'])
    expect(messages()).toContain('STATUS=ready')
    expect(messages()).not.toContain('STOPPING=1')
  } finally {
    server.kill('SIGTERM')
  }
  expect(await once(server, 'close')).toEqual([0, null])
  await expect.poll(messages).toContain('STATUS=storing accepted rows')
  expect(messages()).toContain('STOPPING=1')
})

test.skipIf(process.platform === 'win32')('the watchdog is served for this process alone', async () => {
  fakeProgram()
  const watched = { ...environment, WATCHDOG_USEC: '4000', WATCHDOG_PID: '1' }
  const other = openServiceManager(watched, () => {})
  other.ready()
  other.stopping()
  await expect.poll(messages).toEqual(['READY=1', 'STATUS=ready', 'STOPPING=1', 'STATUS=storing accepted rows'])
})

test('without systemd nothing is started', () => {
  const reasons: string[] = []
  openServiceManager({ PATH: folder }, (reason) => reasons.push(reason)).ready()
  expect(reasons).toEqual([])
})
