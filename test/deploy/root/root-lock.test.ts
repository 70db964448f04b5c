// Goal: only one server can use a root folder, and a killed server leaves nothing that prevents the next start.

import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, realpathSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { lockRoot } from '../../../deploy/root/root-lock.js'

function newRoot(name = ''): string {
  const root = join(realpathSync(mkdtempSync(join(tmpdir(), 'penstock-lock-'))), name)
  mkdirSync(join(root, 'tmp'), { recursive: true })
  return root
}

test.each([['', 'a'.repeat(120)]].flat())('a second server is refused, until the first lets go [%s]', async (name) => {
  const root = newRoot(name)
  const lock = await lockRoot(root)
  await expect(lockRoot(root)).rejects.toThrow(`another server uses the folder ${root}`)
  lock.release()
  const next = await lockRoot(root)
  next.release()
})

test('the socket of a killed server is replaced', async () => {
  const root = newRoot()
  const path = JSON.stringify(join(root, 'tmp', 'server.sock'))
  const program = `require('node:net').createServer().listen(${path}, () => process.kill(process.pid, 'SIGKILL'))`
  expect(spawnSync(process.execPath, ['-e', program]).signal).toBe('SIGKILL')
  const lock = await lockRoot(root)
  lock.release()
})
