// File access through one synchronous interface to the operating system, so that tests can inject failures. The only
// module of the engine that imports node:fs; test/support/simulator/faulty-files.ts simulates a disk that loses and
// corrupts data.
//
// Durability is explicit. The content of a file is durable after file.sync(); a name (create, rename, remove) is
// durable after syncDirectory() of its directory. Nothing else survives a power loss reliably.
//
// Buffers may be views of a SharedArrayBuffer, which the synchronous calls of node:fs accept. File descriptors belong
// to the process, not to a thread: the log thread syncs files that the writer opened, by
// syncDescriptor(file.descriptor).
//
// Deliberately not here: asynchronous calls, buffering, and retries. After a failed sync the kernel has dropped the
// dirty pages, and a second sync would report success. The owner must close the file and start a new one.

import {
  closeSync,
  constants,
  existsSync,
  fdatasyncSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readdirSync,
  readSync,
  renameSync,
  rmSync,
  statfsSync,
  statSync,
  unlinkSync,
  writevSync,
} from 'node:fs'
import { dirname } from 'node:path'
import { FileError } from './errors.js'

/** 'read': the file exists. 'create': it must not exist yet. 'write': it exists, for reading and writing. */
export type OpenMode = 'read' | 'create' | 'write'

export interface File {
  readonly path: string
  /** Valid in every thread of the process until close(). */
  readonly descriptor: number
  /** Fills the target from the position on; returns the bytes read, which are fewer only at the end of the file. */
  read(target: Uint8Array, position: number): number
  /** Writes all chunks in order with gathered writes. After an error, any prefix of them may be in the file. */
  write(chunks: readonly Uint8Array[], position: number): void
  /** fdatasync: content and size are durable. The name is not: see syncDirectory. */
  sync(): void
  truncate(size: number): void
  size(): number
  close(): void
}

export interface Files {
  open(path: string, mode: OpenMode): File
  /** fdatasync of a file that another thread opened. */
  syncDescriptor(descriptor: number): void
  /** Creates the directory and its missing parents. Does nothing when it exists. */
  makeDirectory(path: string): void
  /** Names of the entries, sorted; no '.' and '..'. */
  list(directory: string): string[]
  remove(path: string): void
  /** Removes the directory with all that is in it. Does nothing when it does not exist. */
  removeDirectory(path: string): void
  /** Replaces the target when it exists. */
  rename(source: string, target: string): void
  exists(path: string): boolean
  size(path: string): number
  /** Makes creates, renames and removes of entries of this directory durable. */
  syncDirectory(path: string): void
  /** Free bytes of the file system for unprivileged processes; 0 when no inode is free. */
  freeBytes(directory: string): number
}

/** The real file system. */
export function nodeFiles(): Files {
  return {
    open: (path, mode) => new NodeFile(path, mode),
    syncDescriptor: (descriptor) => attempt('sync', `descriptor ${descriptor}`, () => fdatasyncSync(descriptor)),
    makeDirectory: (path) => attempt('make directory', path, () => makeDirectories(path)),
    list: (directory) => attempt('list', directory, () => readdirSync(directory).sort()),
    remove: (path) => attempt('remove', path, () => unlinkSync(path)),
    removeDirectory: (path) => attempt('remove directory', path, () => rmSync(path, { recursive: true, force: true })),
    rename: (source, target) => attempt('rename', source, () => renameSync(source, target)),
    exists: (path) => existsSync(path),
    size: (path) => attempt('stat', path, () => statSync(path).size),
    syncDirectory: (path) => attempt('sync directory', path, () => syncDirectory(path)),
    freeBytes: (directory) => attempt('stat file system', directory, () => freeBytes(directory)),
  }
}

const openFlags = { read: 'r', create: 'wx+', write: 'r+' } as const satisfies Record<OpenMode, string>
/** The kernel's limit of chunks in one gathered write (IOV_MAX). */
const chunksPerWrite = 1024

/**
 * Opens a foreign file for reading. Throws FileError with code ENOTREG unless it is a regular file: reading a pipe or
 * device may never end, and opening a pipe would wait for its writer.
 */
export function openRegularFile(path: string): File {
  const file = new NodeFile(path, constants.O_RDONLY | constants.O_NONBLOCK)
  if (attempt('stat', path, () => fstatSync(file.descriptor).isFile())) return file
  file.close()
  throw new FileError(`not a regular file [path=${path}]`, 'ENOTREG')
}

class NodeFile implements File {
  readonly path: string
  readonly descriptor: number
  private closed = false

  constructor(path: string, flags: OpenMode | number) {
    this.path = path
    this.descriptor = attempt('open', path, () => openSync(path, typeof flags === 'number' ? flags : openFlags[flags]))
  }

  read(target: Uint8Array, position: number): number {
    return attempt('read', this.path, () => {
      let done = 0
      while (done < target.length) {
        const count = readSync(this.descriptor, target, done, target.length - done, position + done)
        if (count === 0) break
        done += count
      }
      return done
    })
  }

  write(chunks: readonly Uint8Array[], position: number): void {
    attempt('write', this.path, () => writeAll(this.descriptor, chunks, position))
  }

  sync(): void {
    attempt('sync', this.path, () => fdatasyncSync(this.descriptor))
  }

  truncate(size: number): void {
    attempt('truncate', this.path, () => ftruncateSync(this.descriptor, size))
  }

  size(): number {
    return attempt('stat', this.path, () => fstatSync(this.descriptor).size)
  }

  close(): void {
    if (this.closed) return
    this.closed = true
    attempt('close', this.path, () => closeSync(this.descriptor))
  }
}

function writeAll(descriptor: number, chunks: readonly Uint8Array[], position: number): void {
  let at = position
  for (let first = 0; first < chunks.length; first += chunksPerWrite) {
    let waiting = chunks.length <= chunksPerWrite ? chunks : chunks.slice(first, first + chunksPerWrite)
    while (waiting.length > 0) {
      const written = writevSync(descriptor, waiting as Uint8Array[], at)
      at += written
      waiting = dropBytes(waiting, written)
    }
  }
}

/** Drops the first bytes of the chunks, after a short write, and empty chunks at the front. */
function dropBytes(chunks: readonly Uint8Array[], count: number): readonly Uint8Array[] {
  let rest = count
  for (const [index, chunk] of chunks.entries()) {
    if (rest < chunk.length) return [chunk.subarray(rest), ...chunks.slice(index + 1)]
    rest -= chunk.length
  }
  return []
}

/**
 * Creates the directory and its missing parents. Avoids `mkdirSync(path, { recursive: true })`, which loops forever
 * on file systems such as /proc that reject directories with ENOENT.
 */
export function makeDirectories(path: string): void {
  try {
    mkdirSync(path)
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined
    if (code === 'EEXIST' && statSync(path).isDirectory()) return
    if (code !== 'ENOENT' || existsSync(dirname(path))) throw error
    makeDirectories(dirname(path))
    mkdirSync(path)
  }
}

function syncDirectory(path: string): void {
  const descriptor = openSync(path, 'r')
  try {
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}

function freeBytes(directory: string): number {
  const { bavail, bsize, files, ffree } = statfsSync(directory)
  // Some file systems do not report inode counts.
  return files > 0 && ffree === 0 ? 0 : bavail * bsize
}

function attempt<T>(verb: string, path: string, operation: () => T): T {
  try {
    return operation()
  } catch (error) {
    throw fileError(verb, path, error)
  }
}

function fileError(verb: string, path: string, error: unknown): FileError {
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'EUNKNOWN'
  return new FileError(`could not ${verb} [path=${path}, code=${code}]`, code, { cause: error })
}
