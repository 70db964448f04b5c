// Goal: the real file system interface and the simulated disk of the tests behave alike, and a simulated power loss
// keeps what was synced, while the rest may survive, be lost or be damaged.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { afterAll, describe, expect, test } from 'vitest'
import { FileError } from '../../../engine/base/errors.js'
import { type Files, nodeFiles } from '../../../engine/base/files.js'
import { atNth, atOperation, createFaultyDisk, SimulatedCrash } from '../../support/simulator/faulty-files.js'

const root = mkdtempSync(`${tmpdir()}/penstock-files-`)
afterAll(() => rmSync(root, { recursive: true, force: true }))

const bytes = (text: string) => new Uint8Array(Buffer.from(text))
const text = (content: Uint8Array) => Buffer.from(content).toString('latin1')

function codeOf(work: () => unknown): string {
  try {
    work()
  } catch (error) {
    return error instanceof FileError ? error.code : String(error)
  }
  return 'no error'
}

function readAll(files: Files, path: string): string {
  const file = files.open(path, 'read')
  const content = new Uint8Array(file.size() + 10)
  const count = file.read(content, 0)
  file.close()
  return text(content.subarray(0, count))
}

const implementations: [string, () => { files: Files; home: string }][] = [
  ['node', () => ({ files: nodeFiles(), home: mkdtempSync(`${root}/`) })],
  ['simulated', () => ({ files: createFaultyDisk().files, home: '/home' })],
]

describe.each(implementations)('%s files', (_name, create) => {
  const { files, home } = create()
  files.makeDirectory(home)

  test('write gathers chunks of plain and shared memory; read stops at the end', () => {
    const shared = new Uint8Array(new SharedArrayBuffer(16)).subarray(4, 7)
    shared.set(bytes('def'))
    const file = files.open(`${home}/a`, 'create')
    file.write([bytes('abc'), new Uint8Array(0), shared, bytes('ghi')], 0)
    file.write([bytes('XY')], 1)
    file.sync()
    files.syncDescriptor(file.descriptor)
    const target = new Uint8Array(new SharedArrayBuffer(20))
    expect([file.size(), file.read(target, 2), text(target.slice(0, 7))]).toEqual([9, 7, 'Ydefghi'])
    expect(file.read(target, 50)).toBe(0)
    file.truncate(4)
    file.close()
    file.close()
    expect(readAll(files, `${home}/a`)).toBe('aXYd')
  })

  test('more chunks than one call of the kernel takes', () => {
    const file = files.open(`${home}/many`, 'create')
    const chunks = Array.from({ length: 3000 }, (_, index) => bytes(`${index},`))
    file.write(chunks, 0)
    file.close()
    expect(readAll(files, `${home}/many`)).toBe(chunks.map((chunk) => text(chunk)).join(''))
  })

  test('a gap reads as zeros', () => {
    const file = files.open(`${home}/gap`, 'create')
    file.write([bytes('z')], 3)
    file.close()
    expect(readAll(files, `${home}/gap`)).toBe('\0\0\0z')
  })

  test('errors carry their code', () => {
    expect(codeOf(() => files.open(`${home}/none`, 'read'))).toBe('ENOENT')
    expect(codeOf(() => files.open(`${home}/none`, 'write'))).toBe('ENOENT')
    expect(codeOf(() => files.open(`${home}/gap`, 'create'))).toBe('EEXIST')
    expect(codeOf(() => files.remove(`${home}/none`))).toBe('ENOENT')
    expect(codeOf(() => files.rename(`${home}/none`, `${home}/b`))).toBe('ENOENT')
    expect(codeOf(() => files.list(`${home}/none`))).toBe('ENOENT')
    expect(codeOf(() => files.size(`${home}/none`))).toBe('ENOENT')
  })

  test('directories and names', () => {
    files.makeDirectory(`${home}/x/y`)
    files.makeDirectory(`${home}/x/y`)
    files.open(`${home}/x/y/two`, 'create').close()
    files.open(`${home}/x/y/one`, 'create').close()
    expect(files.list(`${home}/x/y`)).toEqual(['one', 'two'])
    files.rename(`${home}/x/y/one`, `${home}/x/y/two`)
    expect(files.list(`${home}/x/y`)).toEqual(['two'])
    files.syncDirectory(`${home}/x/y`)
    files.remove(`${home}/x/y/two`)
    expect(files.exists(`${home}/x/y/two`)).toBe(false)
    files.removeDirectory(`${home}/x`)
    files.removeDirectory(`${home}/x`)
    expect(files.exists(`${home}/x`)).toBe(false)
    expect(files.freeBytes(home)).toBeGreaterThan(0)
  })
})

