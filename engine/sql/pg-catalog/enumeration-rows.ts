// Enumerations as the catalogs show them.

import type { Enumeration } from '../../storage/schema.js'
import type { Value } from '../../types/value.js'
import type { BindContext } from '../bind/bind-context.js'
import { quoteIdent } from './names.js'
import { namespaces } from './namespaces.js'
import { enumerationType, firstOid, pgTypeRecord } from './types.js'

/** Labels have numbers of their own, behind those of counters and defaults. */
const firstLabelOid = 2 ** 30
const labelsMax = 2 ** 12

function enumerationsOf({ catalog }: Pick<BindContext, 'catalog'>): readonly Enumeration[] {
  return catalog.enumerations?.() ?? []
}

/** Names by oid, as format_type() shows them. */
export function enumerationNames(context: Pick<BindContext, 'catalog'>): (readonly [number, string])[] {
  return enumerationsOf(context).map(({ id, name }) => [firstOid + id, quoteIdent(name)])
}

export function enumerationOid(name: string, { catalog }: Pick<BindContext, 'catalog'>): number | undefined {
  const id = catalog.enumeration?.(name)?.id
  return id === undefined ? undefined : firstOid + id
}

export function enumerationTypes(context: BindContext): Record<string, Value>[] {
  return enumerationsOf(context).map((enumeration) => ({
    ...pgTypeRecord(enumerationType(enumeration)),
    typnamespace: namespaces.public,
  }))
}

/** Rows of pg_enum. */
export function enumerationLabels(context: BindContext): Record<string, Value>[] {
  return enumerationsOf(context).flatMap(({ id, labels }) =>
    labels.map((enumlabel, index) => ({
      oid: firstLabelOid + ((id * labelsMax + index) % firstLabelOid),
      enumtypid: firstOid + id,
      enumsortorder: index + 1,
      enumlabel,
    })),
  )
}
