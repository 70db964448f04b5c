// Goal: an upload that ends too early, because its client disconnects or its body is malformed, fails and leaves neither
// a file nor an open file descriptor behind, and no reader that waits for ever.

import { existsSync, mkdtempSync, readdirSync, readlinkSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { afterAll, expect, test } from 'vitest'
import { linesOfParts } from '../../pipeline/line-parts.js'
import { readMultipart } from '../../pipeline/multipart.js'
import { ParquetUploads } from '../../pipeline/parquet-uploads.js'

const folder = mkdtempSync(join(tmpdir(), 'penstock-multipart-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const uploads = new ParquetUploads(folder)
const headers = { 'content-type': 'multipart/form-data; boundary=b' }
const beginning = '--b\r\nContent-Disposition: form-data; name="data"; filename="a.parquet"\r\n\r\nPAR1'

function descriptors(): string[] {
  const own = '/proc/self/fd'
  if (!existsSync(own)) return []
  return readdirSync(own).flatMap((name) => {
    try {
      const path = readlinkSync(join(own, name))
      return path.startsWith(folder) ? [path] : []
    } catch {
      return []
    }
  })
}

function upload(signal: AbortSignal) {
  const source = new PassThrough()
  source.write(beginning + 'x'.repeat(100_000))
  const handlers = {
    isFile: () => true,
    onField: () => {},
    onFile: async (_name: string, filename: string | undefined, stream: AsyncIterable<Buffer>) => {
      await uploads.receive(stream, filename ?? '')
    },
  }
  const read = readMultipart(source, headers, handlers, signal)
  read.catch(() => {})
  return { source, read }
}

const received = () => expect.poll(() => readdirSync(folder).length).toBe(1)

test('a client that disconnects amid an upload', async () => {
  const connection = new AbortController()
  const { source, read } = upload(connection.signal)
  await received()
  connection.abort()
  source.destroy(new Error('aborted'))
  await expect(read).rejects.toThrow('aborted')
  expect(readdirSync(folder)).toEqual([])
  expect(descriptors()).toEqual([])
})

test('a body that ends amid a file', async () => {
  const { source, read } = upload(new AbortController().signal)
  await received()
  source.end()
  await expect(read).rejects.toThrow(/Part terminated early|Unexpected end/)
  expect(readdirSync(folder)).toEqual([])
  expect(descriptors()).toEqual([])
})

test('lines that nobody reads any more', async () => {
  const connection = new AbortController()
  const source = new PassThrough()
  const lines = linesOfParts(source, headers, connection.signal, [])
  const closed = new Promise((resolve) => lines.once('close', resolve))
  source.write(beginning + 'x'.repeat(10_000_000))
  await expect.poll(() => lines.readableLength).toBeGreaterThan(0)
  connection.abort()
  source.destroy(new Error('aborted'))
  await closed
  expect(lines.errored).not.toBeNull()
})
