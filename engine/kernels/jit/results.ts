// Reads the results of aggregates from the accumulators that generated code (WebAssembly compiled for the query) has
// filled (cells.ts). The results equal those of sql/functions/aggregates/aggregates.ts, for example NULL for a sum of
// no rows.

import { nonNull } from '../../base/assert.js'
import type { SharedMemory } from '../../memory/shared-memory.js'
import type { Value } from '../../types/value.js'
import { longSum, wideSum } from '../../types/wide-sum.js'
import type { Cell, Output, RecordLayout } from './cells.js'

/** The result of an aggregate in the record at the address. */
export function readResult(memory: SharedMemory, { outputs }: RecordLayout, record: number, aggregate: number): Value {
  const output = nonNull(outputs[aggregate])
  const word = (record + output.cell.offset) >>> 3
  switch (output.name) {
    case 'count':
      return BigInt(countOf(memory, output.cell, word))
    case 'sum':
      return sumOf(memory, output, word)
    case 'avg':
      return averageOf(memory, output.cell, word)
    case 'min':
      return extremeOf(memory, output, word, 0)
    case 'max':
      return extremeOf(memory, output, word, 1)
    default:
      return rowOf(memory, word, output.name.startsWith('first') ? 0 : 1)
  }
}

function countOf({ f64, i64 }: SharedMemory, { kind, floating }: Cell, word: number): number {
  if (kind === 'count') return Number(i64[word]!)
  return floating ? f64[word + 1]! : Number(i64[word + 1]!)
}

function sumOf(memory: SharedMemory, { cell, type }: Output, word: number): Value {
  if (countOf(memory, cell, word) === 0) return null
  if (!cell.floating) return cell.kind === 'wide' ? longSum(wideSum(memory, word, word + 2)) : memory.i64[word]!
  const sum = memory.f64[word]!
  return doubleOrNull(type === 'FLOAT' ? Math.fround(sum) : sum)
}

/** The sum is exact; the division is in doubles. */
function averageOf(memory: SharedMemory, cell: Cell, word: number): Value {
  const { f64, i64 } = memory
  const count = countOf(memory, cell, word)
  if (count === 0) return null
  if (cell.floating) return doubleOrNull(f64[word]! / count)
  if (cell.kind === 'sums') return Number(i64[word]!) / count
  return Number(wideSum(memory, word, word + 2)) / count
}

function extremeOf({ f64, i64 }: SharedMemory, { cell, type }: Output, word: number, at: 0 | 1): Value {
  if (cell.floating) return f64[word]! <= f64[word + 1]! ? doubleOrNull(f64[word + at]!) : null
  if (i64[word]! > i64[word + 1]!) return null
  const value = i64[word + at]!
  return type === 'INT' ? Number(value) : value
}

function rowOf({ i64 }: SharedMemory, word: number, at: 0 | 1): Value {
  if (i64[word]! > i64[word + 1]!) return null
  return Number(i64[word + at]!)
}

function doubleOrNull(value: number): number | null {
  return Number.isFinite(value) ? value : null
}
