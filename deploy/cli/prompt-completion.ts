// Tab completion at the prompt of `penstock sql`, by the rules of the console (gateways/common/sql-completion.ts).
// Names of tables, columns and functions and the SQL keywords are fetched from the server when they are first needed,
// and again after half a minute.

import { type CompletionInput, complete } from '../../gateways/common/sql-completion.js'
import { literal } from '../../gateways/common/sql-text.js'
import { parseResponse } from './exec-response.js'
import type { Client } from './http-client.js'
import { commandNames } from './prompt-commands.js'

const freshMs = 30_000

type Rows = readonly (readonly unknown[])[]

/** `waiting`: the lines of the statement before the current one. */
export function openCompleter(client: Client, waiting: () => string): (line: string) => Promise<[string[], string]> {
  const known = new Map<string, { readonly atMs: number; readonly rows: Promise<Rows> }>()
  const ask = (sql: string): Promise<Rows> => {
    const earlier = known.get(sql)
    if (earlier !== undefined && performance.now() - earlier.atMs < freshMs) return earlier.rows
    const rows = rowsOf(client, sql).catch(() => [])
    known.set(sql, { atMs: performance.now(), rows })
    return rows
  }
  return async (line) => {
    if (line.startsWith('\\') && !line.includes(' '))
      return [commandNames.filter((name) => name.startsWith(line)), line]
    const before = waiting()
    const text = line.startsWith('\\d ') ? `FROM ${line.slice(3)}` : before + line
    const found = await complete(text, text.length, true, await inputOf(ask))
    if (found === null) return [[], line]
    const typed = text.slice(found.from)
    const matching = found.suggestions
      .filter(({ insert, label }) => startsWith(insert, typed) || startsWith(label, typed))
      .sort((a, b) => b.rank - a.rank)
    // A keyword is written as the user writes.
    const isLower = typed !== '' && typed === typed.toLowerCase()
    const words = matching.map(({ insert, kind }) => (kind === 'keyword' && isLower ? insert.toLowerCase() : insert))
    return [[...new Set(words)], typed]
  }
}

function startsWith(word: string, typed: string): boolean {
  return word.toLowerCase().startsWith(typed.toLowerCase())
}

async function inputOf(ask: (sql: string) => Promise<Rows>): Promise<CompletionInput> {
  const [tables, keywords, functions] = await Promise.all([
    ask('SELECT table_name FROM tables()'),
    ask('SELECT keyword FROM keywords()'),
    ask("SELECT DISTINCT name FROM functions() WHERE type != 'CURSOR'"),
  ])
  const names = functions.map(([name]) => String(name)).filter((name) => /^[a-z]\w*$/.test(name))
  return {
    tables: tables.map(([name]) => ({ name: String(name), kind: 'table' })),
    language: {
      keywords: keywords.map(([word]) => String(word)),
      functions: new Map(names.map((name) => [name, name])),
    },
    columnsOf: async (table) => {
      const columns = await ask(`SELECT "column", type FROM table_columns(${literal(table)})`)
      return columns.map(([name, type]) => ({ name: String(name), type: String(type) }))
    },
  }
}

async function rowsOf(client: Client, sql: string): Promise<Rows> {
  const reply = await client.get('exec', { query: sql })
  const text = await reply.body.text()
  return reply.status === 200 ? (parseResponse(text).dataset ?? []) : []
}
