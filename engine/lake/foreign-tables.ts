// Loads the reader of other programs' Iceberg tables (foreign-table.ts) at its first use. Few servers need it, and
// loading the package for Avro takes long.

export function loadForeignTables(): Promise<typeof import('./foreign-table.js')> {
  return import('./foreign-table.js')
}
