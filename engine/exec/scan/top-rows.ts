// Reduces what ORDER BY .. LIMIT reads from a table. The minimum and maximum of the first sort key in each page tell
// which morsels (pages and memtable blocks) can have rows of the result; the others are skipped. Of the remaining
// morsels, only the filter's columns and the first sort key are read at first, and rows that sort after the row that is
// currently last in the result are dropped.
//
// Keys are compared as 64-bit words in which the smallest comes first in the result (sort-keys.ts).

import type { SharedMemory } from '../../memory/shared-memory.js'
import type { Expression, Plan } from '../../sql/plan/plan.js'
import { substitute } from '../../sql/plan/walk-plan.js'
import { hidesRows } from '../../storage/memtable/removed-rows.js'
import { type DataType, storageOf } from '../../types/column-types.js'
import type { ExecContext } from '../batch/context.js'
import { type KernelKey, kernelKey } from '../batch/sort-keys.js'
import type { Vector } from '../batch/vector.js'
import { compileVector } from '../expression/expression.js'
import { columnsOf } from '../expression/expression-shape.js'
import { covers, type ScanMorsel } from './morsels.js'
import type { ScanShape } from './scan-shape.js'
import type { WantedRows } from './scan-slices.js'
import type { Bound } from './sort-bound.js'

type SortPlan = Extract<Plan, { kind: 'sort' }>
type KeyValue = number | bigint

/**
 * The first sort key as an expression over the columns of the scan. The plan has a row for each row that passes the
 * scan's filter.
 */
interface FirstKey {
  readonly expression: Expression
  readonly words: KernelKey
  /** Set when the key is monotonic in one column; undefined when statistics say nothing about it. */
  readonly rising: Rising | undefined
}

interface Rising {
  readonly column: number
  readonly at: (value: KeyValue) => KeyValue
}

/** undefined when the kernels cannot make sort words of the key's type. */
function firstKey({ input, keys }: SortPlan): FirstKey | undefined {
  const [key] = keys
  const type = key === undefined ? undefined : input.columns[key.index]?.type
  const words = key === undefined || type === undefined ? undefined : kernelKey(type, key)
  if (key === undefined || type === undefined || words === undefined) return undefined
  let expression: Expression = { kind: 'column', index: key.index, type, position: 0 }
  for (let plan = input; plan.kind !== 'scan'; plan = plan.input) {
    if (plan.kind !== 'project') return undefined
    expression = substitute(expression, plan.expressions)
  }
  return { expression, words, rising: risingOf(expression) }
}

/** Types whose statistics compare like their values, and whose sort words the kernels can make. */
const bounded: ReadonlySet<string> = new Set(['INT', 'LONG', 'FLOAT', 'DOUBLE', 'DATE', 'TIMESTAMP', 'TIMESTAMP_NS'])

/** A column, or a DOUBLE plus or minus a constant: rounding keeps the order. */
function risingOf(expression: Expression): Rising | undefined {
  if (expression.kind === 'column') {
    return bounded.has(expression.type.name) ? { column: expression.index, at: (value) => value } : undefined
  }
  if (expression.kind !== 'call' || expression.type.name !== 'DOUBLE') return undefined
  const { name, args } = expression
  const turned = name === '+' && args[0]?.kind === 'constant'
  const [changing, constant] = turned ? [args[1], args[0]] : args
  if ((name !== '+' && name !== '-') || changing?.type.name !== 'DOUBLE') return undefined
  const below = risingOf(changing)
  const value = constant?.kind === 'constant' ? constant.value : null
  if (below === undefined || (typeof value !== 'number' && typeof value !== 'bigint')) return undefined
  const step = name === '+' ? Number(value) : -Number(value)
  return { column: below.column, at: (given) => Number(below.at(given)) + step }
}

/** Sort words of single values. */
class Words {
  readonly #context: ExecContext
  readonly #type: DataType
  readonly #key: KernelKey
  readonly #address: number

  constructor(context: ExecContext, type: DataType, key: KernelKey) {
    this.#context = context
    this.#type = type
    this.#key = key
    this.#address = context.arena.keep(16)
  }

