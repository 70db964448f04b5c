// Evaluates a condition on one symbol column once for each symbol in the dictionary instead of once for each row; rows
// then look up the result by their symbol id. symbolPredicate() fills the whole lookup table at once, for scans and
// generated WebAssembly kernels. compileSymbolPredicate() returns an evaluator that fills an entry when its symbol
// first occurs in a row.

import { dictionaryCount, dictionarySerial } from '../../memory/column-layout.js'
import type { SharedMemory } from '../../memory/shared-memory.js'
import { compileExpression } from '../../sql/functions/registry/evaluate.js'
import type { Expression } from '../../sql/plan/plan.js'
import type { Value } from '../../types/value.js'
import type { ExecContext } from '../batch/context.js'
import { computeIfAbsent, type SymbolPredicate } from '../batch/query-state.js'
import { wantedSymbols } from '../batch/symbol-matches.js'
import { batchRowsMax, type Vector } from '../batch/vector.js'
import type { VectorEvaluator } from './expression.js'
import { columnsOf, isPure } from './expression-shape.js'

const unknown = 0
const holds = 2

/** Looking for more ids than this, one pass over the rows for each, costs more than the lookup table. */
const markedIdsMax = 4

/** undefined when the expression is not of this kind. */
export function symbolPredicate(expression: Expression, context: ExecContext): SymbolPredicate | undefined {
  return computeIfAbsent(context.state.predicates, expression, () => newPredicate(expression, context))
}

function newPredicate(expression: Expression, context: ExecContext): SymbolPredicate | undefined {
  if (expression.kind !== 'call' || expression.type.name !== 'BOOLEAN') return undefined
  const [column, ...others] = columnsOf(expression)
  if (column === undefined || others.length > 0 || !isSymbolTree(expression) || !isPure(expression)) return undefined
  const evaluate = compileExpression(expression, context.evaluation)
  const wanted = wantedSymbols(expression, context)
  const row: Value[] = []
  const resultByte = (value: Value): number => {
    context.alive()
    row[column] = value
    return evaluate(row) === true ? 1 : 0
  }
  let known = { dictionary: -1, count: 0, address: 0 }
  const tableFor = (dictionary: number, count: number): number => {
    if (known.dictionary === dictionary && known.count >= count) return known.address
    const from = known.dictionary === dictionary ? known.count : 0
    const address = context.state.arena.take(count + 1)
    if (from > 0) context.memory.u8.copyWithin(address, known.address, known.address + from + 1)
    else context.memory.u8[address] = resultByte(null)
    const textOf = context.strings.of(dictionary)
    if (wanted !== undefined) {
      context.memory.u8.fill(0, address + 1 + from, address + 1 + count)
      for (const id of wanted.idsIn(dictionary, count)) context.memory.u8[address + 1 + id] = 1
    } else for (let id = from; id < count; id++) context.memory.u8[address + 1 + id] = resultByte(textOf(id))
    known = { dictionary, count, address }
    return address
  }
  return { column, tableFor }
}

function isSymbolTree(expression: Expression): boolean {
  if (expression.kind === 'column') return expression.type.name === 'SYMBOL'
  return expression.kind !== 'call' || expression.args.every(isSymbolTree)
}

/**
 * Fills its table on demand, so a query over few rows of a large dictionary evaluates few entries. Comparisons of a
 * table's column with constant strings compare ids.
 */
export function compileSymbolPredicate(expression: Expression, context: ExecContext): VectorEvaluator | undefined {
  if (symbolPredicate(expression, context) === undefined) return undefined
  const column = columnsOf(expression)[0] as number
  const { memory, arena, strings, evaluation } = context
  const evaluate = compileExpression(expression, evaluation)
  const address = arena.take(batchRowsMax)
  const results = new Map<number, Uint8Array>()
  const wanted = wantedSymbols(expression, context)
  const row: Value[] = []
  return ({ rows, vectors }) => {
    const vector = vectors[column] as Vector
    const { dictionary } = vector
    // Dictionaries of queries have no serial number: another query may have had one at the same address.
    if (wanted !== undefined && dictionary !== 0 && dictionarySerial(memory, dictionary) !== 0) {
      const ids = wanted.idsIn(dictionary, dictionaryCount(memory, dictionary))
      if (ids.length <= markedIdsMax) {
        markIds(memory, vector.address, rows, ids, address)
        return { type: expression.type, address, dictionary: 0 }
      }
    }
    const textOf = strings.of(vector.dictionary)
    let table = results.get(vector.dictionary) ?? new Uint8Array(256)
    const ids = vector.address >>> 2
    for (let index = 0; index < rows; index++) {
      const at = memory.i32[ids + index]! + 1
      if (at >= table.length) table = grown(table, at + 1)
      let known = table[at]!
      if (known === unknown) {
        context.alive()
        row[column] = at === 0 ? null : textOf(at - 1)
        known = evaluate(row) === true ? holds : 1
        table[at] = known
      }
      memory.u8[address + index] = known - 1
    }
    results.set(vector.dictionary, table)
    return { type: expression.type, address, dictionary: 0 }
  }
}

/** NULL, which has no id, equals no string. */
function markIds({ u8, i32 }: SharedMemory, at: number, rows: number, ids: readonly number[], out: number): void {
  u8.fill(0, out, out + rows)
  for (const id of ids) {
    for (let row = 0, word = at >>> 2; row < rows; row++, word++) if (i32[word] === id) u8[out + row] = 1
  }
}

function grown(table: Uint8Array, length: number): Uint8Array {
  const larger = new Uint8Array(Math.max(length, table.length * 2))
  larger.set(table)
  return larger
}
