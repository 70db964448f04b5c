// Maps an error to its SQLSTATE, because drivers and other clients react to this code, not to the text. The class of
// the error decides; errors of class SqlError, which have many causes, are distinguished by patterns of their
// messages.

import {
  AccessError,
  CancelledError,
  CorruptionError,
  FileError,
  NetworkError,
  ResourceError,
  RowError,
  SqlError,
  TimeoutError,
} from '../../../engine/base/errors.js'
import { readOnlyMessage } from '../../../engine/base/rights.js'
import type { NoticeFields } from './messages.js'

/** A protocol-level error with an explicit SQLSTATE. */
export class PgError extends Error {
  readonly code: string
  /** Character offset in the statement; -1: unknown. */
  readonly position: number
  /** PostgreSQL's name of the function that reports the error, where drivers check it. */
  readonly routine: string | undefined

  constructor(code: string, message: string, position = -1, routine?: string) {
    super(message)
    this.name = 'PgError'
    this.code = code
    this.position = position
    this.routine = routine
  }
}

/** Drivers that see this routine prepare the statement again (JDBC, asyncpg, postgres.js). */
export function stalePlan(): PgError {
  return new PgError('0A000', 'cached plan must not change result type', -1, 'RevalidateCachedQuery')
}

/** The first match applies; without a match the error is a syntax error. */
const codesOfMessages: readonly (readonly [pattern: RegExp, code: string])[] = [
  [/^(table|view|materialized view|live view) does not exist/, '42P01'],
  [
    /^(table|view|materialized view|live view) already exists|with the requested name already exists|^Rename target exists|new name is already in use/,
    '42P07',
  ],
  [/^relation ".*" already exists/, '42P07'],
  [/^column ".*" named in key does not exist/, '42703'],
  [/^column ".*" appears twice in/, '42701'],
  [/^multiple primary keys/, '42P16'],
  [/^constraint ".*" for table ".*" does not exist/, '42704'],
  [/^invalid constraint name/, '42602'],
  [/^schema already exists/, '42P06'],
  [/^schema is not empty|CASCADE drops them, too/, '2BP01'],
  [/name expected, got .* name$|^cannot modify (view|materialized view|live view)/, '42809'],
  [/column already exists/, '42701'],
  [/^Duplicate column|^duplicate name/, '42701'],
  [/^Duplicate table or alias/, '42712'],
  [/^Invalid column|^column not found|^column does not exist/, '42703'],
  [/^Invalid table name or alias/, '42P01'],
  [/operation failed: Division by zero$/, '22012'],
  [/^Ambiguous column/, '42702'],
  [/^column '.*' already exists|^Duplicate column/, '42701'],
  [/^invalid (table|column) name|^ ?new column name contains/, '42602'],
  [/^(aggregate|function|procedure|routine) does not exist/, '42883'],
  [/^unknown function name|^there is no matching (function|operator)/, '42883'],
  [
    /^inconvertible value: [-+\d.I]\S* \[(BYTE|SHORT|INT|LONG|FLOAT|DOUBLE|DECIMAL).* -> (BYTE|SHORT|INT|LONG|FLOAT|DEC)/,
    '22003',
  ],
  [/^inconvertible value: `?[+-]?\d+`? \[\w+ -> (BYTE|SHORT|INT|LONG)\]/, '22003'],
  [/^inconvertible value: `?[-+\d.eE]*\d[-+\d.eE]*`? \[\w+ -> (FLOAT|DOUBLE|DECIMAL)/, '22003'],
  [/^inconvertible value: \S+ \[(TIMESTAMP|TIMESTAMP_NS|DATE|LONG256) -> (BYTE|SHORT)\]/, '22003'],
  [/^invalid value of a parameter \[.*type=(BYTE|SHORT|INT|LONG), value=[+-]?\d+\]$/, '22003'],
  [/^invalid value of a parameter \[.*type=(FLOAT|DOUBLE|DECIMAL), value=[-+\d.eE]*\d[-+\d.eE]*\]$/, '22003'],
  // Has the form of a timestamp but an invalid value, such as month 13.
  [/^inconvertible value: `\d+-\d+-\d+([ T][\d:.]+Z?)?` \[\w+ -> (TIMESTAMP|DATE)/, '22008'],
  [
    /^invalid value of a parameter \[.*type=(TIMESTAMP|TIMESTAMP_NS|DATE), value=\d+-\d+-\d+([ T][\d:.]+Z?)?\]$/,
    '22008',
  ],
  [/^(inconvertible value|invalid value of a parameter).*(-> |type=)(TIMESTAMP|DATE)/, '22007'],
  [/^invalid input syntax for type (interval|time)/, '22007'],
  [/^(interval|timestamp) out of range/, '22008'],
  [/^the sum is out of range/, '22003'],
  [/^duplicate key value violates/, '23505'],
  [/^WITH (clause containing a data-modifying|query ".*" does not have)/, '0A000'],
  [/violates not-null constraint/, '23502'],
  [/^the key cannot be checked/, '55000'],
  [/^more than one row returned|cannot affect row a second time$/, '21000'],
  [/^invalid input value for enum/, '22P02'],
  [/^(type|enum label) ".*" already exists/, '42710'],
  [/^enum label ".*" does not exist|^invalid enum label/, '22023'],
  [/^the type cannot be dropped because/, '2BP01'],
  [/^inconvertible value|^invalid value of a parameter|^invalid .* value \[/, '22P02'],
  [/^invalid UUID constant/, '22P02'],
  [/^invalid byte sequence/, '22021'],
  [/^invalid timestamp|^Invalid date|^not a TIMESTAMP/, '22007'],
  [/^inconvertible types|^expression type mismatch|^argument type mismatch|^boolean expression expected/, '42804'],
  [/^invalid constant/, '22P02'],
  [/cannot be NULL|must populate timestamp|designated timestamp is missing/, '23502'],
  [/designated timestamp before 1970/, '22008'],
  [/^there is no unique or exclusion constraint|^ON CONFLICT DO UPDATE requires/, '42P10'],
  [
    /(is|are) not supported|within a transaction|in a transaction that also changes schemas|cannot be made with SQL|^there is one database|^ON CONFLICT|^months and years differ/,
    '0A000',
  ],
  [/bind variable/, '42P02'],
  [/must appear in GROUP BY|must be keys of GROUP BY|HAVING needs|^aggregate functions are not allowed/i, '42803'],
  [/^Aggregate function cannot be passed/, '42803'],
  [/^order column position is out of range|^GROUP BY position/, '42P10'],
  [/^unsupported timestamp part/, '22023'],
  [/^row value count does not match|^(not enough|too many) columns selected/, '42601'],
  [/^(statement|expression|query|list|array) is (too long|nested too deeply)|^too many/, '54000'],
  [/^(collation|domain|extension|policy|publication|rule|trigger|type) does not exist/, '42704'],
  [/^query to cancel not found|^unrecognized configuration parameter|^expected 'TABLES'/, '42704'],
  [/^the table (was dropped|has changed)/, '40001'],
  [/^file does not exist|^Parquet file cannot be read: it does not exist/, '58P01'],
  [/^not a regular file|^Parquet file cannot be read: it is not a regular file/, '42809'],
  [/^Parquet file cannot be read: it cannot be opened/, '58030'],
  [/^Parquet file cannot be read: its column/, '42804'],
  [/^Parquet file cannot be read/, '22P04'],
]

/** Errors of rows in COPY. */
const rowCodes: readonly (readonly [pattern: RegExp, code: string])[] = [
  [/^not a value of type (BYTE|SHORT|INT|LONG) \[.*value=[+-]?\d+\]/, '22003'],
  [/^not a value of type (FLOAT|DOUBLE|DECIMAL)\S* \[.*value=[-+\d.eE]*\d[-+\d.eE]*\]/, '22003'],
  [/^not a value of type (TIMESTAMP|DATE)\w* \[.*value=\d+-\d+-\d+([ T][\d:.]+Z?)?\]/, '22008'],
  [/^not a value of type (TIMESTAMP|DATE|interval)/, '22007'],
  [/^invalid value of a parameter.*type=(TIMESTAMP|DATE)/, '22007'],
  [/^not a value of type|^invalid value of a parameter|^invalid input value for enum/, '22P02'],
  [/not valid UTF-8|encoding "UTF8"/, '22021'],
  [
    /than the file has columns|a quote is not closed|field count|COPY (file|data)|unexpected EOF|invalid field size/,
    '22P04',
  ],
  [/cannot be NULL|timestamp is missing/, '23502'],
]

export const readOnlyReason = 'a read-only transaction changes nothing'
const readOnlyMessages: ReadonlySet<string> = new Set([readOnlyMessage, readOnlyReason])

/** Builds the fields of the error response; positions count characters of `text` from 1. */
export function noticeOf(thrown: unknown, text = ''): NoticeFields {
  const message = messageOf(thrown)
  const routine = thrown instanceof PgError ? thrown.routine : undefined
  const position = positionOf(thrown)
  const code = isNoStatement(message, text, position - 1) ? '42601' : codeOf(thrown)
  const hint = thrown instanceof SqlError && thrown.hint !== '' ? { hint: thrown.hint } : {}
  return { severity: 'ERROR', code, message, position: position - pairsWithin(text, position), routine, ...hint }
}

const statementStart = /(?:^|;)(?:\s|--.*\n|\/\*[^*]*\*\/)*$/

/** What may follow a table's name in a query that consists of the name only. */
const queryTails =
  /^(where|limit|latest|sample|order|group|join|inner|left|right|full|cross|asof|lt|splice|window|union|intersect|except|timestamp)$/i

/** `selec 1`: this dialect parses the first word as a table name, but PostgreSQL clients expect a syntax error. */
function isNoStatement(message: string, text: string, position: number): boolean {
  if (position < 0 || !statementStart.test(text.slice(0, position))) return false
  const [, word, next] = /^(\w+)\s+(\w+|[^\w\s;])/.exec(text.slice(position)) ?? []
  if (word === undefined || next === undefined || next === '--') return false
  return message === `table does not exist [table=${word}]` && !queryTails.test(next)
}

/** Number of surrogate pairs before a position. */
function pairsWithin(text: string, position: number): number {
  return text.slice(0, position).match(/[\u{10000}-\u{10ffff}]/gu)?.length ?? 0
}

/** Replaces the message of a timeout, which mentions an HTTP header. */
function messageOf(thrown: unknown): string {
  if (thrown instanceof TimeoutError) {
    const [context = ''] = /\[.*\]$/.exec(thrown.message) ?? []
    return `canceling statement due to statement timeout ${context}`.trimEnd()
  }
  return thrown instanceof Error ? thrown.message : String(thrown)
}

function positionOf(thrown: unknown): number {
  if (thrown instanceof PgError) return thrown.position + 1
  if (thrown instanceof AccessError) return thrown.position + 1
  if (!(thrown instanceof SqlError)) return 0
  // An error about a row or a value has no position in the statement; it reports 0.
  return thrown.position > 0 || codeOf(thrown).startsWith('42') ? thrown.position + 1 : 0
}

function codeOf(thrown: unknown): string {
  if (thrown instanceof PgError) return thrown.code
  if (thrown instanceof SqlError) return codeOfMessage(thrown.message)
  if (thrown instanceof AccessError) return readOnlyMessages.has(thrown.message) ? '25006' : '42501'
  if (thrown instanceof TimeoutError || thrown instanceof CancelledError) return '57014'
  if (thrown instanceof RowError) return rowCodes.find(([pattern]) => pattern.test(thrown.message))?.[1] ?? '22000'
  if (thrown instanceof ResourceError) return '53200'
  if (thrown instanceof CorruptionError) return 'XX001'
  if (thrown instanceof NetworkError) return '08P01'
  if (thrown instanceof FileError) return thrown.code === 'ENOSPC' ? '53100' : '58030'
  return 'XX000'
}

function codeOfMessage(message: string): string {
  return codesOfMessages.find(([pattern]) => pattern.test(message))?.[1] ?? '42601'
}

/** Whether the error is unexpected. */
export function isInternal(thrown: unknown): boolean {
  return codeOf(thrown).startsWith('XX')
}
