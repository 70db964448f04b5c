// Side files: keep the bytes of the log that were not replayed, for inspection, in `aside/` within the log's directory.
// The name consists of segment and offset, so a second recovery writes the same file again.
//
//   <segment>-<offset>-damage.bin     bytes that were durable and are unreadable now
//   <segment>-<offset>-missing.json   a description of bytes that were durable and are missing now
//   <segment>-<offset>-tail.bin       the torn tail of the log, which was never acknowledged
//
// The first two are losses: rows may be missing. They are reported until an operator removes the file.

import { FileError } from '../base/errors.js'
import type { File, Files } from '../base/files.js'
import type { QuarantinedRange } from './types.js'

const chunkBytes = 1024 * 1024

/** Copies a range of a file; undefined if that fails, because a full disk must not stop the recovery. */
export function quarantine(
  files: Files,
  directory: string,
  path: string,
  offset: number,
  bytes: number,
  reason: 'damage' | 'tail',
): string | undefined {
  if (bytes === 0) return undefined
  const target = `${sideName(directory, path, offset)}-${reason}.bin`
  return attempt(files, directory, target, () => copyRange(files, path, target, offset, bytes))
}

/** Records a missing range; undefined if that fails. */
export function recordMissing(
  files: Files,
  directory: string,
  missing: Omit<QuarantinedRange, 'sideFile'>,
): string | undefined {
  const target = `${sideName(directory, missing.file, missing.offset)}-missing.json`
  return attempt(files, directory, target, () => {
    const file = files.open(target, 'create')
    try {
      file.write([Buffer.from(`${JSON.stringify(missing)}\n`)], 0)
      file.sync()
    } finally {
      file.close()
    }
  })
}

/** Names of side files that record losses. Throws FileError. */
export function listLosses(files: Files, directory: string): readonly string[] {
  const aside = `${directory}/aside`
  return files.exists(aside) ? files.list(aside).filter((name) => /-(damage\.bin|missing\.json)$/.test(name)) : []
}

function sideName(directory: string, path: string, offset: number): string {
  const name = path.slice(path.lastIndexOf('/') + 1).replace('.wal', '')
  return `${directory}/aside/${name}-${offset}`
}

/** Returns the path if the work succeeds. */
function attempt(files: Files, directory: string, target: string, work: () => void): string | undefined {
  try {
    files.makeDirectory(`${directory}/aside`)
    if (files.exists(target)) files.remove(target)
    work()
    files.syncDirectory(`${directory}/aside`)
    files.syncDirectory(directory)
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
  const chunk = new Uint8Array(Math.min(chunkBytes, bytes))
  for (let done = 0; done < bytes; ) {
    const count = source.read(chunk.subarray(0, Math.min(chunk.length, bytes - done)), offset + done)
    if (count === 0) return
    copy.write([chunk.subarray(0, count)], done)
    done += count
  }
}
