// Syntax tree of CREATE, ALTER and DROP TYPE for enumerations. Import these types from ast.ts.

import type { TableName } from './ast.js'

export interface CreateType {
  readonly kind: 'create type'
  readonly position: number
  readonly ifNotExists: boolean
  readonly type: TableName
  readonly labels: readonly string[]
}

export interface AlterType {
  readonly kind: 'alter type'
  readonly position: number
  readonly type: TableName
  /** Null: OWNER TO, which has no effect. */
  readonly action:
    | { readonly kind: 'rename'; readonly newName: TableName }
    | {
        readonly kind: 'add value'
        readonly label: string
        readonly ifNotExists: boolean
        /** The label before or after which the new one is inserted; null: at the end. */
        readonly place: { readonly before: boolean; readonly label: string } | null
      }
    | null
}

export interface DropType {
  readonly kind: 'drop type'
  readonly position: number
  readonly ifExists: boolean
  readonly types: readonly TableName[]
}
