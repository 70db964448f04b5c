// Bytes of the log that are not replayed are kept in side files beside it, for people to look at: `aside/` in the log's
// directory. The name tells the segment and the offset, so that a second recovery writes the same file again.

import { FileError } from '../base/errors.js'
import type { File, Files } from '../base/files.js'

const pieceBytes = 1024 * 1024

/** Copies a range of a file; undefined when that fails: a full disk must not stop the recovery. */
export function saveAside(
  files: Files,
  directory: string,
  path: string,
  offset: number,
  bytes: number,
  reason: 'damage' | 'tail',
): string | undefined {
  if (bytes === 0) return undefined
  const aside = `${directory}/aside`
  const name = path.slice(path.lastIndexOf('/') + 1).replace('.wal', '')
  const target = `${aside}/${name}-${offset}-${reason}.bin`
  try {
    files.makeDirectory(aside)
    if (files.exists(target)) files.remove(target)
    copyRange(files, path, target, offset, bytes)
    files.syncDirectory(aside)
    return target
  } catch (error) {
    if (error instanceof FileError) return undefined
    throw error
  }
}

function copyRange(files: Files, path: string, target: string, offset: number, bytes: number): void {
  const source = files.open(path, 'read')
  try {
    const copy = files.open(target, 'create')
    try {
      copyBytes(source, copy, offset, bytes)
      copy.sync()
    } finally {
      copy.close()
    }
  } finally {
    source.close()
  }
}

function copyBytes(source: File, copy: File, offset: number, bytes: number): void {
  const piece = new Uint8Array(Math.min(pieceBytes, bytes))
  for (let done = 0; done < bytes; ) {
    const count = source.read(piece.subarray(0, Math.min(piece.length, bytes - done)), offset + done)
    if (count === 0) return
    copy.write([piece.subarray(0, count)], done)
    done += count
  }
}
