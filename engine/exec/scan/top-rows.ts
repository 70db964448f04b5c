// The first rows of an order, before rows are read: what the part index knows of the order's first key tells which pieces
// can hold them, and of the pieces that are read only the key's columns, until a row is among the first ones so far.
//
// Words are those of the sort (sort-keys.ts): the smallest comes first.

import type { SharedMemory } from '../../memory/shared-memory.js'
import type { Expression, Plan } from '../../sql/plan/plan.js'
import { substitute } from '../../sql/plan/walk-plan.js'
import { type DataType, storageOf } from '../../types/column-types.js'
import type { ExecContext } from '../batch/context.js'
import { type KernelKey, kernelKey } from '../batch/sort-keys.js'
import type { Vector } from '../batch/vector.js'
import { compileVector } from '../expression/expression.js'
import { columnsOf } from '../expression/expression-shape.js'
import { covers, type Piece } from './pieces.js'
import type { ScanShape } from './scan-shape.js'
import type { WantedRows } from './scan-slices.js'
import type { Bound } from './sort-bound.js'

type SortPlan = Extract<Plan, { kind: 'sort' }>
type Figure = number | bigint

/** The first key over the columns of the scan. Every row that passes the scan's filter is a row of the plan. */
interface FirstKey {
  readonly expression: Expression
  readonly words: KernelKey
  /** Grows with the values of one column; undefined: bounds of columns say nothing of it. */
  readonly rising: Rising | undefined
}

interface Rising {
  readonly column: number
  readonly at: (value: Figure) => Figure
}

/** undefined: the key is of a type that the kernels make no words of. */
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

/** Types whose bounds compare as their values do and whose words the kernels make. */
const bounded: ReadonlySet<string> = new Set(['INT', 'LONG', 'FLOAT', 'DOUBLE', 'DATE', 'TIMESTAMP', 'TIMESTAMP_NS'])

/** A column, and a DOUBLE plus or minus a constant: adding rounds, but keeps the order. */
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

/** Words of single values. */
class Words {
  readonly #context: ExecContext
  readonly #type: DataType
  readonly #key: KernelKey
  readonly #address: number

  constructor(context: ExecContext, type: DataType, key: KernelKey) {
    this.#context = context
    this.#type = type
    this.#key = key
    this.#address = context.space.keep(16)
  }

  of(value: Figure): bigint {
    const { memory, kernels } = this.#context
    const { kind, missing, nullWord, turn } = this.#key
    putFigure(memory, this.#type, this.#address, value)
    kernels.sort.orderWords(kind, this.#address, 1, missing, nullWord, turn, this.#address + 8)
    return memory.i64[(this.#address + 8) >>> 3]!
  }

  get ofNull(): bigint {
    return BigInt.asIntN(64, this.#key.nullWord ^ this.#key.turn)
  }
}

function putFigure({ i32, f32, i64, f64 }: SharedMemory, type: DataType, address: number, value: Figure): void {
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

/** What comes first of a piece, as far as it is known. */
class FirstOfPieces {
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

  /** A word that no row of the piece is below; undefined: it may hold anything. */
  of(piece: Piece): bigint | undefined {
    const nulls = piece.nulls(this.#columnId)
    const bounds = piece.bounds(this.#columnId)
    if (nulls === undefined || (bounds === undefined && nulls < piece.rows)) return undefined
    if (bounds === undefined) return this.#words.ofNull
    const figure = this.#rising.at(this.#descending ? bounds.max : bounds.min)
    if (typeof figure === 'number' && !Number.isFinite(figure)) return undefined
    const word = this.#words.of(figure)
    return nulls > 0 && this.#words.ofNull < word ? this.#words.ofNull : word
  }
}

export interface TopPieces {
  readonly pieces: readonly Piece[]
  /** No row above it is among the first ones; null: nothing is known. */
  readonly word: bigint | null
}

/**
 * Pieces that may hold the first rows: as many pieces as rows are wanted have a row each that comes no later than `word`.
 * Where there is one key, pieces whose first row is as good as theirs but comes behind them are out, too.
 */
export function topPieces(context: ExecContext, plan: SortPlan, scan: ScanShape, pieces: readonly Piece[]): TopPieces {
  const all = { pieces, word: null }
  const key = firstKey(plan)
  if (key?.rising === undefined || plan.limit === null || pieces.length <= plan.limit) return all
  if (scan.snapshot.version.schema.dedupKeys.length > 0 || scan.filter !== null) return all
  const firsts = new FirstOfPieces(context, scan, key, key.rising)
  const words = pieces.map((piece) => firsts.of(piece))
  const sure = pieces.flatMap((piece, index) => {
    const word = words[index]
    return word === undefined || piece.superseded !== 0 || !covers(scan.ranges, piece.minTs, piece.maxTs)
      ? []
      : [{ index, word }]
  })
  sure.sort((a, b) => (a.word < b.word ? -1 : a.word > b.word ? 1 : a.index - b.index))
  const last = plan.limit > 0 ? sure[plan.limit - 1] : undefined
  if (last === undefined) return all
  const single = plan.keys.length === 1
  const kept = pieces.filter((_, index) => {
    const word = words[index]
    if (word === undefined || word < last.word) return true
    return word === last.word && (!single || index <= last.index)
  })
  return { pieces: kept, word: last.word }
}

/** Rows of a scan that the bound does not rule out; null: the key has to be read with all the rest. */
export function wantedRows(context: ExecContext, plan: SortPlan, scan: ScanShape, bound: Bound): WantedRows | null {
  const key = firstKey(plan)
  const columns = key === undefined ? [] : columnsOf(key.expression)
  if (key === undefined || columns.length === 0) return null
  const { kind, missing, nullWord, turn } = key.words
  const evaluate = compileVector(key.expression, context)
  const firsts = key.rising === undefined ? null : new FirstOfPieces(context, scan, key, key.rising)
  const { sort } = context.kernels
  return {
    columns,
    skips: (piece) => {
      const first = bound.word === null ? undefined : firsts?.of(piece)
      return first !== undefined && bound.word !== null && first > bound.word
    },
    select: (vectors: readonly Vector[], rows, out) => {
      if (bound.word === null) return -1
      const { address } = evaluate({ rows, vectors })
      return sort.rowsWithin(kind, address, rows, missing, nullWord, turn, bound.word, out)
    },
  }
}
