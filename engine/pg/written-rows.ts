// Parses the tuples of a long INSERT .. VALUES with the general SQL parser in chunks, each with the head of the
// statement before it, so that other connections are served between the chunks. If a chunk has an error, the parser
// gets the whole statement, so that the error message is the usual one.

import { assert } from '../base/assert.js'
import { SqlError } from '../base/errors.js'
import type { ExpressionScope } from '../sql/bind/expression.js'
import { parseStatement } from '../sql/parse/parse.js'
import type { BindContext } from '../sql/scope/bind-context.js'
import { collectInsert, type InsertTargets } from './collect-insert.js'
import type { RowCollector } from './row-collector.js'

/** Some milliseconds of work. */
const windowBytes = 16 * 1024

export interface WrittenRows {
  /** Adds the rows of the tuples and returns their number; -1 when they are not valid tuples. */
  readonly collect: (tuples: string) => number
}

/** `head`: the statement up to the first tuple. All chunks share one scope, so now() and random values continue. */
export function writtenRows(
  head: string,
  {
    targets,
    collector,
    scope,
  }: {
    readonly targets: InsertTargets
    readonly collector: RowCollector
    readonly scope: () => ExpressionScope
  },
): WrittenRows {
  let context: BindContext | undefined
  const scopeOf = (sql: string): ExpressionScope => {
    const made = scope()
    context ??= made.context
    return { ...made, context: { ...context, sql } }
  }
  const collect = (tuples: string): number => {
    const sql = head + tuples
    try {
      const statement = parseStatement(sql)
      if (statement.kind !== 'insert' || statement.source.kind !== 'rows') return -1
      const { rows } = statement.source
      return collectInsert({ rows, targets, bound: null, types: [], sql, scope: () => scopeOf(sql) }, collector)
    } catch (error) {
      if (error instanceof SqlError) return -1
      throw error
    }
  }
  return { collect }
}

/**
 * Offset after the tuple that completes a chunk starting at `start`, or after the last one; -1 when the bytes do not
 * allow counting parentheses.
 */
export function windowEnd(bytes: Uint8Array, start: number, end: number): number {
  assert(start <= end, 'P2: tuples do not end before their beginning')
  let depth = 0
  let close = -1
  for (let at = start; at < end; at++) {
    const byte = bytes[at]!
    if (byte === 39 || byte === 34) {
      at = bytes.indexOf(byte, at + 1)
      if (at < 0) return -1
    } else if (byte === 40) depth++
    else if (byte === 41) {
      depth--
      if (depth < 0) return -1
      if (depth === 0) close = at + 1
      if (depth === 0 && close - start >= windowBytes) return close
    } else if (byte === 59) return depth === 0 ? close : -1
    else if (
      byte === 92 ||
      byte === 36 ||
      (byte === 45 && bytes[at + 1] === 45) ||
      (byte === 47 && bytes[at + 1] === 42)
    )
      return -1
  }
  return depth === 0 ? close : -1
}
