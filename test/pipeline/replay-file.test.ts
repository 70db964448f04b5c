// Goal: the temporary copy of an import's bytes returns the bytes as they were appended, in chunks of any size and also
// between appends, and leaves no file behind.

import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { ReplayFile } from '../../pipeline/replay-file.js'

/** The second one's file system may know no way past the page cache. */
const directories = [tmpdir(), '/dev/shm'].filter(existsSync).map((parent) => mkdtempSync(join(parent, 'kept-')))
afterAll(() => {
  for (const directory of directories) rmSync(directory, { recursive: true })
})

async function readAll(file: ReplayFile): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  for await (const chunk of file.read()) chunks.push(chunk)
  return Buffer.concat(chunks)
}

test.each(directories)('what was appended is read back [directory=%s]', async (directory) => {
  const file = await ReplayFile.open(directory)
  expect(readdirSync(directory)).toEqual([])
  const all = Buffer.allocUnsafe(11_000_001)
  for (let word = 0; word + 4 <= all.length; word += 4) all.writeUInt32LE(Math.imul(word, 2_654_435_761) >>> 0, word)
  const sizes = [1, 65_536, 1_048_576, 7, 3_000_000, 262_144]
  let at = 0
  for (let turn = 0; at < all.length; turn++) {
    const size = sizes[turn % sizes.length] as number
    await file.append(all.subarray(at, at + size))
    at = Math.min(all.length, at + size)
    if (turn % 4 !== 3) continue
    await file.flush()
    expect((await readAll(file)).equals(all.subarray(0, at))).toBe(true)
  }
  await file.flush()
  expect((await readAll(file)).equals(all)).toBe(true)
  await file.close()
})

test('a directory that cannot be made is said at once', async () => {
  await expect(ReplayFile.open('/dev/null/kept')).rejects.toThrow('ENOTDIR')
})
