// Goal: uploaded Parquet files are removed, also after a crash and a failed import; other files in their folder stay.
// If the folder cannot be created, the request fails. An upload that comes after the import was closed opens no table.

import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { FileError } from '../../engine/base/errors.js'
import { ImportFiles, ParquetUploads } from '../../pipeline/ingest.js'

const folder = mkdtempSync(join(tmpdir(), 'penstock-parquet-uploads-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

async function* chunks(...texts: readonly string[]): AsyncGenerator<Buffer> {
  for (const text of texts) yield Buffer.from(text)
}

test('a start removes the uploads that a crash has left, and nothing else', async () => {
  const directory = join(folder, 'left')
  const { path } = await new ParquetUploads(directory).receive(chunks('PAR1', 'rows'), 'a')
  mkdirSync(join(directory, 'of-others'))
  writeFileSync(join(directory, 'notes.parquet'), '')
  expect(readdirSync(directory).map((name) => join(directory, name))).toContain(path)
  new ParquetUploads(directory)
  expect(readdirSync(directory).sort()).toEqual(['notes.parquet', 'of-others'])
})

test('a folder that cannot be made is an error of the file', async () => {
  const directory = join(folder, 'occupied')
  writeFileSync(directory, '')
  const received = new ParquetUploads(directory).receive(chunks('PAR1'), 'a')
  await expect(received).rejects.toThrow('the file cannot be kept while it is read')
  await expect(received).rejects.toBeInstanceOf(FileError)
})

/** Every session fails to close. */
function importing(directory: string) {
  let opened = 0
  const session = {
    schema: async () => {},
    close: async () => {
      throw new Error('the table is locked')
    },
  }
  const files = new ImportFiles({
    open: () => {
      opened++
      return session as never
    },
    uploads: new ParquetUploads(directory),
    reader: { engine: { validate: () => ({ columns: [] }) } as never, session: {} as never, signal: null },
  })
  return { files, opened: () => opened }
}

test('an import whose tables cannot be closed removes all of its uploads', async () => {
  const directory = join(folder, 'closing')
  const { files } = importing(directory)
  await files.add('a', chunks('PAR1'), 'a')
  await files.add('b', chunks('PAR1'), 'b')
  expect(readdirSync(directory).length).toBe(2)
  await expect(files.close()).rejects.toThrow('the table is locked')
  expect(readdirSync(directory)).toEqual([])
})

test('a file that comes when the import is closed opens no table', async () => {
  const { files, opened } = importing(join(folder, 'late'))
  let come = (): void => {}
  const coming = new Promise<void>((resolve) => {
    come = resolve
  })
  async function* late(): AsyncGenerator<Buffer> {
    await coming
    yield Buffer.from('a,b\n1,2\n')
  }
  const added = files.add('a', late(), 'a')
  added.catch(() => {})
  await new Promise((resolve) => setImmediate(resolve))
  await files.close()
  come()
  await expect(added).rejects.toThrow('the import was cancelled')
  expect(opened()).toBe(0)
})
