// Completion of SQL at a position of a statement, for the console and the prompt: columns of the tables that the
// statement names, tables after FROM and JOIN, functions and keywords. Their names are arguments; the module accesses
// no server.

import { quoted, statementsOf, type Token, tokensOf } from './sql-text.js'

/** A column of a table, as far as completion shows it. */
interface Column {
  readonly name: string
  readonly type: string
}

export interface Suggestion {
  readonly label: string
  readonly insert: string
  readonly kind: 'table' | 'column' | 'function' | 'keyword'
  readonly detail: string
  /** Higher comes first. */
  readonly rank: number
}

export interface Language {
  readonly keywords: readonly string[]
  /** Names with a signature. */
  readonly functions: ReadonlyMap<string, string>
}

export interface CompletionInput {
  readonly tables: readonly { readonly name: string; readonly kind: string }[]
  readonly language: Language
  /** Columns of a table; empty if there is no such table. */
  readonly columnsOf: (table: string) => Promise<readonly Column[]>
}

export interface Completion {
  /** Offset where the completed word begins. */
  readonly from: number
  readonly suggestions: readonly Suggestion[]
}

interface Source {
  readonly table: string
  readonly alias: string
}

const tableWords = new Set(['from', 'join', 'into', 'update', 'table', 'truncate', 'on_table', 'view', 'base'])
/** Words after a table's name that are no alias. */
const noAlias = new Set(
  `where sample group order limit latest union join asof lt splice window horizon left right full inner cross on fill
  timestamp partition set values select align having pivot for as intersect except natural lateral`.split(/\s+/),
)

/** `asked`: whether the user asked for it, rather than having typed a character. */
export async function complete(
  text: string,
  offset: number,
  asked: boolean,
  input: CompletionInput,
): Promise<Completion | null> {
  const before = tokensOf(text.slice(0, offset))
  const last = before.at(-1)
  if (last?.kind === 'comment' || (last?.kind === 'string' && isOpen(last.text))) return null
  const isWord = last?.kind === 'word' || (last?.kind === 'name' && isOpen(last.text))
  const from = isWord && last !== undefined ? last.start : offset
  if (!isWord && !asked && last?.text !== '.') return null
  const lead = before.filter(({ kind, start }) => start < from && kind !== 'space' && kind !== 'comment')
  const sources = sourcesOf(statementAround(text, offset))
  const previous = lead.at(-1)
  if (previous?.text === '.') return { from, suggestions: await ofQualifier(lead.at(-2), sources, input) }
  if (previous !== undefined && tableWords.has(previous.text.toLowerCase()))
    return { from, suggestions: tables(input, 3) }
  const inList = previous?.text === ',' && lastClause(lead) === 'from'
  if (inList) return { from, suggestions: tables(input, 3) }
  const columns = await Promise.all(sources.map((source) => columnsOf(source, input)))
  return {
    from,
    suggestions: [...columns.flat(), ...tables(input, 0), ...functions(input), ...keywordsOf(input)],
  }
}

function isOpen(text: string): boolean {
  const quote = text.startsWith('"') ? '"' : "'"
  return text.split(quote).length % 2 === 0
}

function statementAround(text: string, offset: number): string {
  const around = statementsOf(text).find(({ start, end }) => start <= offset && offset <= end + 1)
  return around?.text ?? ''
}

function lastClause(tokens: readonly Token[]): string {
  const clause = tokens.findLast(({ kind, text }) => kind === 'word' && /^(select|from|where|by|on|set)$/i.test(text))
  return clause?.text.toLowerCase() ?? ''
}

/** The tables that a statement names after FROM, JOIN, INTO and UPDATE, with their aliases. */
export function sourcesOf(statement: string): Source[] {
  const tokens = tokensOf(statement).filter(({ kind }) => kind !== 'space' && kind !== 'comment')
  const sources: Source[] = []
  let listed = false
  for (let index = 0; index < tokens.length; index++) {
    const token = tokens[index]
    const word = token?.kind === 'word' ? token.text.toLowerCase() : ''
    const begins = ['from', 'join', 'into', 'update'].includes(word) || (listed && token?.text === ',')
    if (word !== '' && word !== 'as' && !begins && noAlias.has(word)) listed = false
    if (!begins) continue
    const name = tokens[index + 1]
    if (name === undefined || (name.kind !== 'word' && name.kind !== 'name')) continue
    listed = word === 'from' || listed
    const table = plain(name)
    const after = tokens[index + 2]
    const aliased = after?.kind === 'word' && after.text.toLowerCase() === 'as' ? tokens[index + 3] : after
    const isAlias = aliased?.kind === 'name' || (aliased?.kind === 'word' && !noAlias.has(aliased.text.toLowerCase()))
    sources.push({ table, alias: isAlias && aliased !== undefined ? plain(aliased) : table })
  }
  return sources
}

function plain({ kind, text }: Token): string {
  return kind === 'name' ? text.replace(/^"|"$/g, '').replaceAll('""', '"') : text
}

async function ofQualifier(
  token: Token | undefined,
  sources: readonly Source[],
  input: CompletionInput,
): Promise<Suggestion[]> {
  if (token === undefined) return []
  const name = plain(token).toLowerCase()
  const source = sources.find(({ alias, table }) => alias.toLowerCase() === name || table.toLowerCase() === name)
  return columnsOf(source ?? { table: plain(token), alias: plain(token) }, input)
}

async function columnsOf({ table }: Source, { columnsOf: ask }: CompletionInput): Promise<Suggestion[]> {
  const columns = await ask(table)
  return columns.map(({ name, type }, index) => ({
    label: name,
    insert: quoted(name),
    kind: 'column',
    detail: type,
    rank: 20 - Math.min(index, 9) / 10,
  }))
}

function tables({ tables: all }: CompletionInput, rank: number): Suggestion[] {
  return all.map(({ name, kind }) => ({
    label: name,
    insert: quoted(name),
    kind: 'table',
    detail: kind,
    rank: 10 + rank,
  }))
}

function functions({ language }: CompletionInput): Suggestion[] {
  return [...language.functions].map(([name, signature]) => ({
    label: name,
    insert: `${name}(`,
    kind: 'function',
    detail: signature.slice(name.length),
    rank: 0,
  }))
}

function keywordsOf({ language }: CompletionInput): Suggestion[] {
  return language.keywords.map((word) => ({
    label: word.toUpperCase(),
    insert: word.toUpperCase(),
    kind: 'keyword',
    detail: '',
    rank: 1,
  }))
}
