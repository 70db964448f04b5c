// Temporary files of a test, counted: a test that compares results with little and with ample memory shows by their
// number that the operator has spilt.

import { nodeFiles } from '../../../../engine/base/files.js'
import type { SharedMemory } from '../../../../engine/memory/shared-memory.js'
import { type TemporaryFiles, temporaryFiles } from '../../../../engine/storage/part/temporary-files.js'

export interface CountedFiles {
  readonly created: () => number
  readonly temporary: TemporaryFiles
}

export function countedFiles(directory: string, memory: SharedMemory): CountedFiles {
  let created = 0
  const files = temporaryFiles({ directory, memory, threadId: 1, files: nodeFiles() })
  const create: TemporaryFiles['create'] = () => {
    created++
    return files.create()
  }
  return { created: () => created, temporary: { create } }
}
