// Loads the reader of Iceberg tables at its first use, since few servers need it and its library takes long.

export function loadForeignTables(): Promise<typeof import('./foreign-table.js')> {
  return import('./foreign-table.js')
}
