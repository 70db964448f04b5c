// A read-only view of the file system, for tools that inspect a database directory.

import { FileError } from '../../base/errors.js'
import type { Files } from '../../base/files.js'

/** Refuses all writes like a read-only file system. */
export function readOnly(files: Files): Files {
  const refuse = (path: string): never => {
    throw new FileError(`the files are opened read-only [path=${path}]`, 'EROFS')
  }
  return {
    ...files,
    open: (path, mode) => (mode === 'read' ? files.open(path, mode) : refuse(path)),
    makeDirectory: refuse,
    remove: refuse,
    syncDirectory: refuse,
  }
}
