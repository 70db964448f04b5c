// Error classes, one per reaction of the caller. Messages are lower case with the context last in brackets:
// `table does not exist [table=trades]`. Each gateway maps classes to responses of its protocol in one switch.
//
//   class            meaning                         HTTP  PG              ILP/TCP
//   SqlError         the statement is wrong          400   42xxx+position  -
//   AccessError      the user may not do that        403   42501           close
//   TimeoutError     the deadline passed             400   57014           -
//   CancelledError   somebody cancelled the query    400   57014           -
//   RowError         one row is wrong                400   22xxx           close or skip
//   ResourceError    no memory, disk or room now     503   53xxx           close
//   CorruptionError  a checksum or a format is wrong 500   XX001           close
//   NetworkError     the peer broke the protocol     400   08P01           close
//   GapError         the peer has to start over      -     -               -
//   FileError        the operating system refused    500   58030           close
//   AssertionError   our bug                         500   XX000           close
//
// PG has the usual codes; gateways/pgwire/protocol/sqlstate.ts derives others from messages. A FileError because the
// disk is full is a 503 and 53100. Only QWP has GapErrors. A NotReadyError makes the engine plan a statement again.
//
// Errors cross threads as `ErrorRecord` (structured clone keeps no class).

import { suggestion } from './nearest.js'

export class SqlError extends Error {
  /** Character offset in the statement; 0 or -1, as clients expect, when there is no specific position. */
  readonly position: number
  /** A suggestion, reported to clients beside the message; empty: none. */
  readonly hint: string

  constructor(message: string, position: number, hint = '') {
    super(message)
    this.name = 'SqlError'
    this.position = position
    this.hint = hint
  }

  /** `known`: names of which one may have been meant. */
  static tableMissing(table: string, position: number, known: readonly string[] = []): SqlError {
    return new SqlError(`table does not exist [table=${table}]`, position, suggestion(table, known))
  }

  /** `known`: names of which one may have been meant, without qualifiers. */
  static columnMissing(column: string, position: number, known: readonly string[] = []): SqlError {
    const name = column.slice(column.lastIndexOf('.') + 1)
    return new SqlError(`Invalid column: ${column}`, position, suggestion(name, known))
  }

  static tableExists(position: number): SqlError {
    return new SqlError('table already exists', position)
  }

  /** While a statement or transaction that names it was running. */
  static tableDropped(table: string): SqlError {
    return new SqlError(`the table was dropped in the meantime [table=${table}]`, 0)
  }

  /** While a statement or transaction that names it was running. */
  static tableChanged(table: string): SqlError {
    return new SqlError(`the table has changed meanwhile, try again [table=${table}]`, 0)
  }
}

/** The error at another position, if it has one. */
export function movedError<Thrown>(
  error: Thrown,
  moved: ((position: number) => number) | undefined,
): Thrown | SqlError {
  if (moved === undefined || !(error instanceof SqlError)) return error
  const { message, position, hint } = error
  return new SqlError(message, moved(position), hint)
}

export class AccessError extends Error {
  /** Character offset of the statement that is not permitted. */
  readonly position: number

  constructor(message: string, position: number) {
    super(message)
    this.name = 'AccessError'
    this.position = position
  }
}

export class TimeoutError extends Error {
  constructor(timeoutMs: number) {
    super(`Query timeout. Please add HTTP header 'Statement-Timeout' with timeout in ms [timeout=${timeoutMs}ms]`)
    this.name = 'TimeoutError'
  }
}

export class CancelledError extends Error {
  constructor(message = 'cancelled by user') {
    super(message)
    this.name = 'CancelledError'
  }
}

export class RowError extends Error {
  /** One-based line (or row) of the input. */
  readonly line: number

  constructor(message: string, line: number) {
    super(message)
    this.name = 'RowError'
    this.line = line
  }
}

export class ResourceError extends Error {
  /**
   * What may be there soon, so that waiting may help: memory that others release, or rows on their way from the object
   * store.
   */
  readonly awaited: 'memory' | 'remote' | ''

  constructor(message: string, awaited: 'memory' | 'remote' | '' = '') {
    super(message)
    this.name = 'ResourceError'
    this.awaited = awaited
  }

  static outOfMemory(budget: string, bytes: number): ResourceError {
    return new ResourceError(`out of memory [budget=${budget}, bytes=${bytes}, setting=memory.bytes]`, 'memory')
  }
}

/** Whether others may soon release what was missing. */
export function isShortage(error: unknown): boolean {
  return error instanceof ResourceError && error.awaited === 'memory'
}

