// Splits SQL text into tokens and statements, without parsing it: comments, strings, quoted names and dollar-quoted
// strings may contain semicolons. Positions are offsets in UTF-16 units.

type TokenKind = 'comment' | 'string' | 'name' | 'number' | 'word' | 'symbol' | 'space'

export interface Token {
  readonly kind: TokenKind
  readonly text: string
  readonly start: number
}

export interface Statement {
  readonly text: string
  readonly start: number
  /** Offset behind the last character, without the semicolon. */
  readonly end: number
}

const token =
  /(--[^\n]*|\/\*[\s\S]*?(?:\*\/|$))|([eE]?'(?:[^']|'')*'?|\$\$[\s\S]*?(?:\$\$|$))|("(?:[^"]|"")*"?)|(\d[\w.]*)|([A-Za-z_\u0080-\uffff][\w$\u0080-\uffff]*)|(\s+)|(<=|>=|<>|!=|::|\|\||[\s\S])/g

const kinds: readonly TokenKind[] = ['comment', 'string', 'name', 'number', 'word', 'space', 'symbol']

/** Every character of the text is in one token. An unclosed comment or string extends to the end. */
export function tokensOf(text: string): Token[] {
  return Array.from(text.matchAll(token), (match) => {
    const group = match.findIndex((value, index) => index > 0 && value !== undefined)
    return { kind: kinds[group - 1] ?? 'symbol', text: match[0], start: match.index }
  })
}

/** The statements of a text; those without anything but space and comments are left out. */
export function statementsOf(text: string): Statement[] {
  const found: Statement[] = []
  let first = -1
  let end = 0
  const finish = (): void => {
    if (first >= 0) found.push({ text: text.slice(first, end), start: first, end })
    first = -1
  }
  for (const { kind, text: part, start } of tokensOf(text)) {
    if (kind === 'symbol' && part === ';') finish()
    else if (kind !== 'space' && kind !== 'comment') {
      if (first < 0) first = start
      end = start + part.length
    }
  }
  finish()
  return found
}

/**
 * The statement at an offset: the one that contains it, else the one before it on the same line, else the next one,
 * else the last one.
 */
export function statementAt(text: string, offset: number): Statement | null {
  const all = statementsOf(text)
  const around = all.find(({ start, end }) => start <= offset && offset <= end)
  if (around !== undefined) return around
  const before = all.findLast(({ end }) => end < offset)
  if (before !== undefined && !text.slice(before.end, offset).includes('\n')) return before
  return all.find(({ start }) => start > offset) ?? before ?? null
}

/** Whether a statement returns rows that can be asked for in pages and sorted by the server. */
export function isQuery(sql: string): boolean {
  const first = tokensOf(sql).find(({ kind }) => kind === 'word')
  if (first === undefined) return false
  const word = first.text.toLowerCase()
  if (word === 'with') return !/\b(insert|update|delete|merge)\s/i.test(sql)
  return word === 'select' || word === 'from'
}

/** Quotes an identifier unless it is a plain word. */
export function quoted(name: string): string {
  return /^[A-Za-z_]\w*$/.test(name) ? name : `"${name.replaceAll('"', '""')}"`
}

/** A string literal. */
export function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`
}

const secret = /pass(word|wd)|secret|token/i

/** Whether a statement gives a value beside a word such as `password`: it is not stored where others may read it. */
export function givesSecret(sql: string): boolean {
  const tokens = tokensOf(sql).filter(({ kind }) => kind !== 'space')
  return tokens.some(({ kind, text }, index) => {
    if (!secret.test(text)) return false
    if (kind === 'string' || kind === 'comment') return true
    return tokens.slice(index + 1, index + 4).some((next) => next.kind === 'string' || next.kind === 'number')
  })
}

/** Whether a statement may contain a secret: such text is not kept in the browser. */
export function mentionsSecret(sql: string): boolean {
  return secret.test(sql)
}
