// The one database and its owner, as the catalog names them.

/** Oid of the one role, the owner of everything. */
export const ownerOid = 10
export const databaseOid = 1
export const databaseName = 'qdb'
