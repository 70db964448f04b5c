// Enumeration types (CREATE TYPE .. AS ENUM) as rows of pg_type and pg_enum, and their names and oids.

import type { Enumeration } from '../../storage/schema/schema.js'
import { labelsOid } from '../../types/column-types.js'
import { nameParts, quoteIdent } from '../../types/identifier.js'
import type { Value } from '../../types/value.js'
import { enumerationType, firstOid, labelsType, type PgType, pgTypeRecord } from '../pg-catalog/types.js'
import type { BindContext } from '../scope/bind-context.js'
import { namespaces } from './namespaces.js'

/** Oids of labels, above those of counters and defaults. */
const firstLabelOid = 2 ** 30
const labelsMax = 2 ** 12

function enumerationsOf({ catalog }: Pick<BindContext, 'catalog'>): readonly Enumeration[] {
  return catalog.enumerations?.() ?? []
}

/** Type names by oid, as format_type() prints them. */
export function enumerationNames(context: Pick<BindContext, 'catalog'>): (readonly [number, string])[] {
  return typesOf(context).map(({ oid, sqlName }) => [oid, sqlName])
}

/** Oids of array types by name: `_mood` is the type of `mood[]`. */
export function labelsNames(context: Pick<BindContext, 'catalog'>): (readonly [string, string])[] {
  return enumerationsOf(context)
    .map(labelsType)
    .map(({ oid, name }) => [quoteIdent(name), String(oid)])
}

/** Oid of the type by any of its names: `mood`, `public.mood`, `mood[]`, `_mood`. */
export function enumerationOid(written: string, context: Pick<BindContext, 'catalog'>): number | undefined {
  const plain = written.replace(/(\s*\[\d*\])+\s*$/, '')
  const name = nameParts(plain).at(-1) ?? ''
  const id = context.catalog.enumeration?.(name)?.id
  if (id !== undefined) return plain === written ? firstOid + id : labelsOid(id)
  return typesOf(context).find((type) => type.name === name)?.oid
}

/** The enumeration types, each with its array type. */
function typesOf(context: Pick<BindContext, 'catalog'>): PgType[] {
  return enumerationsOf(context).flatMap((found) => [enumerationType(found), labelsType(found)])
}

export function enumerationTypes(context: BindContext): Record<string, Value>[] {
  return typesOf(context).map((type) => ({ ...pgTypeRecord(type), typnamespace: namespaces.public }))
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
