// Keeps an uploaded Parquet file on disk during its import or preview. Such a file describes its columns at its end, so
// it must be complete before a row can be read. Meanwhile read_parquet() accepts the file under a random name that
// nobody can guess. Also detects by its first bytes whether an uploaded file is Parquet.

import { randomUUID } from 'node:crypto'
import { readdirSync, rmSync } from 'node:fs'
import { open, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { FileError, ResourceError } from '../engine/base/errors.js'
import { makeDirectories } from '../engine/base/files.js'
import type { ParquetFile } from './parquet-rows.js'

const prefix = 'upload:'
const fileName = /^[0-9a-f-]{36}\.parquet$/
const mark = Buffer.from('PAR1')

export class ParquetUploads {
  readonly #directory: string
  readonly #paths = new Map<string, string>()

  /** The folder must be of this server alone: files that a crash has left in it are removed. */
  constructor(directory: string) {
    this.#directory = directory
    for (const name of filesIn(directory)) if (fileName.test(name)) removeLeftOver(join(directory, name))
  }

  /** The path of a file, by the name that read_parquet() gets. */
  pathOf(name: string): string | undefined {
    return this.#paths.get(name)
  }

  /** Stores a file until it is removed. `title`: its name in errors. */
  async receive(bytes: AsyncIterable<Uint8Array>, title: string): Promise<ParquetFile> {
    const id = randomUUID()
    const path = join(this.#directory, `${id}.parquet`)
    const received = { name: `${prefix}${id}`, path, title, position: 0 }
    this.#paths.set(received.name, path)
    try {
      await writeWhole(this.#directory, path, bytes)
    } catch (error) {
      // The first error counts.
      await this.remove(received).catch(() => {})
      throw error
    }
    return received
  }

  async remove({ name, path }: ParquetFile): Promise<void> {
    this.#paths.delete(name)
    await rm(path, { force: true })
  }
}

function filesIn(directory: string): readonly string[] {
  try {
    return readdirSync(directory)
  } catch {
    return []
  }
}

/** A file that cannot be removed takes space only. */
function removeLeftOver(path: string): void {
  try {
    rmSync(path, { force: true })
  } catch {}
}

async function writeWhole(directory: string, path: string, bytes: AsyncIterable<Uint8Array>): Promise<void> {
  const file = await kept(async () => {
    makeDirectories(directory)
    return open(path, 'wx')
  })
  try {
    for await (const chunk of bytes) {
      for (let at = 0; at < chunk.length; ) at += (await kept(() => file.write(chunk, at))).bytesWritten
    }
  } catch (error) {
    await file.close().catch(() => {})
    throw error
  }
  await kept(() => file.close())
}

/** Does something with the file; errors of the disk are those of the request. */
async function kept<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work()
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : ''
    if (code === 'ENOSPC' || code === 'EDQUOT') throw new ResourceError('the disk has no space for the file')
    throw new FileError('the file cannot be kept while it is read', code, { cause: error })
  }
}

/** Whether a file is Parquet, by its first bytes, and the file from its beginning. */
export async function lookForParquet(
  file: AsyncIterable<Buffer>,
): Promise<{ readonly isParquet: boolean; readonly whole: AsyncIterable<Buffer> }> {
  const chunks = file[Symbol.asyncIterator]()
  let head: Buffer = Buffer.alloc(0)
  for (let next = await chunks.next(); next.done !== true; next = await chunks.next()) {
    head = head.length === 0 ? next.value : Buffer.concat([head, next.value])
    if (head.length >= mark.length) break
  }
  return { isParquet: head.subarray(0, mark.length).equals(mark), whole: beginningWith(head, chunks) }
}

/** A file whose first bytes have been read already. */
export async function* beginningWith(head: Buffer, rest: AsyncIterator<Buffer>): AsyncGenerator<Buffer> {
  if (head.length > 0) yield head
  for (let next = await rest.next(); next.done !== true; next = await rest.next()) yield next.value
}
