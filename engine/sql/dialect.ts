// SQL dialects: behaviour of a statement that depends on the kind of client.
//
// Clients of HTTP expect the behaviour that they know from other servers of this SQL dialect (`nativeDialect`). Clients
// of the PostgreSQL wire protocol, among them drivers, object mappers and migration tools, expect PostgreSQL's
// (`postgresDialect`). A gateway chooses the dialect of its sessions. The engine asks the dialect for a behaviour and
// never which protocol a session uses.
//
//   member                native                                   postgres
//   dateIsDay             DATE has a time of day, in milliseconds  a day; days are counted, shown and stored
//   intervalValues        ts - ts is a number                      ts - ts is an interval, text casts to interval
//   exactTimeParts        extract() truncates                      extract(epoch ..) keeps fractions; to_timestamp($1)
//                                                                  takes seconds
//   unboundedNumeric      DECIMAL has fixed digits, x / 0 is NULL  NUMERIC keeps all digits; quotients and means have 18
//                                                                  places; a divisor of zero is an error
//   exactNumbers          1.1 is a DOUBLE, 1.1m a DECIMAL          1.1 that becomes a DECIMAL keeps the digits written
//   strictCasts           BYTE and SHORT wrap, infinity is NULL    an error
//   roundsFractions       integer columns truncate fractions       integer columns round them
//   storesNumbersAsText   an error                                 a text column accepts numbers, timestamps, ..
//   countsCharacters      length() counts UTF-16 units; -1 if NULL length() counts characters; NULL if NULL
//   typedArrays           elements are doubles                     elements keep the type that they were made of
//   rowValues             an error                                 `select t from t`, `select row(a, b)`
//   anyFunctionInFrom     a few functions                          every scalar function is a row source
//   postgresNames         an expression is named by its text       `version()` is `version`, as drivers read it
//   postgresCatalog       own columns; lists tables and views only PostgreSQL's columns; also keys, schemas, pg_catalog
//   repeatedDeclarations  an error                                 DROP TABLE a, b; ALTER COLUMN TYPE to the same type
//   copyStatements        an error                                 COPY of files
//
// Not here: the text and binary formats of values, which the encoding of a result determines
// (engine/api/statements.ts), and features of a gateway (transactions, cursors, COPY FROM STDIN).

export interface Dialect {
  /** Part of the key under which plans and descriptions are cached. */
  readonly name: 'native' | 'postgres'
  /** `x::date`, `current_date` and columns that are declared `date` are days. */
  readonly dateIsDay: boolean
  /** The difference of two timestamps is an interval, and text that PostgreSQL reads as an interval becomes one. */
  readonly intervalValues: boolean
  /** extract() and date_part() keep fractions; `to_timestamp($1)` takes seconds unless the type of $1 is declared. */
  readonly exactTimeParts: boolean
  /**
   * NUMERIC and DECIMAL without declared digits hold any number, casts round to the declared scale, quotients and means
   * keep 18 places, and divisors must not be zero.
   */
  readonly unboundedNumeric: boolean
  /** A literal such as 1.1 keeps its digits when it becomes a DECIMAL, and becomes one beside a DECIMAL. */
  readonly exactNumbers: boolean
  /** A cast of a number beyond BYTE or SHORT, or of 'infinity' to a timestamp, is an error. */
  readonly strictCasts: boolean
  /** Fractions are rounded when they are stored in integer columns. */
  readonly roundsFractions: boolean
  readonly storesNumbersAsText: boolean
  /** length() of a string counts characters, not UTF-16 units; of NULL it is NULL, not -1. */
  readonly countsCharacters: boolean
  /**
   * Arrays of integers and the like are reported with their element type, although their elements are stored as
   * doubles.
   */
  readonly typedArrays: boolean
  /** An item of the SELECT list may be a row, which is shown as text. */
  readonly rowValues: boolean
  readonly anyFunctionInFrom: boolean
  /** Result columns get the names that PostgreSQL gives them, in statements that only its clients send. */
  readonly postgresNames: boolean
  /** pg_catalog and information_schema follow PostgreSQL: `a.t` is table t of schema a, and keys are listed. */
  readonly postgresCatalog: boolean
  /** Schema changes of migration tools: a list of tables to drop, a column type that is declared again. */
  readonly repeatedDeclarations: boolean
  readonly copyStatements: boolean
}

export const nativeDialect: Dialect = {
  name: 'native',
  dateIsDay: false,
  intervalValues: false,
  exactTimeParts: false,
  unboundedNumeric: false,
  exactNumbers: false,
  strictCasts: false,
  roundsFractions: false,
  storesNumbersAsText: false,
  countsCharacters: false,
  typedArrays: false,
  rowValues: false,
  anyFunctionInFrom: false,
  postgresNames: false,
  postgresCatalog: false,
  repeatedDeclarations: false,
  copyStatements: false,
}

export const postgresDialect: Dialect = {
  name: 'postgres',
  dateIsDay: true,
  intervalValues: true,
  exactTimeParts: true,
  unboundedNumeric: true,
  exactNumbers: true,
  strictCasts: true,
  roundsFractions: true,
  storesNumbersAsText: true,
  countsCharacters: true,
  typedArrays: true,
  rowValues: true,
  anyFunctionInFrom: true,
  postgresNames: true,
  postgresCatalog: true,
  repeatedDeclarations: true,
  copyStatements: true,
}
