// The door of the SQL front end: one statement's text becomes data that the engine carries out.

import { SqlError } from '../../base/errors.js'
import type { Catalog, Parameter } from '../catalog.js'
import type { PlannedStatement } from './planned.js'

export interface PlanOptions {
  readonly catalog: Catalog
  /** Values of $1, $2, ... */
  readonly parameters: readonly Parameter[]
  /** Microseconds; what now() gives throughout the statement. */
  readonly nowMicros: number
  readonly user: string
}

/** Parses, binds and plans. Throws SqlError (or RowError for values that do not convert). Never blocks. */
export function planStatement(sql: string, _options: PlanOptions): PlannedStatement {
  if (sql.trim() === '') throw new SqlError('empty query', 0)
  throw new SqlError('this statement is not supported yet', 0)
}
