// Goal: only one server can use a root folder, and a killed server leaves nothing that prevents the next start.

import { spawnSync } from 'node:child_process'
import fs, { mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
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

test('no lock file is ever seen without its content, and what a killed start leaves goes', async () => {
  const root = newRoot()
  writeFileSync(join(root, 'server.0a1b2c3d.lock.new'), '')
  const written: string[] = []
  const { writeFileSync: write } = fs
  fs.writeFileSync = (path, ...rest) => {
    written.push(basename(String(path)))
    write(path, ...rest)
  }
  syncBuiltinESMExports()
  const lock = await lockRoot(root).finally(() => {
    fs.writeFileSync = write
    syncBuiltinESMExports()
  })
  const [name, ...more] = readdirSync(root).filter((each) => each.includes('.lock'))
  expect(more).toEqual([])
  // It is written under another name, and gets its own as a whole.
  expect(written.length).toBeGreaterThan(0)
  expect(written).not.toContain(name)
  expect(JSON.parse(readFileSync(join(root, String(name)), 'utf8'))).toMatchObject({ pid: process.pid })
  lock.release()
})