describe('the simulated disk', () => {
  function diskWith(content: string) {
    const disk = createFaultyDisk()
    disk.files.makeDirectory('/d')
    disk.files.syncDirectory('/')
    const file = disk.files.open('/d/a', 'create')
    file.write([bytes(content)], 0)
    file.sync()
    disk.files.syncDirectory('/d')
    return { disk, file }
  }

  test('a crash keeps what was synced, whatever the seed', () => {
    for (let seed = 0; seed < 50; seed++) {
      const { disk, file } = diskWith('safe')
      file.write([bytes('x'.repeat(5000))], 4096)
      disk.files.open('/d/b', 'create').write([bytes('b')], 0)
      disk.crash(seed)
      expect(readAll(disk.files, '/d/a').slice(0, 4)).toBe('safe')
      expect(codeOf(() => file.size())).toBe('EBADF')
    }
  })

  test('over the seeds, what was not synced is there, is not there, and is garbage', () => {
    const outcomes = new Set<string>()
    for (let seed = 0; seed < 200; seed++) {
      const { disk, file } = diskWith('o'.repeat(1024))
      file.write([bytes('n'.repeat(512))], 512)
      disk.files.rename('/d/a', '/d/c')
      disk.crash(seed)
      const [name = ''] = disk.files.list('/d')
      const content = readAll(disk.files, `/d/${name}`).slice(512)
      outcomes.add(`${name} ${content === 'n'.repeat(512) ? 'new' : content === 'o'.repeat(512) ? 'old' : 'garbage'}`)
    }
    expect([...outcomes].sort()).toEqual(['a garbage', 'a new', 'a old', 'c garbage', 'c new', 'c old'])
  })

  test('a failed sync loses the pages for good: a second one reports success and writes nothing', () => {
    const survivors = new Set<string>()
    for (let seed = 0; seed < 20; seed++) {
      const disk = createFaultyDisk(seed)
      const file = disk.files.open('/a', 'create')
      disk.files.syncDirectory('/')
      disk.inject(atNth('sync', 1, { kind: 'error', code: 'EIO' }))
      file.write([bytes('data')], 0)
      expect(codeOf(() => file.sync())).toBe('EIO')
      expect(text(disk.peek('/a'))).toBe('data')
      file.sync()
      disk.crash(seed)
      survivors.add(readAll(disk.files, '/a'))
    }
    expect(survivors).toContain('\0\0\0\0')
    expect(survivors).toContain('data')
  })

  test('a crash at an operation ends all operations until the power is back', () => {
    const { disk, file } = diskWith('safe')
    disk.inject(atOperation(disk.operations + 1, { kind: 'crash' }))
    expect(() => file.write([bytes('lost')], 0)).toThrow(SimulatedCrash)
    expect(() => disk.files.exists('/d')).toThrow(SimulatedCrash)
    disk.kill()
    expect(disk.files.exists('/d')).toBe(true)
    expect([...disk.struck]).toEqual(['write'])
  })

  test('a short write lands in part', () => {
    const landed = new Set<number>()
    for (let seed = 0; seed < 40; seed++) {
      const disk = createFaultyDisk(seed)
      const file = disk.files.open('/a', 'create')
      disk.inject(atNth('write', 1, { kind: 'short', code: 'ENOSPC' }))
      expect(codeOf(() => file.write([bytes('abc')], 0))).toBe('ENOSPC')
      landed.add(disk.peek('/a').length)
    }
    expect([...landed].sort()).toEqual([0, 1, 2, 3])
  })
})
