// The limits of the server as constants, such as the maximal size of a log frame (record). Each name contains the unit.
// Settings may lower some of the limits; none can be raised at run time.

const KIB = 1024
const MIB = 1024 * KIB

/** Columns that one PIVOT may create. */
export const pivotColumnsMax = 5_000

/** Rows of one page of a part: the unit of caching, zone maps and work (a morsel). */
export const pageRowsMax = 65_536
/** Buckets of histogram(). */
export const histogramBucketsMax = 10_000
/** Bytes of one value (string, binary, array). */
export const valueBytesMax = 8 * MIB
/** Columns of one table, dropped ones included. */
export const tableColumnsMax = 2_048
/** Names of dropped tables that are kept for errors. */
export const droppedNamesMax = 10_000
/** PRIMARY KEY and UNIQUE constraints of one table, plus one. */
export const tableKeysMax = 64
/** UTF-16 units of a table or column name, as the field's clients count them. */
export const nameCharactersMax = 127
/**
 * Bytes of one line of line protocol. Including header and padding, it takes at most half of the ingest ring of 32
 * MiB.
 */
export const lineBytesMax = 16 * MIB - KIB
/** Bytes of one WAL frame. */
export const walFrameBytesMax = 64 * MIB
/** Decimal digits of a DECIMAL: 256 bits. */
export const decimalDigitsMax = 76
/** Dimensions of an array. */
export const arrayDimensionsMax = 32
/** Lists, maps and structs of a column of JSON that are in one another. */
export const nestedDepthMax = 64
/** Structs of a Parquet file or an Iceberg table that are in one another. */
export const structDepthMax = 32
/** Characters of one SQL statement. */
export const statementCharactersMax = 64 * MIB
/** Bind parameters of one statement: the wire protocol counts them in 16 bits. */
export const parametersMax = 65_535
/** Nesting depth of expressions and sub-queries. */
export const sqlDepthMax = 200
/** Tables and subqueries that one statement references, after expanding WITH and views. */
export const sqlSourcesMax = 5000
/** Syntax nodes of a statement after expanding its variables. */
export const sqlPartsMax = 200_000
/** Nesting depth of these nodes. */
export const sqlLevelsMax = 1_000
/** Joins of one FROM. */
export const sqlJoinsMax = 500
/** Correlated subqueries of one SELECT: each becomes a nested join. */
export const sqlCorrelatedMax = 200
/** Offsets of a HORIZON JOIN, each of which repeats the left rows. */
export const horizonOffsetsMax = 10_000
/** Queries that one WITH defines. */
export const sqlCommonTablesMax = 5_000
/** Characters of a regular expression or of a LIKE pattern that needs one: a compiled pattern takes far more. */
export const patternCharactersMax = 20_000
/** Length of string arguments up to which a call with constant arguments is evaluated at planning time. */
export const foldedCharactersMax = 65_536
/** Iterations of one WITH RECURSIVE, and rows of all of them together. */
export const recursionRoundsMax = 100_000
export const recursionRowsMax = 100_000_000
/** Groupings of one SELECT, by grouping sets or by ordered aggregates: each reads the rows once more. */
export const groupingSetsMax = 256
/**
 * Elements of a list: of SELECT, GROUP BY, ORDER BY, PARTITION BY, arguments of a call, actions of ALTER TABLE;
 * different aggregates.
 */
export const sqlColumnsMax = 5_000
/** Elements of one IN list, row, array or VALUES list, and of lists of tables. */
export const sqlListMax = 1_000_000
/** Bytes of one slot of the ring from the main thread to the writer. */
export const ingestBlockBytesMax = 1 * MIB
/**
 * Terms of AND and OR in one statement, values of rows and computed members of IN among them; a branch of CASE
 * counts as two.
 */
export const sqlTermsMax = 20_000
/** Length of a chain of other operators (`a + b + c ...`). */
export const sqlChainMax = 500
/** Set operations of one chain. */
export const sqlSetOperationsMax = 4_000
/** Tables that one line-protocol request may create. */
export const newTablesPerRequestMax = 10_000
/** Columns that one line-protocol request may add to existing and new tables. */
export const newColumnsPerRequestMax = 20_000
/** Idempotency keys to remember; the oldest are dropped first. */
export const idempotencyKeysMax = 100_000
/** Rows of one transaction of INSERT .. SELECT, which bounds the memory of the statement. */
export const insertSelectRows = 100_000
/**
 * Distinct integers in the list of a subquery (IN), at up to 18 bytes each, and numbers that array_agg() collects.
 */
export const listValuesMax = 16_777_216
/** Numbers that one holistic aggregate such as median() keeps, at up to 20 bytes each. */
export const collectedNumbersMax = 268_435_456
/** A materialized view keeps no larger set of values of a group and bucket: such buckets are computed from its table. */
export const viewStateBytesMax = 64 * KIB
/** Bytes of such sets of all groups of a bucket: further values are not kept. */
export const viewStatesBytesMax = 128 * MIB
/** Rows of values that may wait for their reader. */
export const resultWindowRows = 32_768
/** Backpressure window: encoded bytes of a query that may wait for a reader that sets no window. */
export const resultWindowBytes = 1 * MIB
/**
 * The window of a reader that has not yet consumed this much: a socket buffers some MiB before a stalled reader is
 * noticed.
 */
export const initialWindowBytes = 512 * KIB
export const fullWindowAfterBytes = 16 * MIB
/** Bytes of rows of INSERT .. SELECT that may wait for the writer. */
export const insertWindowBytes = 8 * MIB
/** How long CHECKPOINT CREATE pins a version, so that a killed tool does not keep files forever. */
export const checkpointMsMax = 24 * 3600 * 1000

/** Memory of a query that runs on the main thread. Untouched pages of it cost nothing. */
export const inlineArenaBytes = 8 * MIB
