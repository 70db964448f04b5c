// Builds calls that look a key up in a constant map, such as the name of a table by its oid for `oid::regclass`. The
// map is part of the plan, because the query threads that evaluate the call have no access to the catalog.

import { dataType } from '../../types/column-types.js'
import type { Expression } from '../plan/plan.js'
import type { BindContext } from '../scope/bind-context.js'
import { scalarCall } from './make-call.js'
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