export class CorruptionError extends Error {
  readonly file: string
  /** Byte offset of the damage in the file. */
  readonly offset: number
  /** The file is not damaged, but only another version of this program can read it. */
  isOtherFormat = false

  constructor(message: string, file: string, offset: number) {
    super(`${message} [file=${file}, offset=${offset}]`)
    this.name = 'CorruptionError'
    this.file = file
    this.offset = offset
  }

  /** A file in an unknown format. */
  static ofFormat(found: number, known: number, file: string, offset: number): CorruptionError {
    const words = found > known ? 'was written by a newer version of this program' : 'has an unknown format'
    const error = new CorruptionError(`the file ${words} [format=${found}, known=${known}]`, file, offset)
    error.isOtherFormat = true
    return error
  }
}

export class NetworkError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'NetworkError'
  }
}

/** The peer refers to entries that this connection does not have: it has to send them again, from the first one. */
export class GapError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'GapError'
  }
}

/** A file operation failed. `code` is the operating system's (`ENOSPC`, `EIO`, `ENOENT`, ...). */
export class FileError extends Error {
  readonly code: string

  constructor(message: string, code: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'FileError'
    this.code = code
  }
}

export class AssertionError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'AssertionError'
  }
}

/**
 * A statement cannot be planned yet, because objects that it reads are on their way. Whoever plans it waits for
 * `ready`, which never rejects, and plans it again; clients never see this error.
 */
export class NotReadyError extends Error {
  readonly ready: Promise<void>
  /** What the attempt has begun, for Session.planning of the next one. */
  readonly planning: object | undefined

  constructor(ready: Promise<void>, planning?: object) {
    super('what the statement reads is being fetched, try again')
    this.name = 'NotReadyError'
    this.ready = ready
    this.planning = planning
  }
}

/** Calls `plan` again whenever it was not ready, with what has begun; returns a promise only then. */
export function whenReady<T>(plan: (planning?: object) => T, planning?: object): T | Promise<T> {
  try {
    return plan(planning)
  } catch (error) {
    if (!(error instanceof NotReadyError)) throw error
    return error.ready.then(() => whenReady(plan, error.planning))
  }
}

/** An error as it crosses a thread boundary. */
export interface ErrorRecord {
  readonly name: string
  readonly message: string
  /** SqlError's position, RowError's line, CorruptionError's offset, TimeoutError's milliseconds; else 0. */
  readonly place: number
  /** SqlError's hint, FileError's code, CorruptionError's file, what a ResourceError waits for; else empty. */
  readonly detail: string
  readonly stack: string
}

/** Converts any thrown value to a message for other threads. */
export function errorRecord(thrown: unknown): ErrorRecord {
  const error = thrown instanceof Error ? thrown : new AssertionError(String(thrown))
  return {
    name: error.name,
    message: error.message,
    place: placeOf(error),
    detail: detailOf(error),
    stack: error.stack ?? '',
  }
}

function placeOf(error: Error): number {
  if (error instanceof SqlError || error instanceof AccessError) return error.position
  if (error instanceof RowError) return error.line
  if (error instanceof CorruptionError) return error.offset
  return 0
}

function detailOf(error: Error): string {
  if (error instanceof SqlError) return error.hint
  if (error instanceof FileError) return error.code
  if (error instanceof CorruptionError) return error.file
  if (error instanceof ResourceError) return error.awaited
  return ''
}

/** The inverse of errorRecord: an instance of the same class with the same message and position. */
export function errorFromRecord(record: ErrorRecord): Error {
  const error = emptyErrorOf(record)
  error.message = record.message
  error.stack = record.stack
  return error
}

function emptyErrorOf({ name, message, place, detail }: ErrorRecord): Error {
  switch (name) {
    case 'SqlError':
      return new SqlError(message, place, detail)
    case 'AccessError':
      return new AccessError(message, place)
    case 'TimeoutError':
      return new TimeoutError(place)
    case 'CancelledError':
      return new CancelledError(message)
    case 'RowError':
      return new RowError(message, place)
    case 'ResourceError':
      return new ResourceError(message, detail === 'memory' || detail === 'remote' ? detail : '')
    case 'CorruptionError':
      return new CorruptionError(message, detail, place)
    case 'NetworkError':
      return new NetworkError(message)
    case 'GapError':
      return new GapError(message)
    case 'FileError':
      return new FileError(message, detail)
    default:
      return new AssertionError(message)
  }
}

export function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown)
}
