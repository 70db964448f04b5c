// Generates random changes of a table that materialized views read, for differential tests. The rows are of a few days
// around a change of the UTC offset in Berlin, so that they often fall near boundaries of time buckets.

import type { Random } from '../../support/random.js'

export interface RandomChanges {
  /** Statements to run one after the other. */
  change(table: string, views: readonly { readonly name: string }[]): readonly string[]
  /** Two timestamps in order. */
  range(): readonly [string, string]
}

const firstMs = Date.UTC(2024, 2, 30)
const spanMs = 4 * 24 * 3600 * 1000

export function randomChanges({ below, pick }: Random): RandomChanges {
  const ts = (): string => {
    const ms = firstMs + below(spanMs)
    return new Date(pick([ms, Math.floor(ms / 900_000) * 900_000])).toISOString()
  }
  const row = (): string =>
    `('${ts()}', ${pick(["'A'", "'B'", 'null'])}, ${below(1000) / 8}, ${below(1000)}, '${pick(['p', 'q', 'r'])}')`
  const range = (): [string, string] => {
    const [lo, hi] = [ts(), ts()].sort()
    return [lo ?? '', hi ?? '']
  }
  const day = (): string => new Date(firstMs + below(spanMs)).toISOString().slice(0, 10)
  const changes: readonly ((table: string, view: string) => readonly string[])[] = [
    ...Array.from({ length: 5 }, () => (table: string) => [
      `insert into ${table} (ts, sym, d, n, s) values ${Array.from({ length: 1 + below(60) }, row).join(', ')}`,
    ]),
    () => ['checkpoint'],
    () => ['checkpoint'],
    (table) => [`update ${table} set d = d + 1, n = n + 1 where ts > '${ts()}' and sym = '${pick(['A', 'B'])}'`],
    (table) => [`delete from ${table} where ts between '${range().join("' and '")}' and n < ${pick([100, 500, 2000])}`],
    (table) => [`delete from ${table} where sym = '${pick(['A', 'B'])}'`],
    (table) => [`truncate table ${table}`],
    (table) => [`alter table ${table} drop partition where ts < '${day()}'`],
    (table) => [
      `alter table ${table} detach partition list '${day()}'`,
      `alter table ${table} attach partition list '${day()}'`,
    ],
    (table) => [`alter table ${table} dedup enable upsert keys(ts, sym)`],
    (table) => [`alter table ${table} dedup disable`],
    (table) => [`alter table ${table} drop column s`, `alter table ${table} add column s varchar`],
    (table) => [`alter table ${table} alter column n type int`, `alter table ${table} alter column n type long`],
    (table) => [`alter table ${table} alter column n type double`, `alter table ${table} alter column n type long`],
    ...Array.from({ length: 3 }, () => (_: string, view: string) => [
      `refresh materialized view ${view} ${pick(['', 'full', 'incremental'])}`,
    ]),
    (_, view) => {
      const [lo, hi] = range()
      return lo < hi ? [`refresh materialized view ${view} range from '${lo}' to '${hi}'`] : []
    },
  ]
  return { range, change: (table, views) => pick(changes)(table, pick(views).name) }
}
