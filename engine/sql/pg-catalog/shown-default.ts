// Defaults of columns as PostgreSQL shows them, whoever wrote them: mappers compare them with those that they would write.

import { quoteIdent } from './names.js'
import type { PgType } from './types.js'

/** Text of a default: `(now())` is `now()`, `'5'` of a number `5`, `'x'` of a text `'x'::text`. */
export function shownDefault(written: string, { category, sqlName }: PgType): string {
  const text = withoutParentheses(written)
  const counter = /^nextval\('((?:[^']|'')*)'\)$/.exec(text)?.[1]
  if (counter !== undefined) return `nextval('${quoteIdent(counter)}'::regclass)`
  const literal = /^'((?:[^']|'')*)'$/.exec(text)?.[1]
  if (literal === undefined) return inItsCase(text)
  if (category === 'N' && /^(\d+\.?\d*|\.\d+)$/.test(literal)) return literal
  if (category === 'B' && /^(t|true|y|yes|on|1)$/i.test(literal)) return 'true'
  if (category === 'B' && /^(f|false|n|no|off|0)$/i.test(literal)) return 'false'
  return `${text}::${sqlName}`
}

/** Words and calls without arguments: letters are as PostgreSQL has them, whoever wrote them. */
function inItsCase(text: string): string {
  if (/^(true|false|\w+\(\))$/i.test(text)) return text.toLowerCase()
  return /^(current_(date|time|timestamp|user)|localtime(stamp)?)$/i.test(text) ? text.toUpperCase() : text
}

function withoutParentheses(text: string): string {
  let rest = text.trim()
  while (isParenthesized(rest)) rest = rest.slice(1, -1).trim()
  return rest
}

/** Whether the first parenthesis ends with the text. */
function isParenthesized(text: string): boolean {
  if (!text.startsWith('(')) return false
  let depth = 0
  for (const { 0: token, index } of text.matchAll(/'(?:[^']|'')*'|"(?:[^"]|"")*"|[()]/g)) {
    if (token === '(') depth++
    else if (token === ')') depth--
    if (depth === 0 && token === ')') return index === text.length - 1
  }
  return false
}
