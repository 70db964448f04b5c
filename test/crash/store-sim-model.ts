// Model of the tables in the simulation of the object store (store-sim.ts): the rows that exist after all acknowledged
// statements, and the next random statement with its effect. DROP REMOTE takes rows of old partitions at any time, and a
// crash may bring back for a while those that were in memory; so of these partitions the model knows only which rows
// there can be.

import type { Random } from '../support/random.js'

/** `v` by `x`. */
export type StoreRows = ReadonlyMap<number, string>

export interface StoreTable {
  readonly name: string
  readonly create: string
  readonly isDeduplicated: boolean
  readonly hasPolicy: boolean
  /** Days from the first on whose partitions DROP REMOTE may drop. */
  readonly dropDays: number
  isCreated: boolean
  rows: StoreRows
  /** After the statement that is being executed; null: there is none. */
  pending: StoreRows | null
  /** All that the table has held, without the days that may be dropped. */
  readonly states: Set<string>
  /** All rows that it has held. */
  readonly held: Set<string>
}

export interface StoreModel {
  readonly tables: readonly StoreTable[]
  lastX: number
}

export interface StoreStatement {
  readonly table: StoreTable
  readonly sql: string
  readonly after: StoreRows
}

const days = 12

export function storeTables(random: Random): StoreTable[] {
  return ['a', 'b'].map((name) => {
    const isDeduplicated = random.chance(0.4)
    const hasPolicy = random.chance(0.7)
    // In days; 0: never.
    const dropAge = hasPolicy ? random.pick([0, 6, 8]) : 0
    const dropRemote = dropAge > 0 ? `, drop remote ${dropAge}d` : ''
    const policy = hasPolicy ? ` storage policy (to remote 1d, drop local ${random.pick([2, 5])}d${dropRemote})` : ''
    const lake = hasPolicy
      ? random.pick(['', ' lake on format version 3', ' lake off'])
      : random.pick([' lake on', ' lake on format version 3'])
    const dedup = isDeduplicated ? ' dedup upsert keys(ts, x)' : ''
    return {
      ...{ name, isDeduplicated, hasPolicy, isCreated: false, rows: new Map(), pending: null, held: new Set() },
      // The age counts from the newest row, which is of the last day.
      dropDays: dropAge > 0 ? days - 1 - dropAge : 0,
      create: `create table ${name} (ts timestamp, x long, v varchar) timestamp(ts) partition by day${policy}${lake}${dedup}`,
      states: new Set(['']),
    }
  })
}

export function textOf(rows: StoreRows): string {
  return [...rows]
    .sort(([x], [y]) => x - y)
    .map(([x, v]) => `${x}:${v}`)
    .join(' ')
}

/** The rows on days that DROP REMOTE leaves. */
export function keptText({ dropDays }: StoreTable, rows: StoreRows): string {
  return textOf(new Map([...rows].filter(([x]) => dayOf(x) >= dropDays)))
}

/** Rows that there may be from now on, or were before. */
export function noteRows(table: StoreTable, rows: StoreRows): void {
  table.states.add(keptText(table, rows))
  for (const [x, v] of rows) table.held.add(`${x}:${v}`)
}

/** Whether the found rows are these, apart from those that DROP REMOTE may have dropped. */
export function isFound(table: StoreTable, rows: StoreRows, found: StoreRows): boolean {
  return keptText(table, rows) === keptText(table, found) && [...found].every(([x, v]) => table.held.has(`${x}:${v}`))
}

/** Whether the table can have held these rows at some time. */
export function wasHeld(table: StoreTable, rows: StoreRows): boolean {
  return table.states.has(keptText(table, rows)) && [...rows].every(([x, v]) => table.held.has(`${x}:${v}`))
}

export function nextStatement(model: StoreModel, random: Random): StoreStatement {
  const table = random.pick(model.tables)
  const { name, rows, create, hasPolicy } = table
  if (!table.isCreated) return { table, sql: create, after: rows }
  const choice = random.next()
  if (choice < 0.5) return inserted(model, table, random)
  if (choice < 0.62) {
    const rest = random.below(5)
    const value = `u${random.below(1000)}`
    const after = new Map([...rows].map(([x, v]) => [x, x % 5 === rest ? value : v]))
    return { table, sql: `update ${name} set v = '${value}' where x % 5 = ${rest}`, after }
  }
  if (choice < 0.72) {
    const rest = random.below(7)
    const after = new Map([...rows].filter(([x]) => x % 7 !== rest))
    return { table, sql: `delete from ${name} where x % 7 = ${rest}`, after }
  }
  if (choice < 0.82) return dropped(table, random)
  if (choice < 0.87)
    return { table, sql: `alter table ${name} add column c${random.below(1_000_000_000)} int`, after: rows }
  if (hasPolicy && choice < 0.92)
    return { table, sql: `alter table ${name} ${random.pick(['enable', 'disable'])} storage policy`, after: rows }
  return {
    table,
    sql: `alter table ${name} set lake ${random.pick(['on', 'on', 'on format version 3', 'off'])}`,
    after: rows,
  }
}

function inserted(model: StoreModel, table: StoreTable, random: Random): StoreStatement {
  const { name, rows, isDeduplicated } = table
  const after = new Map(rows)
  const values: string[] = []
  for (let count = random.between(1, 30); count > 0; count--) {
    const known = isDeduplicated && rows.size > 0 && random.chance(0.4)
    const x = known ? random.pick([...rows.keys()]) : ++model.lastX
    const v = `i${random.below(1000)}`
    values.push(`(${microsOf(x)}, ${x}, '${v}')`)
    after.set(x, v)
  }
  return { table, sql: `insert into ${name} (ts, x, v) values ${values.join()}`, after }
}

/** Not the newest partition: the age of the others depends on it. */
function dropped(table: StoreTable, random: Random): StoreStatement {
  const { name, rows } = table
  const day = random.below(days - 1)
  const after = new Map([...rows].filter(([x]) => dayOf(x) !== day))
  return { table, sql: `alter table ${name} drop partition list '2023-11-${String(day + 1).padStart(2, '0')}'`, after }
}

/** Follows from x, so that DEDUP finds the row. */
function dayOf(x: number): number {
  return (x * 7) % days
}

function microsOf(x: number): number {
  return Date.UTC(2023, 10, 1 + dayOf(x), 0, 0, x) * 1000
}
