// Puts the values of a dashboard's variables into the query of a panel. A variable is a word after `@` outside of strings
// and comments. It becomes a literal, never text as it was typed: a string with doubled quotes, or a checked number.
//
//   @room                 the value, or the values separated by commas
//   @from, @to            the time range
//   @interval             an interval for SAMPLE BY that gives about as many points as the panel has room for

import { isNumber, type Variable } from '../../common/dashboards.js'
import { literal, tokensOf } from '../../common/sql-text.js'
import { intervalFor, type TimeRange } from '../app/refine.js'

/** The SQL of each variable, by its name in lower case. */
export type SqlValues = ReadonlyMap<string, string>

/** Replaces the variables that have a value; the server reports others. */
export function panelSql(sql: string, values: SqlValues): string {
  const parts = tokensOf(sql).map(({ text }) => text)
  return parts
    .map((text, index) => {
      const value = parts[index - 1] === '@' ? values.get(text.toLowerCase()) : undefined
      if (value !== undefined) return apart(value, parts[index - 2], parts[index + 1])
      const next = parts[index + 1]
      return text === '@' && next !== undefined && values.has(next.toLowerCase()) ? '' : text
    })
    .join('')
}

/** A space keeps a literal from becoming a part of a word or string beside it, such as E'..'. */
function apart(value: string, before: string | undefined, behind: string | undefined): string {
  const touches = (text: string | undefined): boolean => text !== undefined && !/^[\s(),=<>]/.test(text)
  return `${touches(before) ? ' ' : ''}${value}${touches(behind) ? ' ' : ''}`
}

/** `numeric`: whether the choices come from a column of numbers. */
export function variableSql({ kind, name }: Variable, values: readonly string[], numeric: boolean): string {
  if (kind !== 'number' && !numeric) return values.length === 0 ? 'NULL' : values.map(literal).join(', ')
  const wrong = values.find((value) => !isNumber(value))
  if (wrong !== undefined) throw new Error(`the variable ${name} takes a number [value=${wrong}]`)
  // Brackets keep the sign from joining a minus before it to a comment.
  return values.length === 0 ? 'NULL' : values.map((value) => (/^\d/.test(value) ? value : `(${value})`)).join(', ')
}

export function rangeSql(range: TimeRange, points: number): [string, string][] {
  return [
    ['from', timeSql(range.fromMs)],
    ['to', timeSql(range.toMs)],
    ['interval', intervalFor(range, points)],
  ]
}

function timeSql(ms: number): string {
  return `${literal(new Date(ms).toISOString())}::timestamp`
}
