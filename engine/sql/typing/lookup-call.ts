// Builds calls that look a key up in a constant map, such as the name of a table by its oid for `oid::regclass`, or a
// comment for obj_description() and col_description(). The map is part of the plan, because the query threads that
// evaluate the call have no access to the catalog.

import { dataType } from '../../types/column-types.js'
import type * as ast from '../ast/ast.js'
import type { Expression } from '../plan/plan.js'
import { comments } from '../relations/comments.js'
import type { BindContext } from '../scope/bind-context.js'
import { scalarCall, textOf } from './make-call.js'
import { constantOf } from './types.js'

/**
 * A call of `name` with the key and the map as a JSON constant. Plans with roles are not cached, because users change
 * without a new catalog epoch.
 */
export function lookupCall(
  name: 'catalog_name' | 'catalog_text' | 'catalog_number' | 'role_name',
  key: Expression,
  found: ReadonlyMap<number | string, string>,
  context: BindContext,
): Expression {
  if (name === 'role_name') context.cacheable = false
  const list = constantOf(JSON.stringify(Object.fromEntries(found)), dataType('STRING'), key.position)
  return scalarCall(name, [key, list], key.position, context)
}

type Bind = (args: readonly Expression[], call: ast.Call, context: BindContext) => Expression

/** Drops the kind of an OID type (such as regclass), so that concat() formats the number and not the object's name. */
function plain(oid: Expression): Expression {
  return oid.type.name === 'INT' ? { ...oid, type: dataType('INT') } : oid
}

/** `obj_description(oid, 'pg_class')`. For other catalogs it is the scalar function of that name. */
export const objectDescription: Bind = ([oid, catalog], { position }, context) => {
  const args = [oid, catalog].filter((argument) => argument !== undefined)
  const isTable = catalog === undefined || textOf(catalog) === 'pg_class'
  if (oid === undefined || !isTable) return scalarCall('obj_description', args, position, context)
  const found = comments(context).filter(({ place }) => place === 0)
  return lookupCall('catalog_text', plain(oid), new Map(found.map(({ table, text }) => [table, text])), context)
}

/** `col_description(oid, attnum)` */
export const columnDescription: Bind = ([oid, place], { position }, context) => {
  const found = new Map(comments(context).map(({ table, place, text }) => [`${table} ${place}`, text]))
  const blank = constantOf(' ', dataType('STRING'), position)
  const key = scalarCall('concat', [plain(oid as Expression), blank, place as Expression], position, context)
  return lookupCall('catalog_text', key, found, context)
}
