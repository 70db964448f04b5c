// Benchmark of operators whose state outgrows the memory of queries and spills to temporary files, beside the same
// operators with an eighth of the state, which fits. The server's memory decides what fits: start with `--set
// memory.bytes=512m`. Reports the median milliseconds of both and their ratio. If the larger state also comes from
// eight times the input rows, its time is divided by eight first.

import type { Peer } from './peers.js'
import { exec, medianTime, queryClient } from './suite-scan.js'

export interface SpillOptions {
  /** Rows of the table, and distinct keys of the larger state; the smaller one has an eighth. */
  readonly rows: number
  readonly runs: number
}

const smallerParts = 8

/**
 * `#` stands for the number of distinct keys, or of rows where the condition is `k < #`; `?` for a constant that varies
 * from run to run.
 */
const statements: readonly (readonly [name: string, sql: string])[] = [
  ['GROUP BY', 'select count(), max(n) from (select k % # g, count() n, sum(v + ?) s, first(t) f from s group by g)'],
  ['DISTINCT', 'select count(), max(g) from (select distinct k % # g, v % 7 w, t from s where k % 100 <> ?)'],
  ['UNION', 'select count() from (select k % # g, t from s union select k % # + ? g, t from s)'],
  ['join by texts', 'select count() from s join (select t, v w from s where k <= # and v <> ?) r on s.t = r.t'],
  ['window', 'select max(n) from (select row_number() over (partition by k % # order by v) n from s where v <> ?)'],
  ['LATEST ON', 'select count() from (select k % # g, v + ? w, ts from s) latest on ts partition by g'],
  ['FILL', 'select count() from (select ts, k % # g, max(v + ?) from s sample by 100s fill(prev))'],
  ['one window', 'select max(n) from (select sum(v + ?) over (order by k) n from s where k < #)'],
  ['moving window', 'select max(n) from (select sum(v + ?) over (order by k rows 20 preceding) n from s where k < #)'],
  ['ranks', 'select max(n) from (select percent_rank() over (order by v + ?) n from s where k < #)'],
]

export async function spills(
  peers: readonly Peer[],
  { rows, runs }: SpillOptions,
  print: (line: string) => void,
): Promise<void> {
  for (const { server } of peers) {
    const client = queryClient(server.httpPort)
    await exec(
      client,
      `create table s as (select timestamp_sequence(0, 1000) ts, (x * 7919) % ${rows} k, x % 1000 v, concat('text ', (x * 31) % ${rows}) t from long_sequence(${rows})) timestamp(ts)`,
    )
    await exec(client, 'checkpoint')
    for (const [name, sql] of statements) {
      const timeOf = (keys: number): Promise<number> =>
        medianTime(runs, (n) => exec(client, sql.replaceAll('#', `${keys}`).replaceAll('?', `${n}`)))
      const smaller = await timeOf(Math.ceil(rows / smallerParts))
      const larger = (await timeOf(rows)) / (sql.includes('k < #') ? smallerParts : 1)
      print(
        `${server.name.padEnd(9)} ${name.padEnd(16)} ${milliseconds(smaller)}   larger ${milliseconds(larger)}   ratio ${(larger / smaller).toFixed(2)}`,
      )
    }
    await client.close()
  }
}

function milliseconds(value: number): string {
  return `${value.toFixed(1).padStart(8)} ms`
}
