// Declares the interface of a database that runs within a user's Node.js process: `import { open } from 'penstock'`.
// The file is published as type declarations and is all that users see of the types, so it imports nothing.
// docs/embedding.md has examples.

/** What a value of a result is in JavaScript; the doc comment of `Result` says which column type gives which. */
export type ResultValue = null | boolean | number | bigint | string | Uint8Array | NestedNumbers

/** The value of an array column: numbers, in as many levels as the column has dimensions. */
export type NestedNumbers = readonly (number | null | NestedNumbers)[]

/** What a parameter or a value of a new row can be. A Date is a point in time, to the millisecond. */
export type InputValue = null | undefined | boolean | number | bigint | string | Date | Uint8Array | NestedNumbers

export interface OpenOptions {
  /**
   * Settings by name, as in server.conf: `{ 'memory.bytes': '512m' }`. They win over conf/server.conf of the folder and
   * over environment variables. All network interfaces are off unless a setting turns one on:
   * `{ 'http.enabled': true }`.
   */
  readonly settings?: Readonly<Record<string, string | number | boolean>>
}

/** Options of a statement. */
export interface StatementOptions {
  /** Ends the statement when it is aborted. */
  readonly signal?: AbortSignal
  /** The most seconds that the statement may take; no limit by default. */
  readonly timeoutSeconds?: number
}

/** What a statement without rows has done. */
export interface Done {
  /** `INSERT`, `CREATE TABLE`, ... */
  readonly command: string
  /** Rows that were inserted, updated or deleted; 0 for other statements. */
  readonly rows: number
  /** What else you should know: values that became NULL in a change of type. */
  readonly notices: readonly string[]
}

export interface ColumnInfo {
  readonly name: string
  /** As in SQL: `LONG`, `DECIMAL(10,2)`, `DOUBLE[]`, ... */
  readonly type: string
}

/** Values of one column of a batch. */
export interface BatchColumn extends ColumnInfo {
  /**
   * All values, for column types that a typed array holds as they are: INT (Int32Array), LONG, TIMESTAMP, TIMESTAMP_NS
   * and DATE (BigInt64Array), FLOAT (Float32Array), DOUBLE (Float64Array), SHORT (Int16Array), BYTE (Int8Array),
   * BOOLEAN (Uint8Array of 0 and 1). NULL is NaN, or the smallest integer of the type. Null for all other column types.
   */
  readonly data: Uint8Array | Int8Array | Int16Array | Int32Array | BigInt64Array | Float32Array | Float64Array | null
  /** The value of a row of the batch, counted from 0. Throws RangeError when there is no such row. */
  get(row: number): ResultValue
}

/** Some thousand rows, column by column. It stays valid after the next batch has come. */
export interface Batch {
  readonly rows: number
  /** In the order of the result. */
  readonly columns: readonly BatchColumn[]
}

export type Row = Record<string, ResultValue>

/**
 * The rows of a query. They can be read once: as a stream of rows (`for await (const row of result)`), as batches of
 * columns, or all at once. A result that is not read to its end has to be closed; leaving a `for await` loop does that.
 *
 *     BOOLEAN                                     boolean
 *     BYTE, SHORT, INT, FLOAT, DOUBLE             number
 *     LONG                                        bigint
 *     TIMESTAMP, TIMESTAMP_NS, DATE               bigint: microseconds, nanoseconds, milliseconds since 1970
 *     CHAR, STRING, VARCHAR, SYMBOL               string
 *     DECIMAL, UUID, IPv4, LONG256, GEOHASH       string
 *     BINARY                                      Uint8Array
 *     arrays                                      nested arrays of numbers
 *     NULL of any type                            null
 *
 * Of two columns with one name a row has the last one; batches have both.
 */
export interface Result extends AsyncIterable<Row> {
  readonly columns: readonly ColumnInfo[]
  /** All rows. For results that fit into memory. */
  rows(): Promise<Row[]>
  batches(): AsyncIterable<Batch>
  /** Ends the query; nothing happens when it has ended. */
  close(): Promise<void>
}

/** A unit of the timestamps of lines; nanoseconds by default. */
export type Precision = 'ns' | 'us' | 'ms' | 's'

export interface LineOptions {
  readonly precision?: Precision
  readonly signal?: AbortSignal
}

/** All methods reject with a DatabaseError. */
export interface Database {
  /**
   * Runs one statement with rows (SELECT, SHOW, EXPLAIN, INSERT .. RETURNING, ..). `$1`, `$2`, ... in the text are the
   * parameters. Rejects when the statement is wrong; reading the result rejects when it fails later.
   */
  query(sql: string, parameters?: readonly InputValue[], options?: StatementOptions): Promise<Result>

  /** Runs one statement without rows (CREATE TABLE, INSERT, UPDATE, DELETE, ..). Rows of any other are discarded. */
  execute(sql: string, parameters?: readonly InputValue[], options?: StatementOptions): Promise<Done>

  /**
   * Stores lines of InfluxDB line protocol, which creates tables and columns as needed. A string or bytes are one
   * transaction: all lines are stored, or none. A stream is stored block by block while it comes; the first line that
   * cannot be stored ends it, and what came before it stays. Resolves to the number of rows when these are as durable
   * as `wal.commit.mode` says.
   */
  ingestLines(lines: string | Uint8Array | AsyncIterable<string | Uint8Array>, options?: LineOptions): Promise<number>

  /**
   * Stores rows that are given column by column, as one transaction, into a table that exists. Every column has an
   * array of values, or a typed array, all of one length; columns that are left out are NULL. Resolves to the number of
   * rows when they are as durable as `wal.commit.mode` says.
   */
  ingestColumns(table: string, columns: Readonly<Record<string, ArrayLike<InputValue>>>): Promise<number>

  /** Stores all that was acknowledged, ends all threads, and gives the folder free. */
  close(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}
