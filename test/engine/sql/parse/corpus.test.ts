// Goal: the parser accepts the statements that clients of this SQL dialect send, reports syntax errors with the
// recorded position and text, and names result columns as recorded. Method: recorded statements in fixtures, line by
// line.

import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { SqlError } from '../../../../engine/base/errors.js'
import type { Expression, SelectItem } from '../../../../engine/sql/ast/ast.js'
import { parseScript, parseStatement } from '../../../../engine/sql/parse/parse.js'
import { expressionText } from '../../../../engine/sql/parse/text.js'

function fixture<Line>(name: string): Line[] {
  const text = readFileSync(new URL(`fixtures/${name}.jsonl`, import.meta.url), 'utf8')
  return text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Line)
}

function failure(parse: () => unknown): { position: number; message: string } | null {
  try {
    parse()
    return null
  } catch (error) {
    if (!(error instanceof SqlError)) throw error
    return { position: error.position, message: error.message }
  }
}

describe('recorded statements', () => {
  it('parse', () => {
    const failures = fixture<string>('statements').map((sql) => [sql, failure(() => parseStatement(sql))])
    expect(failures.filter(([, error]) => error !== null)).toEqual([])
  })

  it('parse as clients send them, several in one text', () => {
    const failures = fixture<string>('clients').map((sql) => [sql, failure(() => parseScript(sql))])
    expect(failures.filter(([, error]) => error !== null)).toEqual([])
  })

  it('fail with the recorded position and wording', () => {
    const lines = fixture<[string, number, string]>('errors')
    const ours = lines.map(([sql]) => ({ sql, ...failure(() => parseStatement(sql)) }))
    expect(ours).toEqual(lines.map(([sql, position, message]) => ({ sql, position, message })))
  })

  it('name their columns', () => {
    const lines = fixture<string[]>('names')
    expect(lines.map(([sql = '']) => [sql, ...columnNames(sql)])).toEqual(lines)
  })
})

function columnNames(sql: string): string[] {
  const statement = parseStatement(sql)
  if (statement.kind !== 'query' || statement.body.kind !== 'select') throw new Error(`no select: ${sql}`)
  const seen = new Map<string, number>()
  return statement.body.items.map(itemName).map((name) => {
    const count = (seen.get(name.toLowerCase()) ?? 0) + 1
    seen.set(name.toLowerCase(), count)
    return count === 1 ? name : `${name}_${count}`
  })
}

function itemName({ alias, expression }: SelectItem): string {
  return alias?.name ?? nameOf(expression)
}

/** The binder's rule: a column keeps the last part of its name, and a name with a dot is quoted. */
function nameOf(expression: Expression): string {
  if (expression.kind === 'column') return expression.path.at(-1) ?? ''
  const text = expressionText(expression)
  return text.includes('.') ? `"${text}"` : text
}
