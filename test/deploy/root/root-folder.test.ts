// Goal: a folder that cannot contain a server's data, such as one below a file or a broken link, is rejected at once,
// with the reason.

import { spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { locateRoot, openRootFolder, rootBelow } from '../../../deploy/root/root-folder.js'
import { makeDirectories } from '../../../engine/base/files.js'

const isLinux = process.platform === 'linux'
const nobody = 65_534

function newFolder(): string {
  return mkdtempSync(join(tmpdir(), 'penstock-folder-'))
}

test('what is missing is made', () => {
  const root = join(newFolder(), 'a', 'b')
  expect(openRootFolder(root).path).toBe(root)
  for (const name of ['conf/server.conf', 'db', 'log', 'tmp']) expect(existsSync(join(root, name))).toBe(true)
})

test.runIf(isLinux).each([
  ['/proc/x', 'proc'],
  ['/proc/self/x/y', 'proc'],
  ['/proc', 'proc'],
  ['/sys/x', 'sysfs'],
])('%s is a file system of the kernel', (root, name) => {
  expect(() => locateRoot(root)).toThrow(`in a file system of the kernel (${name})`)
})

test.runIf(isLinux)('a file system that takes no folders is not asked for ever', () => {
  expect(() => makeDirectories('/proc/x')).toThrow('ENOENT')
  expect(() => makeDirectories('/proc/x/y')).toThrow('ENOENT')
})

test('a file in the place of a folder', () => {
  const file = join(newFolder(), 'file')
  writeFileSync(file, '')
  expect(() => locateRoot(file)).toThrow(`${file} is not a folder`)
  expect(() => locateRoot(join(file, 'root'))).toThrow(`${file} is not a folder`)
  const root = newFolder()
  writeFileSync(join(root, 'db'), '')
  expect(() => locateRoot(root)).toThrow(`${join(root, 'db')} is not a folder`)
})

test('a link to nowhere, and links in a circle', () => {
  const folder = newFolder()
  symlinkSync(join(folder, 'gone'), join(folder, 'link'))
  const words = `${join(folder, 'link')} is a link to ${join(folder, 'gone')}, which does not exist`
  expect(() => locateRoot(join(folder, 'link'))).toThrow(words)
  expect(() => locateRoot(join(folder, 'link', 'root'))).toThrow(words)
  symlinkSync(join(folder, 'circle'), join(folder, 'circle'))
  expect(() => locateRoot(join(folder, 'circle'))).toThrow('links lead in a circle')
})

test.runIf(isLinux)('a folder without permission', () => {
  const root = newFolder()
  mkdirSync(join(root, 'closed'))
  chmodSync(join(root, 'closed'), 0o555)
  // Whoever is root may everything.
  const isRoot = process.geteuid?.() === 0
  if (isRoot) chmodSync(root, 0o755)
  if (isRoot) process.seteuid?.(nobody)
  try {
    expect(() => locateRoot(join(root, 'closed'))).toThrow('no permission')
    expect(() => locateRoot(join(root, 'closed', 'a', 'b'))).toThrow('no permission')
  } finally {
    if (isRoot) process.seteuid?.(0)
  }
})

test.runIf(isLinux)('a read-only file system', (context) => {
  const root = newFolder()
  const mounted = spawnSync('mount', ['-t', 'tmpfs', 'tmpfs', root])
  if (mounted.status !== 0) context.skip()
  try {
    openRootFolder(root)
    spawnSync('mount', ['-o', 'remount,ro', root])
    expect(() => locateRoot(root)).toThrow('the file system is read-only')
    expect(() => locateRoot(join(root, 'new'))).toThrow('the file system is read-only')
  } finally {
    spawnSync('umount', [root])
  }
})

test('a process without a home has no default root', () => {
  expect(rootBelow(() => '/somewhere')).toBe('/somewhere/.penstock')
  expect(rootBelow(() => '')).toBe(undefined)
  const missing = (): string => {
    throw Object.assign(new Error('uv_os_homedir'), { code: 'ENOENT' })
  }
  expect(rootBelow(missing)).toBe(undefined)
})
