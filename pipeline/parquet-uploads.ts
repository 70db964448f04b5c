// Stores Parquet files that clients upload on disk while they are imported. The description of the columns is at the
// end of such a file, so it must be there as a whole before a row can be read. During the import, read_parquet()
// accepts the file under a random name that nobody can guess.

import { randomUUID } from 'node:crypto'
import { rmSync } from 'node:fs'
import { open, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { FileError, ResourceError } from '../engine/base/errors.js'
import { makeDirectories } from '../engine/base/files.js'
import type { ParquetFile } from './parquet-rows.js'

const prefix = 'upload:'
const mark = Buffer.from('PAR1')

export class ParquetUploads {
  readonly #directory: string
  readonly #paths = new Map<string, string>()

  /** Empties the folder: after a crash, files may be left in it. */
  constructor(directory: string) {
    this.#directory = directory
    rmSync(directory, { recursive: true, force: true })
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
      await this.remove(received)
      throw error
    }
    return received
  }

  async remove({ name, path }: ParquetFile): Promise<void> {
    this.#paths.delete(name)
    await rm(path, { force: true })
  }
}

async function writeWhole(directory: string, path: string, bytes: AsyncIterable<Uint8Array>): Promise<void> {
  makeDirectories(directory)
  const file = await open(path, 'wx')
  try {
    for await (const chunk of bytes) {
      for (let at = 0; at < chunk.length; ) at += await written(file.write(chunk, at))
    }
  } finally {
    await file.close()
  }
}

async function written(writing: Promise<{ readonly bytesWritten: number }>): Promise<number> {
  try {
    return (await writing).bytesWritten
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : ''
    if (code === 'ENOSPC') throw new ResourceError('the disk has no space for the file')
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
