// Benchmark that shows why the server does not parse SQL with the npm package sqlite-parser: how many of the recorded
// statements of our parser's tests each of both parsers rejects, and how long each takes for a typical query and for an
// INSERT of 1,000 rows.

import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { parseStatement } from '../../engine/sql/parse/parse.js'

type Parse = (sql: string) => unknown

const typical =
  "select symbol, count(), avg(price) p from trades where price > 100 and side = 'buy' group by symbol order by p limit 10"

function insertOf(rows: number): string {
  const values = Array.from(
    { length: rows },
    (_, row) => `('2024-01-01T00:00:00.000000Z', 'BTC-USD', ${row}.5, ${row})`,
  )
  return `insert into trades (ts, symbol, price, amount) values ${values.join(', ')}`
}

function refuses(parse: Parse, sql: string): boolean {
  try {
    parse(sql)
    return false
  } catch {
    return true
  }
}

/** Milliseconds of one call: the fastest of several rounds. */
function millisecondsOf(parse: Parse, sql: string, calls: number): number {
  let fastest = Number.POSITIVE_INFINITY
  for (let round = 0; round < 5; round++) {
    const start = performance.now()
    for (let call = 0; call < calls; call++) parse(sql)
    fastest = Math.min(fastest, (performance.now() - start) / calls)
  }
  return fastest
}

export function parserReport(print: (line: string) => void): void {
  const peer = createRequire(import.meta.url)('sqlite-parser') as Parse
  const fixtures = new URL('../../../test/engine/sql/parse/fixtures/statements.jsonl', import.meta.url)
  const lines = readFileSync(fixtures, 'utf8').trim().split('\n')
  const statements = lines.map((line) => JSON.parse(line) as string)
  const count = (parse: Parse) => statements.filter((sql) => refuses(parse, sql)).length
  print(`refused of ${statements.length} statements: ours ${count(parseStatement)}, sqlite-parser ${count(peer)}`)
  const query = [millisecondsOf(parseStatement, typical, 200), millisecondsOf(peer, typical, 20)]
  print(
    `typical query: ours ${(query[0] as number) * 1000} us, sqlite-parser ${(query[1] as number) * 1000} us`.replace(
      /(\.\d)\d+/g,
      '$1',
    ),
  )
  const insert = insertOf(1000)
  const rows = [millisecondsOf(parseStatement, insert, 5), millisecondsOf(peer, insert, 1)]
  print(`INSERT of 1,000 rows: ours ${rows[0]} ms, sqlite-parser ${rows[1]} ms`.replace(/(\.\d)\d+/g, '$1'))
}
