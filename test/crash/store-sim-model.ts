// Model of the tables in the simulation of the object store (store-sim.ts): the rows that exist after all acknowledged
// statements, and the next random statement with its effect.

import type { Random } from '../support/random.js'

/** `v` by `x`. */
export type StoreRows = ReadonlyMap<number, string>

export interface StoreTable {
  readonly name: string
  readonly create: string
  readonly isDeduplicated: boolean
  readonly hasPolicy: boolean
  isCreated: boolean
  rows: StoreRows
  /** After the statement that is being executed; null: there is none. */
  pending: StoreRows | null
  /** All that the table has held. */
  readonly states: Set<string>
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
    const policy = hasPolicy ? ` storage policy (to remote 1d, drop local ${random.pick([2, 5])}d)` : ''
    const lake = hasPolicy ? random.pick(['', '', ' lake off']) : ' lake on'
    const dedup = isDeduplicated ? ' dedup upsert keys(ts, x)' : ''
    return {
      ...{ name, isDeduplicated, hasPolicy, isCreated: false, rows: new Map(), pending: null },
      create: `create table ${name} (ts timestamp, x long, v varchar) timestamp(ts) partition by day${policy}${lake}${dedup}`,
      states: new Set([textOf(new Map())]),
    }
  })
}

export function textOf(rows: StoreRows): string {
  return [...rows]
    .sort(([x], [y]) => x - y)
    .map(([x, v]) => `${x}:${v}`)
    .join(' ')
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
  return { table, sql: `alter table ${name} set lake ${random.pick(['on', 'on', 'off'])}`, after: rows }
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
