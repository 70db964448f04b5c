// Files that nobody writes: for who looks at a database without being its server.

import { FileError } from '../../base/errors.js'
import type { Files } from '../../base/files.js'

/** Side files of a replay, and whatever else, are refused as a read-only file system would. */
export function readOnly(files: Files): Files {
  const refuse = (path: string): never => {
    throw new FileError(`nothing is written here [path=${path}]`, 'EROFS')
  }
  return {
    ...files,
    open: (path, mode) => (mode === 'read' ? files.open(path, mode) : refuse(path)),
    makeDirectory: refuse,
    remove: refuse,
    syncDirectory: refuse,
  }
}
