// The statements of a warm-up: what is usually asked of a table, over a few thousand of its newest rows. Constants vary
// with the round, as those of people do.

import type { TableShape } from '../engine/engine.js'

/** A table of the user's, and which of its columns stand for their kinds; null: it has none. */
export interface WarmTable {
  readonly name: string
  readonly timestamp: string
  readonly symbol: string | null
  readonly double: string | null
  readonly long: string | null
  readonly text: string | null
  /** What is measured: columns of numbers, the first of those that it has. */
  readonly numbers: readonly string[]
  /** Symbols that its newest rows have, of any text; one at least. */
  readonly symbolValues: readonly string[]
  /** The time of its newest rows, in microseconds. */
  readonly from: number
  readonly to: number
  /** The same of so many rows that query threads run the statements; null: it has fewer. */
  readonly sharedFrom: number | null
  /** The same of so many rows that the ways of whole pages are taken; null: it has fewer. */
  readonly pagesFrom: number | null
}

export type WarmStatement = (round: number) => string

/** Which of a table's columns stand for their kinds. */
export type WarmColumns = Omit<WarmTable, 'symbolValues' | 'from' | 'to' | 'sharedFrom' | 'pagesFrom'>

const numbersMost = 10

/** Null: without a designated timestamp (in microseconds) there is no usual way. */
export function warmColumns(shape: TableShape): WarmColumns | null {
  const designated = shape.columns.find(({ name }) => name === shape.timestamp)
  if (shape.timestamp === null || designated?.type.name !== 'TIMESTAMP') return null
  const all = (...types: readonly string[]): string[] =>
    shape.columns.filter(({ type }) => types.includes(type.name)).map((column) => quoted(column.name))
  const first = (...types: readonly string[]): string | null => all(...types)[0] ?? null
  return {
    name: quoted(shape.name),
    timestamp: quoted(shape.timestamp),
    symbol: first('SYMBOL'),
    double: first('DOUBLE', 'FLOAT'),
    long: first('LONG', 'INT'),
    text: first('VARCHAR', 'STRING'),
    numbers: all('DOUBLE', 'FLOAT', 'LONG', 'INT').slice(0, numbersMost),
  }
}

/** Tables that have the same make queries take the same ways. */
export function traitsOf({ symbol, double, long, text, numbers }: WarmColumns): readonly string[] {
  return [
    ...(symbol === null ? [] : ['symbol']),
    ...(double === null ? (long === null ? [] : ['integers']) : ['doubles']),
    ...(text === null ? [] : ['text']),
    ...(numbers.length < numbersMost ? [] : ['many']),
  ]
}

function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}

/** Statements that any server can run. */
export const tablelessStatements: readonly WarmStatement[] = [
  (round) =>
    `select x, x * 0.5 d, cast(x as timestamp) ts, cast(x as varchar) v, x % 2 = 0 b from long_sequence(${3000 + round})`,
  (round) =>
    `select x % 7 k, count(), sum(x), max(x) from long_sequence(3000) where x > ${round} group by k order by k limit 3`,
]

export function statementsOf(table: WarmTable): readonly WarmStatement[] {
  const { name, long, double } = table
  const value = double ?? long
  return [
    (round) => `select * from ${name} where ${within(table, round, 50)}`,
    ...(value === null ? [] : valueStatements(table, value)),
    ...(long === null
      ? []
      : [(round: number) => `select * from ${name} where ${within(table, round)} and ${long} = ${round} limit 5`]),
    ...(table.symbol === null ? [] : symbolStatements(table, table.symbol)),
    ...(value === null || table.symbol === null ? [] : bothStatements(table, value, table.symbol)),
    ...(table.text === null ? [] : textStatements(table, table.text)),
  ]
}

/** Of the rows of a statement, small ones read one of so many. */
const smallDivisor = 50

/**
 * Answered in no time, whatever the table holds, so that they can come often: what V8 compiles of planner, operators and
 * encoders goes by how often they run, not by rows. A comment makes a text that is not known of one without constants.
 */
export function smallStatementsOf(table: WarmTable): readonly WarmStatement[] {
  const { name, timestamp, from, to } = table
  return [
    (n) => `select ${n}`,
    (n) => `select count() from ${name} -- ${n}`,
    (n) => `select min(${timestamp}), max(${timestamp}) from ${name} -- ${n}`,
    (n) => `select * from ${name} limit -20 -- ${n}`,
    ...statementsOf({ ...table, from: to - (to - from) / smallDivisor }),
  ]
}

/** The newest of its rows; constants are other ones in each round. */
function within({ timestamp, from, to }: WarmTable, round: number, divisor = 1): string {
  const begin = to - (to - from) / divisor
  return `${timestamp} >= '${timeText(begin + round)}' and ${timestamp} < '${timeText(to + 1)}'`
}

function timeText(micros: number): string {
  const seconds = Math.floor(micros / 1e6)
  const rest = Math.floor(micros - seconds * 1e6)
  return `${new Date(seconds * 1000).toISOString().slice(0, 19)}.${String(rest).padStart(6, '0')}`
}

function textConstant(text: string): string {
  return `'${text.replaceAll("'", "''")}'`
}

function valueStatements(table: WarmTable, value: string): WarmStatement[] {
  const { name, timestamp } = table
  return [
    (n) => `select count(*) from ${name} where ${value} > ${n} and ${within(table, n)}`,
    (n) =>
      `select count(*), sum(${value}), avg(${value}) + ${n}, min(${value}), max(${value}) from ${name} where ${within(table, n)}`,
    (n) =>
      `select ${timestamp}, avg(${value}) + ${n}, sum(${value}) from ${name} where ${within(table, n)} sample by ${bucket(table)}`,
    (n) =>
      `select ${timestamp}, max(${value}) from ${name} where ${within(table, n)} sample by ${bucket(table)} order by ${timestamp} desc limit ${5 + n}`,
    (n) => `select ${timestamp}, ${value} + ${n} v from ${name} where ${within(table, n)} order by v desc limit 10`,
    (n) =>
      `select hour(${timestamp}) h, avg(${value}) + ${n} from ${name} where ${within(table, n)} group by h order by h`,
  ]
}

