// Formats SQL text for the editor: keywords in upper case, each clause on a line, long lists one item per line. It
// changes only white space and the case of keywords, so the meaning stays the same; a formatted text does not change
// again.

import { statementsOf, type Token, tokensOf } from '../../common/sql-text.js'

const lineCharactersMax = 100
const indentation = '  '

/** Words and word pairs that begin a line of their own. */
const clauses = new Set([
  ...[
    'select',
    'from',
    'where',
    'group by',
    'having',
    'order by',
    'limit',
    'sample by',
    'latest on',
    'fill',
    'align to',
  ],
  ...['union', 'union all', 'intersect', 'except', 'values', 'set', 'partition by', 'timestamp', 'with', 'returning'],
  ...['join', 'inner join', 'left join', 'left outer join', 'right join', 'full join', 'cross join', 'asof join'],
  ...[
    'lt join',
    'splice join',
    'window join',
    'horizon join',
    'pivot',
    'insert into',
    'update',
    'delete from',
    'using',
  ],
  ...['dedup upsert keys', 'ttl', 'on conflict', 'when matched', 'when not matched', 'range', 'lateral join'],
])

/** Words that are written in upper case. */
export const keywordList = `add align all alter and any as asc asof attach batch between both by calendar cancel case cast checkpoint coalesce
  column columns commit compile copy create cross current dedup default delete desc describe detach distinct do drop
  else enable disable end escape except exists explain false fill filter first following for format from full grant
  group having horizon if ignore ilike in include index inner insert intersect into is join keys last lateral latest
  left like limit linear lt lock match matched materialized merge natural none not nothing now null nulls observation
  of offset on or order outer over partition partitions period pivot policy preceding prev range recursive refresh
  rename replace returning revoke right rows sample select set show splice table tables temp then time to tolerance
  true truncate ttl unbounded union unlock unnest update upsert user using vacuum values view views when where window
  with within zone`

const keywords = new Set(keywordList.split(/\s+/))

function isKeyword(word: string): boolean {
  return keywords.has(word.toLowerCase())
}

/** Formats each statement of a text; comments between them stay as they are. */
export function formatSql(text: string): string {
  let formatted = ''
  let done = 0
  for (const { text: statement, start, end } of statementsOf(text)) {
    formatted += text.slice(done, start) + formatStatement(statement)
    done = end
  }
  return formatted + text.slice(done)
}

interface Piece {
  readonly text: string
  readonly kind: Token['kind']
  /** Words in lower case, with the words of the same clause: `group by`. */
  readonly clause: string | null
  /** Whether white space stood before it. */
  readonly spaced: boolean
}

function formatStatement(sql: string): string {
  return layOut(piecesOf(sql), 0).join('\n')
}

/** Tokens without white space; the words of a clause are one piece. */
function piecesOf(sql: string): Piece[] {
  const pieces: Piece[] = []
  const tokens = tokensOf(sql)
  for (let index = 0; index < tokens.length; index++) {
    const { kind, text } = tokens[index] ?? { kind: 'space', text: '' }
    if (kind === 'space') continue
    const spaced = tokens[index - 1]?.kind === 'space'
    const words = kind === 'word' ? clauseAt(tokens, index) : null
    if (words === null) pieces.push({ text: cased(text, kind, tokens, index), kind, clause: null, spaced })
    else {
      pieces.push({ text: words.text.toUpperCase(), kind, clause: words.text, spaced })
      index = words.last
    }
  }
  return pieces
}

/** Keywords in upper case, unless they are called as a function or follow a dot. */
function cased(text: string, kind: Token['kind'], tokens: readonly Token[], index: number): string {
  if (kind !== 'word' || !isKeyword(text)) return text
  const [before, after] = [tokens[index - 1]?.text, tokens[index + 1]?.text]
  const joins = before === '.' || after === '.'
  return joins || (after === '(' && !/^(in|values|over|fill|and|or|not|as|on|by|filter|exists|any)$/i.test(text))
    ? text
    : text.toUpperCase()
}

/** The longest clause that begins at a token. */
function clauseAt(tokens: readonly Token[], start: number): { text: string; last: number } | null {
  let words = ''
  let best: { text: string; last: number } | null = null
  for (let index = start; index < tokens.length && index < start + 6; index++) {
    const { kind, text } = tokens[index] ?? { kind: 'symbol', text: '' }
    if (kind === 'space') continue
    if (kind !== 'word') break
    words = words === '' ? text.toLowerCase() : `${words} ${text.toLowerCase()}`
    if (clauses.has(words)) best = { text: words, last: index }
  }
  const isCall = best !== null && /^(timestamp|range|left|right|fill|values|first|last)$/.test(best.text)
  const next = best === null ? undefined : tokens[best.last + 1]?.text
  const before = tokens[start - 1]?.text
  if (before === '.' || next === '.') return null
  if (isCall && best !== null && !['fill', 'values', 'timestamp'].includes(best.text) && next === '(') return null
  // Behind the columns of CREATE TABLE; elsewhere it is a type or a name.
  if (best?.text === 'timestamp') {
    const isOfTable = significantAfter(tokens, best.last) === '(' && significantBefore(tokens, start) === ')'
    if (!isOfTable) return null
  }
  if (best?.text === 'range' || best?.text === 'partition by') return insideParentheses(tokens, start) ? null : best
  return best
}

