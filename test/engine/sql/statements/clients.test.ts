// Goal: catalog queries of recorded PostgreSQL clients can be planned and run. Method: each recorded script is parsed,
// and its queries run over a small catalog, with strings as parameters. Statements about cursors, prepared statements
// and COPY are skipped, since the gateway handles them.

import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { parseScript } from '../../../../engine/sql/parse/parse.js'
import { dataType } from '../../../../engine/types/column-types.js'
import { MemoryDatabase } from '../../../support/memory-database.js'

const file = new URL('../parse/fixtures/clients.jsonl', import.meta.url)
const scripts = readFileSync(file, 'utf8')
  .split('\n')
  .filter((line) => line !== '')
  .map((line) => JSON.parse(line) as string)

const ofTheProtocol = new Set(['copy', 'declare cursor', 'fetch', 'close', 'prepare', 'execute', 'empty'])
const text = { value: 'T', type: dataType('STRING') }

/** The queries that psql sends for \\d and a table's name, after it has looked up the oid. */
const describing = [
  `SELECT c.relchecks, c.relkind, c.relhasindex, c.relhasrules, c.relhastriggers, c.relrowsecurity, c.relforcerowsecurity, false AS relhasoids, c.relispartition, '', c.reltablespace, CASE WHEN c.reloftype = 0 THEN '' ELSE c.reloftype::pg_catalog.regtype::pg_catalog.text END, c.relpersistence, c.relreplident, am.amname FROM pg_catalog.pg_class c LEFT JOIN pg_catalog.pg_class tc ON (c.reltoastrelid = tc.oid) LEFT JOIN pg_catalog.pg_am am ON (c.relam = am.oid) WHERE c.oid = '16385'`,
  `SELECT a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod), (SELECT pg_catalog.pg_get_expr(d.adbin, d.adrelid, true) FROM pg_catalog.pg_attrdef d WHERE d.adrelid = a.attrelid AND d.adnum = a.attnum AND a.atthasdef), a.attnotnull, (SELECT c.collname FROM pg_catalog.pg_collation c, pg_catalog.pg_type t WHERE c.oid = a.attcollation AND t.oid = a.atttypid AND a.attcollation <> t.typcollation) AS attcollation, a.attidentity, a.attgenerated FROM pg_catalog.pg_attribute a WHERE a.attrelid = '16385' AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum`,
  `SELECT inhparent::pg_catalog.regclass, pg_catalog.pg_get_expr(c.relpartbound, c.oid), inhdetachpending FROM pg_catalog.pg_class c JOIN pg_catalog.pg_inherits i ON c.oid = inhrelid WHERE c.oid = '16385'`,
  `SELECT pol.polname, pol.polpermissive, CASE WHEN pol.polroles = '{0}' THEN NULL ELSE pg_catalog.array_to_string(array(select rolname from pg_catalog.pg_roles where oid = any (pol.polroles) order by 1),',') END, pg_catalog.pg_get_expr(pol.polqual, pol.polrelid) FROM pg_catalog.pg_policy pol WHERE pol.polrelid = '16385' ORDER BY 1`,
  `SELECT c.oid::pg_catalog.regclass FROM pg_catalog.pg_class c, pg_catalog.pg_inherits i WHERE c.oid = i.inhparent AND i.inhrelid = '16385' AND c.relkind != 'p' AND c.relkind != 'I' ORDER BY inhseqno`,
  `SELECT pubname, NULL, NULL FROM pg_catalog.pg_publication p JOIN pg_catalog.pg_publication_rel pr ON p.oid = pr.prpubid WHERE pr.prrelid = '16385' UNION ALL SELECT pubname, NULL, NULL FROM pg_catalog.pg_publication p WHERE p.puballtables AND pg_catalog.pg_relation_is_publishable('16385') ORDER BY 1`,
  `SELECT c2.relname, i.indisprimary, i.indisunique, i.indisclustered, i.indisvalid, pg_catalog.pg_get_indexdef(i.indexrelid, 0, true), pg_catalog.pg_get_constraintdef(con.oid, true), contype, condeferrable, condeferred, i.indisreplident, c2.reltablespace FROM pg_catalog.pg_class c, pg_catalog.pg_class c2, pg_catalog.pg_index i LEFT JOIN pg_catalog.pg_constraint con ON (conrelid = i.indrelid AND conindid = i.indexrelid AND contype IN ('p','u','x')) WHERE c.oid = '16385' AND c.oid = i.indrelid AND i.indexrelid = c2.oid ORDER BY i.indisprimary DESC, c2.relname`,
]

function database(): MemoryDatabase {
  const made = new MemoryDatabase()
  made.run('create table other (ts timestamp, v long, s symbol) timestamp(ts) partition by day wal')
  made.run('create view seen as (select s, v from other)')
  return made
}

function queriesOf(script: string): string[] {
  return parseScript(script)
    .filter(({ statement }) => !ofTheProtocol.has(statement.kind))
    .map(({ start, end }) => script.slice(start, end))
}

describe('statements of clients', () => {
  test.each(scripts.filter((script) => queriesOf(script).length > 0))('%s', (script) => {
    const made = database()
    if (!/create table "T"/i.test(script))
      made.run('create table T (ts timestamp, v long) timestamp(ts) partition by day wal')
    for (const sql of queriesOf(script)) expect(made.run(sql, [text, text, text, text])).toHaveProperty('tag')
  })
})

test.each(describing)('psql: %s', (sql) => {
  expect(database().run(sql)).toHaveProperty('tag')
})
