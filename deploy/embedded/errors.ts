// Defines DatabaseError, the only error class that users of an embedded database see; its code tells the kinds of
// errors apart.

/**
 * `SQL`: the statement is wrong or cannot be carried out. `ROW`: a row cannot be stored. `RESOURCE`: memory, disk, a
 * limit, or a folder that another process has open. `TIMEOUT`, `CANCELLED`: the statement was ended. `CLOSED`: the
 * database is closed. `CORRUPTION`: a file is damaged. `INTERNAL`: a fault of Penstock.
 */
export type ErrorCode = 'SQL' | 'ROW' | 'RESOURCE' | 'TIMEOUT' | 'CANCELLED' | 'CLOSED' | 'CORRUPTION' | 'INTERNAL'

/** What all methods of a database reject with. */
export class DatabaseError extends Error {
  readonly code: ErrorCode
  /**
   * Of `SQL`: where in the statement, in characters from its start. Of `ROW`: the line of line protocol, or the row of
   * the columns, counted from 1. Undefined when there is no such place.
   */
  readonly position: number | undefined

  constructor(code: ErrorCode, message: string, position?: number, options?: ErrorOptions) {
    super(message, options)
    this.name = 'DatabaseError'
    this.code = code
    this.position = position
  }
}
