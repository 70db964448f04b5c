// Rows of pg_roles, pg_user and the like: the users of the server that the session may see. The session's user has the
// oid of the owner, because every object is shown as owned by this user. Other users are numbered in the order of their
// names.

import type { RowRecord } from '../pg-catalog/catalog.js'
import { ownerOid } from '../pg-catalog/database.js'
import type { BindContext } from '../scope/bind-context.js'

interface Role {
  readonly oid: number
  readonly name: string
  readonly isAdmin: boolean
  readonly canLogIn: boolean
}

const firstOther = 100

function rolesOf({ catalog, evaluation }: BindContext): Role[] {
  const users = catalog.users()
  const own = users.find(({ name }) => name === evaluation.user)
  const others = users.filter(({ name }) => name !== evaluation.user).sort((a, b) => (a.name < b.name ? -1 : 1))
  return [
    { oid: ownerOid, name: evaluation.user, isAdmin: own?.rights.admin ?? true, canLogIn: own?.enabled ?? true },
    ...others.map(({ name, rights, enabled }, index) => ({
      ...{ oid: firstOther + index, name, isAdmin: rights.admin, canLogIn: enabled },
    })),
  ]
}

/** Names of roles by oid. */
export function roleNames(context: BindContext): ReadonlyMap<number, string> {
  return new Map(rolesOf(context).map(({ oid, name }) => [oid, name]))
}

/** Oid of a role; undefined if there is no such role. */
export function roleOid(name: string, context: BindContext): number | undefined {
  return rolesOf(context).find((role) => role.name === name)?.oid
}

export function roleRecords(context: BindContext): RowRecord[] {
  return rolesOf(context).map(({ oid, name, isAdmin, canLogIn }) => ({
    rolname: name,
    rolsuper: isAdmin,
    rolinherit: true,
    rolcreaterole: false,
    rolcreatedb: false,
    rolcanlogin: canLogIn,
    rolconnlimit: -1,
    rolpassword: '********',
    rolbypassrls: isAdmin,
    oid,
  }))
}

export function userRecords(context: BindContext): RowRecord[] {
  return rolesOf(context).map(({ oid, name, isAdmin }) => ({
    ...{ usename: name, usesysid: oid, usesuper: isAdmin, usebypassrls: isAdmin, passwd: '********' },
  }))
}
