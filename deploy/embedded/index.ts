// The module that `import .. from 'penstock'` loads: exports open(), which starts a database within the caller's
// process. It has the same threads, files and guarantees as the server; it opens no network port unless a setting
// enables one.

import type { Database, OpenOptions } from './api.js'
import { openDatabase } from './database.js'

export type * from './api.js'
export { DatabaseError, type ErrorCode } from './errors.js'

/**
 * Opens the database in `folder`, which is created when it is missing. Rejects when another process has it open, when a
 * setting is wrong, or when the data is damaged.
 */
export function open(folder: string, options: OpenOptions = {}): Promise<Database> {
  return openDatabase(folder, options)
}
