// Schemas (namespaces) of the catalog. The database stores no schemas: `a.t` is the name of a table in `public`. To
// clients of PostgreSQL it is shown as table t of schema a, so a schema exists as long as some table or view has its
// prefix.

import type { BindContext } from '../scope/bind-context.js'

export const namespaces = { pg_catalog: 11, public: 2200, information_schema: 13_000 } as const
type Schema = keyof typeof namespaces

/** Oids of schemas other than the built-in ones: above those of tables, below those of counters. */
const firstSchemaOid = 2 ** 28

export interface PlacedName {
  readonly schema: string
  readonly name: string
}

/** Schema and name under which clients of the session's dialect see the table or view. */
export function placed(name: string, { dialect }: Pick<BindContext, 'dialect'>): PlacedName {
  return dialect.postgresCatalog ? placedInSchema(name) : { schema: 'public', name }
}

/** Schema and name under which clients of PostgreSQL see it. */
export function placedInSchema(name: string): PlacedName {
  const point = name.indexOf('.')
  const schema = name.slice(0, Math.max(0, point))
  if (schema === '' || point === name.length - 1 || isBuiltIn(schema)) return { schema: 'public', name }
  return { schema, name: name.slice(point + 1) }
}

function isBuiltIn(schema: string): schema is Schema {
  return Object.hasOwn(namespaces, schema.toLowerCase())
}

/** Whether the schema holds tables and views of the database. */
export function isOwnSchema(schema: string): boolean {
  return schema === 'public' || !isBuiltIn(schema)
}

/** Oid of a schema: a hash of its name, so it does not change. */
export function namespaceOid(schema: string): number {
  if (isBuiltIn(schema)) return namespaces[schema]
  let hash = 0x811c9dc5
  for (const byte of Buffer.from(schema, 'utf8')) hash = Math.imul(hash ^ byte, 0x01000193)
  return firstSchemaOid + ((hash >>> 0) % firstSchemaOid)
}

/** Oids of all schemas by name. */
export function schemasOf(context: Pick<BindContext, 'catalog' | 'dialect'>): ReadonlyMap<string, number> {
  const { catalog } = context
  const names = [...catalog.tables().map(({ schema }) => schema), ...catalog.views()].map(({ name }) => name)
  const own = names.map((name) => placed(name, context).schema)
  return new Map([...Object.keys(namespaces), ...own].map((schema) => [schema, namespaceOid(schema)]))
}