function symbolStatements(table: WarmTable, symbol: string): WarmStatement[] {
  const { name, timestamp } = table
  return [
    (n) => `select * from ${name} where ${within(table, n)} latest on ${timestamp} partition by ${symbol}`,
    (n) => `select ${symbol}, count(*) + ${n} from ${name} where ${within(table, n)} group by ${symbol}`,
    (n) =>
      `select ${symbol}, row_number() over (partition by ${symbol} order by ${timestamp}) from ${name} where ${within(table, n, 20)}`,
  ]
}

function bothStatements(table: WarmTable, value: string, symbol: string): WarmStatement[] {
  const { name, timestamp } = table
  const every = bucket(table)
  const symbolTexts = table.symbolValues.map(textConstant)
  const one = (n: number): string => `${symbol} = ${symbolTexts[n % symbolTexts.length]} and ${within(table, n)}`
  const some = (n: number): string => `${symbol} in (${[...symbolTexts, `'${n}'`].join(', ')}) and ${within(table, n)}`
  const each = (name: string, columns: number): string =>
    table.numbers
      .slice(0, columns)
      .map((column) => `${name}(${column})`)
      .join(', ')
  return [
    (n) => `select avg(${value}) + ${n}, sum(${value}) from ${name} where ${one(n)}`,
    (n) => `select * from ${name} where ${value} > ${n} and ${one(n)}`,
    (n) =>
      `select ${symbol}, avg(${value}) + ${n}, sum(${value}) / count(*) from ${name} where ${within(table, n)} group by ${symbol}`,
    (n) =>
      `select ${timestamp}, first(${value}) o, max(${value}) h, min(${value}) l, last(${value}) c, sum(${value}) + ${n} v from ${name} where ${one(n)} sample by ${every}`,
    (n) => `select ${timestamp}, avg(${value}) + ${n} from ${name} where ${one(n)} sample by ${every} fill(prev)`,
    (n) =>
      `select ${timestamp}, max(${value}), max(${value}) + ${n} m from ${name} where ${some(n)} sample by ${every}`,
    (n) => `select ${timestamp}, ${each('max', 5)}, ${n} from ${name} where ${one(n)} sample by ${every}`,
    (n) =>
      `select ${timestamp}, ${each('max', numbersMost)}, ${n} from ${name} where ${some(n)} sample by ${bucket(table, 10)}`,
    (n) =>
      `select ${timestamp}, ${symbol}, ${each('avg', 3 + (n % numbersMost))} from ${name} where ${within(table, n)} sample by ${bucket(table, 10)}`,
    (n) =>
      `select ${timestamp}, ${symbol}, avg(${value}) + ${n} from ${name} where ${within(table, n)} sample by ${every}`,
    (n) =>
      `select ${timestamp}, ${value} + ${n}, avg(${value}) over (order by ${timestamp} rows between 20 preceding and current row) from ${name} where ${one(n)}`,
    (n) =>
      `select avg(a.${value} - b.${value}) + ${n} from (${name} where ${within(table, n, 5)}) a asof join (${name} where ${within(table, n, 5)}) b on (${symbol})`,
  ]
}

function textStatements(table: WarmTable, text: string): WarmStatement[] {
  const { name } = table
  return [
    (n) => `select count(*) + ${n} from ${name} where ${within(table, n, 5)} and ${text} like '%warm%'`,
    (n) =>
      `select ${text}, count(*) + ${n} c from ${name} where ${within(table, n, 5)} group by ${text} order by c desc, ${text} limit 10`,
  ]
}

/** Scans of many pages run other code than those of a few thousand rows. */
export function pageStatementsOf(table: WarmTable): readonly WarmStatement[] {
  const { name, symbol, pagesFrom } = table
  const value = table.double ?? table.long
  if (value === null || pagesFrom === null) return []
  const pages = (n: number): string => within({ ...table, from: pagesFrom }, n)
  const counted: WarmStatement = (n) => `select count(*) from ${name} where ${value} > ${n} and ${pages(n)}`
  if (symbol === null) return [counted]
  const isOne = `${symbol} = ${textConstant(table.symbolValues[0] as string)}`
  return [
    counted,
    (n) => `select ${symbol}, sum(${value}) + ${n}, count(*) from ${name} where ${pages(n)} group by ${symbol}`,
    (n) => `select sum(${value}) + ${n} from ${name} where ${isOne} and ${pages(n)}`,
  ]
}

/** What the main thread would run of a few rows: over so many that query threads do. */
export function sharedStatementsOf(table: WarmTable): readonly WarmStatement[] {
  return table.sharedFrom === null ? [] : statementsOf({ ...table, from: table.sharedFrom })
}

/** Pages that go into files as they lie. */
export function exportsOf(table: WarmTable): readonly WarmStatement[] {
  const { name, pagesFrom } = table
  return pagesFrom === null ? [] : [(n) => `select * from ${name} where ${within({ ...table, from: pagesFrom }, n)}`]
}

/** An interval that makes so many buckets. */
function bucket({ from, to }: WarmTable, buckets = 300): string {
  const seconds = Math.max(1, Math.round((to - from) / (buckets * 1e6)))
  return `${seconds}s`
}