  of(value: KeyValue): bigint {
    const { memory, kernels } = this.#context
    const { kind, missing, nullWord, turn } = this.#key
    putKey(memory, this.#type, this.#address, value)
    kernels.sort.orderWords(kind, this.#address, 1, missing, nullWord, turn, this.#address + 8)
    return memory.i64[(this.#address + 8) >>> 3]!
  }

  get ofNull(): bigint {
    return BigInt.asIntN(64, this.#key.nullWord ^ this.#key.turn)
  }
}

function putKey({ i32, f32, i64, f64 }: SharedMemory, type: DataType, address: number, value: KeyValue): void {
  switch (storageOf(type)) {
    case 'f64':
      f64[address >>> 3] = Number(value)
      break
    case 'f32':
      f32[address >>> 2] = Number(value)
      break
    case 'i64':
      i64[address >>> 3] = BigInt(value)
      break
    default:
      i32[address >>> 2] = Number(value)
  }
}

/** Lower bounds of the sort words in a morsel, from its statistics. */
class FirstOfMorsels {
  readonly #words: Words
  readonly #rising: Rising
  readonly #columnId: number
  readonly #descending: boolean

  constructor(context: ExecContext, scan: ScanShape, { expression, words }: FirstKey, rising: Rising) {
    this.#words = new Words(context, expression.type, words)
    this.#rising = rising
    this.#columnId = scan.columnIds[rising.column] as number
    this.#descending = words.turn !== 0n
  }

  /** No row of the morsel has a lower word; undefined when nothing is known. */
  of(morsel: ScanMorsel): bigint | undefined {
    const nulls = morsel.nulls(this.#columnId)
    const bounds = morsel.bounds(this.#columnId)
    if (nulls === undefined || (bounds === undefined && nulls < morsel.rows)) return undefined
    if (bounds === undefined) return this.#words.ofNull
    const value = this.#rising.at(this.#descending ? bounds.max : bounds.min)
    if (typeof value === 'number' && !Number.isFinite(value)) return undefined
    const word = this.#words.of(value)
    return nulls > 0 && this.#words.ofNull < word ? this.#words.ofNull : word
  }
}

export interface TopMorsels {
  readonly morsels: readonly ScanMorsel[]
  /** Rows with a higher word are not in the result; null when nothing is known. */
  readonly word: bigint | null
}

/**
 * The morsels that may have rows of the result. At least `limit` morsels contain a row whose word is at most the
 * returned `word`. With a single key, morsels whose best row merely equals it and comes later are excluded, too.
 */
export function topMorsels(
  context: ExecContext,
  plan: SortPlan,
  scan: ScanShape,
  morsels: readonly ScanMorsel[],
): TopMorsels {
  const all = { morsels, word: null }
  const key = firstKey(plan)
  if (key?.rising === undefined || plan.limit === null || morsels.length <= plan.limit) return all
  if (hidesRows(scan.snapshot.version) || scan.filter !== null) return all
  const firsts = new FirstOfMorsels(context, scan, key, key.rising)
  const words = morsels.map((morsel) => firsts.of(morsel))
  const sure = morsels.flatMap((morsel, index) => {
    const word = words[index]
    return word === undefined || morsel.superseded !== 0 || !covers(scan.ranges, morsel.minTs, morsel.maxTs)
      ? []
      : [{ index, word }]
  })
  sure.sort((a, b) => (a.word < b.word ? -1 : a.word > b.word ? 1 : a.index - b.index))
  const last = plan.limit > 0 ? sure[plan.limit - 1] : undefined
  if (last === undefined) return all
  const single = plan.keys.length === 1
  const retained = morsels.filter((_, index) => {
    const word = words[index]
    if (word === undefined || word < last.word) return true
    return word === last.word && (!single || index <= last.index)
  })
  return { morsels: retained, word: last.word }
}

/** Skips rows of a scan by the bound; null when the key is no expression over columns with sort words. */
export function wantedRows(context: ExecContext, plan: SortPlan, scan: ScanShape, bound: Bound): WantedRows | null {
  const key = firstKey(plan)
  const columns = key === undefined ? [] : columnsOf(key.expression)
  if (key === undefined || columns.length === 0) return null
  const { kind, missing, nullWord, turn } = key.words
  const evaluate = compileVector(key.expression, context)
  const firsts = key.rising === undefined ? null : new FirstOfMorsels(context, scan, key, key.rising)
  const { sort } = context.kernels
  return {
    columns,
    skips: (morsel) => {
      const first = bound.word === null ? undefined : firsts?.of(morsel)
      return first !== undefined && bound.word !== null && first > bound.word
    },
    select: (vectors: readonly Vector[], rows, out) => {
      if (bound.word === null) return -1
      const { address } = evaluate({ rows, vectors })
      return sort.rowsWithin(kind, address, rows, missing, nullWord, turn, bound.word, out)
    },
  }
}
