// Name and oid of the only database, and the oid of its owner, as pg_catalog shows them.

/** Oid of the role that owns everything. */
export const ownerOid = 10
export const databaseOid = 1
export const databaseName = 'qdb'
