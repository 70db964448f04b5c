// Goal: a spooled file has the bytes that were appended, in memory, on the disk, and while it moves from one to the
// other, and it leaves nothing behind. Method: random pieces, of shared memory too, of several files at a time; the
// limit of memory is that of a few pieces.

import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { FileError } from '../../../engine/base/errors.js'
import { type Files, nodeFiles } from '../../../engine/base/files.js'
import type { ObjectBody } from '../../../engine/object-store/object-store.js'
import { UploadBuffers, UploadSpool } from '../../../engine/object-store/upload-buffers.js'
import { createRandom } from '../../support/random.js'

let root: string
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'upload-buffers-'))
})
afterEach(() => rmSync(root, { recursive: true }))

/** Read in pieces, as uploads do. */
function contentOf(body: ObjectBody, pieceBytes: number): Buffer {
  const pieces: Buffer[] = []
  for (let offset = 0; offset < body.bytes; offset += pieceBytes) {
    const piece = body.read(offset, Math.min(pieceBytes, body.bytes - offset))
    pieces.push(Buffer.from(piece))
    body.sent?.(piece)
  }
  return Buffer.concat(pieces)
}

test.each([1, 2, 3])('spooled files have what was appended (seed %i)', async (seed) => {
  const random = createRandom(seed)
  const spool = new UploadSpool(nodeFiles(), new UploadBuffers(), 12_000_000)
  const folder = join(root, 'spool')
  const expected = new Map<string, Buffer[]>()
  let onDisk = 0
  for (let step = 0; step < 60; step++) {
    const path = join(folder, `${random.below(3)}.parquet`)
    const piece = new Uint8Array(
      new SharedArrayBuffer(random.below(2) === 0 ? random.below(100) : random.below(3_000_000)),
    )
    for (let at = 0; at < piece.length; at += 97) piece[at] = random.below(256)
    spool.append(path, piece)
    expected.set(path, [...(expected.get(path) ?? []), Buffer.from(piece)])
    if (existsSync(path)) onDisk++
    if (random.below(12) > 0) continue
    const content = await spool.with(path, (body) => contentOf(body, 1 + random.below(2_000_000)))
    expect(content.equals(Buffer.concat(expected.get(path) ?? []))).toBe(true)
    if (random.below(2) === 0) continue
    spool.discard(path)
    expected.delete(path)
    await expect(spool.with(path, () => 0)).rejects.toThrow('there is no such upload')
  }
  expect(onDisk).toBeGreaterThan(0)
  expect(onDisk).toBeLessThan(60)
  for (const [path, pieces] of expected) {
    const content = await spool.with(path, (body) => contentOf(body, 1_000_000))
    expect(content.equals(Buffer.concat(pieces))).toBe(true)
    spool.discard(path)
  }
  expect(readdirSync(folder)).toEqual([])
})

test('a spooled file that does not fit on the disk leaves nothing there', () => {
  const files = nodeFiles()
  const open: Files['open'] = (path, mode) => {
    const file = files.open(path, mode)
    const write = file.write.bind(file)
    file.write = ([content = new Uint8Array()], position) => {
      write([content.subarray(0, 1000)], position)
      throw new FileError(`write failed [path=${path}]`, 'ENOSPC')
    }
    return file
  }
  const spool = new UploadSpool({ ...files, open }, new UploadBuffers(), 3000)
  const path = join(root, 'spool', 'x.parquet')
  spool.append(path, new Uint8Array(2000))
  expect(() => spool.append(path, new Uint8Array(2000))).toThrow('write failed')
  expect(existsSync(path)).toBe(true)
  spool.discard(path)
  expect(existsSync(path)).toBe(false)
})

test('memory is used again when it was given back', () => {
  const buffers = new UploadBuffers()
  const first = buffers.take(5_000_000)
  const second = buffers.take(1000)
  expect(second.buffer).not.toBe(first.buffer)
  buffers.give(first)
  const third = buffers.take(4_500_000)
  expect(third.buffer).toBe(first.buffer)
  expect(third.length).toBe(4_500_000)
})
