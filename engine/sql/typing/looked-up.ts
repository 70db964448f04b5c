// Calls that look a value up in a list: query threads know no catalog, so the list goes with the plan.

import { dataType } from '../../types/column-types.js'
import type { Expression } from '../plan/plan.js'
import type { BindContext } from '../scope/bind-context.js'
import { scalarCall } from './make-call.js'
import { constantOf } from './types.js'

/** The list goes with the plan as one text. Users change without the catalog, nothing else does. */
export function lookedUp(
  name: 'catalog_name' | 'catalog_text' | 'catalog_number' | 'role_name',
  key: Expression,
  found: ReadonlyMap<number | string, string>,
  context: BindContext,
): Expression {
  if (name === 'role_name') context.cacheable = false
  const list = constantOf(JSON.stringify(Object.fromEntries(found)), dataType('STRING'), key.position)
  return scalarCall(name, [key, list], key.position, context)
}
