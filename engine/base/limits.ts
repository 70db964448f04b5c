// Every limit has its name here, with its unit last. Settings may lower some of them; none is raised at run time.

const KIB = 1024
const MIB = 1024 * KIB

/** Columns that one PIVOT may make. */
export const pivotColumnsMax = 5_000

/** Rows of one page of a part: the unit of caching, of zone maps and of work (a morsel). */
export const pageRowsMax = 65_536
/** Bytes of one value (text, binary, array). */
export const valueBytesMax = 8 * MIB
/** Columns of one table, dropped ones included. */
export const tableColumnsMax = 2_048
/** PRIMARY KEY and UNIQUE of one table, and one more. */
export const tableKeysMax = 64
/** UTF-16 units of a table or column name, as the field's clients count them. */
export const nameCharactersMax = 127
/** Bytes of one line of line protocol. With its header and padding it takes at most half of the ingest ring of 32 MiB. */
export const lineBytesMax = 16 * MIB - KIB
/** Bytes of one WAL frame. */
export const walFrameBytesMax = 64 * MIB
/** Decimal digits of a DECIMAL: 256 bits. */
export const decimalDigitsMax = 76
/** Dimensions of an array. */
export const arrayDimensionsMax = 32
/** Characters of one SQL statement. */
export const statementCharactersMax = 64 * MIB
/** Bind parameters of one statement: the wire protocol counts them in 16 bits. */
export const parametersMax = 65_535
/** Nesting depth of expressions and sub-queries. */
export const sqlDepthMax = 200
/** Tables and queries that one statement names, WITH and views written out. */
export const sqlSourcesMax = 5000
/** Parts of a statement once its variables are written out. */
export const sqlPartsMax = 200_000
/** Parts below each other, then. */
export const sqlLevelsMax = 1_000
/** Joins of one FROM. */
export const sqlJoinsMax = 500
/** Sub-queries of one SELECT that name the query around them: each is a join below the next. */
export const sqlCorrelatedMax = 200
/** Offsets of a HORIZON JOIN: each left row is there so many times. */
export const horizonOffsetsMax = 10_000
/** Queries that one WITH names. */
export const sqlCommonTablesMax = 5_000
/** Characters of a regular expression or of a LIKE pattern that needs one: a compiled pattern takes far more. */
export const patternCharactersMax = 20_000
/** Characters of texts up to which a call of constants is computed when the statement is planned. */
export const foldedCharactersMax = 65_536
/** Rounds of one WITH RECURSIVE, and rows that all of them give. */
export const recursionRoundsMax = 100_000
export const recursionRowsMax = 100_000_000
/** Groupings of one SELECT, by sets or by the orders of its aggregates: each reads its rows. */
export const groupingSetsMax = 256
/** Elements of a list: of SELECT, GROUP BY, ORDER BY, PARTITION BY, arguments of a call, actions of ALTER TABLE; different aggregates. */
export const sqlColumnsMax = 5_000
/** Elements of one IN list, row, array or VALUES list, and of lists of tables. */
export const sqlListMax = 1_000_000
/** Bytes of one slot handed from the main thread to the writer. */
export const ingestBlockBytesMax = 1 * MIB
/** Terms of AND and OR in one statement, values of rows and computed members of IN among them; a branch of CASE counts as two. */
export const sqlTermsMax = 20_000
/** Links of one chain of other operators (`a + b + c ...`). */
export const sqlChainMax = 500
/** Set operations of one chain. */
export const sqlSetOperationsMax = 4_000
/** Tables that one line-protocol request may create. */
export const newTablesPerRequestMax = 10_000
/** Columns that one line-protocol request may add to existing and new tables. */
export const newColumnsPerRequestMax = 20_000
/** Idempotency keys that are remembered; the oldest are forgotten first. */
export const idempotencyKeysMax = 100_000
/** Rows of one transaction of INSERT .. SELECT: bounds the memory of a statement. */
export const insertSelectRows = 100_000
/** Different whole numbers that the list of a sub-query (IN) can have, at up to 18 bytes each, and numbers that array_agg() collects. */
export const listValuesMax = 16_777_216
/** Numbers that one aggregate over all numbers at once (median() and its like) keeps: up to 20 bytes each. */
export const collectedNumbersMax = 268_435_456
/** Rows of values that may wait for their reader. */
export const resultWindowRows = 32_768
/** Encoded bytes of a query that may wait for a reader that names no bound. */
export const resultWindowBytes = 1 * MIB
/** Of a reader that has not shown yet, by so many bytes taken, that it reads on: sockets take some MiB before one that has stopped is noticed. */
export const unprovenWindowBytes = 512 * KIB
export const provenBytes = 16 * MIB
/** Bytes of rows of INSERT .. SELECT that may wait for the writer. */
export const insertWindowBytes = 8 * MIB
/** How long CHECKPOINT CREATE keeps a version: a tool that was killed must not keep files for ever. */
export const checkpointMsMax = 24 * 3600 * 1000

/** Memory of a query that runs on the main thread. Pages of it that none has touched cost nothing. */
export const smallArenaBytes = 8 * MIB