function significantBefore(tokens: readonly Token[], index: number): string | undefined {
  return tokens.slice(0, index).findLast(({ kind }) => kind !== 'space' && kind !== 'comment')?.text
}

function significantAfter(tokens: readonly Token[], index: number): string | undefined {
  return tokens.slice(index + 1).find(({ kind }) => kind !== 'space' && kind !== 'comment')?.text
}

function insideParentheses(tokens: readonly Token[], index: number): boolean {
  let depth = 0
  for (const { text } of tokens.slice(0, index)) depth += text === '(' ? 1 : text === ')' ? -1 : 0
  return depth > 0
}

/** Lines of the pieces, which are one query: a clause begins a line, a bracket with a query is indented. */
function layOut(pieces: readonly Piece[], level: number): string[] {
  const indent = indentation.repeat(level)
  const lines: string[] = []
  for (const group of groupsOf(pieces)) {
    const inline = flat(group)
    const hasQuery = group.some(({ clause }, index) => index > 0 && (clause === 'select' || clause === 'with'))
    const hasComment = group.some(({ kind, text }) => kind === 'comment' && text.startsWith('--'))
    if (!hasComment && !hasQuery && indent.length + inline.length <= lineCharactersMax) lines.push(indent + inline)
    else lines.push(...listLines(group, level))
  }
  return lines
}

/** Cuts at the clauses outside of brackets. */
function groupsOf(pieces: readonly Piece[]): Piece[][] {
  const groups: Piece[][] = []
  let depth = 0
  for (const piece of pieces) {
    const begins = depth === 0 && piece.clause !== null
    if (begins || groups.length === 0) groups.push([])
    groups.at(-1)?.push(piece)
    if (piece.text === '(' || piece.text === '[') depth++
    else if (piece.text === ')' || piece.text === ']') depth--
  }
  return groups
}

/** A clause that is too long for a line: its items below it, brackets with a query indented. */
function listLines(group: readonly Piece[], level: number): string[] {
  const [head, ...rest] = group
  if (head === undefined) return []
  const indent = indentation.repeat(level)
  const items = itemsOf(rest)
  const list = items.length > 1 && head.clause !== null
  const first = list ? [indent + head.text] : []
  return items.reduce((lines, item, index) => {
    const pieces = list ? item : index === 0 ? [head, ...item] : item
    lines.push(...itemLines(pieces, level + (list ? 1 : 0)))
    return lines
  }, first)
}

/** Cuts behind commas, before AND and OR, and behind comments to the end of a line. */
function itemsOf(pieces: readonly Piece[]): Piece[][] {
  const items: Piece[][] = [[]]
  let depth = 0
  let between = false
  for (const piece of pieces) {
    const word = piece.kind === 'word' ? piece.text.toLowerCase() : ''
    if (depth === 0 && word === 'between') between = true
    const joins = depth === 0 && (word === 'or' || (word === 'and' && !between))
    if (depth === 0 && word === 'and') between = false
    if (joins && (items.at(-1)?.length ?? 0) > 0) items.push([])
    items.at(-1)?.push(piece)
    if (piece.text === '(' || piece.text === '[') depth++
    else if (piece.text === ')' || piece.text === ']') depth--
    const ends = (depth === 0 && piece.text === ',') || (piece.kind === 'comment' && piece.text.startsWith('--'))
    if (ends) items.push([])
  }
  return items.filter((item) => item.length > 0)
}

function itemLines(pieces: readonly Piece[], level: number): string[] {
  const open = pieces.findIndex(({ text }, index) => text === '(' && isQueryStart(pieces[index + 1]))
  const indent = indentation.repeat(level)
  if (open < 0) return [indent + flat(pieces)]
  let depth = 0
  let close = open
  for (; close < pieces.length; close++) {
    const text = pieces[close]?.text
    depth += text === '(' ? 1 : text === ')' ? -1 : 0
    if (depth === 0) break
  }
  const tail = pieces.slice(close)
  const after = tail.length === 0 ? [] : itemLines(tail, level)
  return [indent + flat(pieces.slice(0, open + 1)), ...layOut(pieces.slice(open + 1, close), level + 1), ...after]
}

function isQueryStart(piece: Piece | undefined): boolean {
  return piece?.clause === 'select' || piece?.clause === 'with'
}

/** Pieces on one line; a comment to the end of the line ends it. */
function flat(pieces: readonly Piece[]): string {
  let line = ''
  pieces.forEach((piece, index) => {
    const before = pieces[index - 1]
    const breaks = before?.kind === 'comment' && before.text.startsWith('--')
    line += breaks ? '\n' : line !== '' && needsSpace(before, piece) ? ' ' : ''
    line += piece.text
  })
  return line
}

const tight = new Set(['.', '::', '[', ']', ':'])

function needsSpace(before: Piece | undefined, piece: Piece): boolean {
  if (before === undefined) return false
  if (piece.text === ',' || piece.text === ')' || piece.text === ';') return false
  if (before.text === '(' || tight.has(before.text)) return false
  if (tight.has(piece.text)) return piece.text === '[' || piece.text === ':' ? piece.spaced : false
  if (piece.text === '(') return piece.spaced
  // A sign stays with its number, an asterisk with its bracket.
  if (['-', '+', '*', '/', '%', '@', '#', '~', '!', '?', '$', '&', '^', '|'].includes(before.text)) return piece.spaced
  if (piece.kind === 'symbol' && !['=', '<', '>', '<=', '>=', '<>', '!='].includes(piece.text)) return piece.spaced
  return true
}
