// User rights. They apply to the whole server and are independent of each other: an agent that only writes rows needs
// `write` alone. `admin` includes the other rights. A statement may need two: UPDATE, for example, `write` and `read`
// (sql/statements/statement-rights.ts).
//
//   read    SELECT, SHOW, EXPLAIN, exports
//   write   rows and tables: INSERT, UPDATE, DELETE, CREATE, ALTER, DROP, imports, line protocol
//   admin   users, checkpoints, backups, connectors, the statements and secrets of others

import { AccessError } from './errors.js'

export type Right = 'read' | 'write' | 'admin'

export interface Rights {
  readonly read: boolean
  readonly write: boolean
  readonly admin: boolean
}

export const rightNames: readonly Right[] = ['read', 'write', 'admin']

export const allRights: Rights = { read: true, write: true, admin: true }
export const readRights: Rights = { read: true, write: false, admin: false }
export const noRights: Rights = { read: false, write: false, admin: false }

/** The rights of a session. `readOnly`: it rejects changes whatever its rights. */
export interface RightsHolder {
  readonly user: string
  readonly readOnly: boolean
  /** Why, unless the server itself is read-only. */
  readonly readOnlyReason?: string
  readonly rights: Rights
}

export const readOnlyMessage = 'this server takes read-only queries'

export function hasRight({ readOnly, rights }: RightsHolder, right: Right): boolean {
  if (right === 'read') return rights.read || rights.admin
  return !readOnly && (rights[right] || rights.admin)
}

/** Throws AccessError when the right is missing. `position`: of the statement that needs it. */
export function requireRight(holder: RightsHolder, right: Right, position = 0): void {
  if (hasRight(holder, right)) return
  if (right !== 'read' && holder.readOnly) throw new AccessError(holder.readOnlyReason ?? readOnlyMessage, position)
  throw new AccessError(`the right is missing [user=${holder.user}, right=${right}]`, position)
}
