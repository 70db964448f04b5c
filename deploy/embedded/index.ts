// What `import .. from 'penstock'` gives: a database within the process of the caller. It has the threads, the files and the
// guarantees of the server, and no interface of the network unless a setting turns one on.

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
