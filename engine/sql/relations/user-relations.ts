// The results of SHOW USERS and SHOW USER: users, their rights, and the kinds of their credentials. Secrets are not
// available here.

import { SqlError } from '../../base/errors.js'
import type { Name } from '../ast/ast.js'
import type { BindContext } from '../scope/bind-context.js'
import type { SystemRelation } from './relation-columns.js'
import { columnList } from './relation-columns.js'

export function usersRelation({ catalog }: BindContext): SystemRelation {
  const columns = 'name STRING, enabled BOOLEAN, read BOOLEAN, write BOOLEAN, admin BOOLEAN, source STRING'
  return {
    columns: columnList(columns),
    rows: () =>
      catalog
        .users()
        .map(({ name, enabled, rights: { read, write, admin }, source }) => [
          name,
          enabled,
          read,
          write,
          admin,
          source,
        ]),
  }
}

/** SHOW USER: one row for each credential. */
export function userRelation(user: Name | null, { catalog, evaluation }: BindContext): SystemRelation {
  const wanted = (user?.name ?? evaluation.user).toLowerCase()
  const known = catalog.users().find(({ name }) => name.toLowerCase() === wanted)
  if (known === undefined) throw new SqlError(`user does not exist [user=${wanted}]`, user?.position ?? 0)
  return {
    columns: columnList('auth_type STRING, enabled BOOLEAN, id STRING, expires_at TIMESTAMP'),
    rows: () =>
      known.credentials.map(({ kind, id, expiresMicros }) => [
        kind,
        known.enabled,
        id,
        expiresMicros === null ? null : BigInt(expiresMicros),
      ]),
  }
}
