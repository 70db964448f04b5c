// Whether a long list of constants has a value: whole numbers by a set of numbers (expression-members.ts), values of
// other types by a table of the hashes that groups and joins go by. Short lists of numbers are left to who tries one after
// the other.

import { hashKinds } from '../../kernels/aggregate.js'
import type { SharedMemory } from '../../memory/shared-memory.js'
import { noNumbers, type WholeNumbers, withColumn } from '../../sql/functions/whole-numbers.js'
import type { Expression } from '../../sql/plan/plan.js'
import { storageOf, widthOf } from '../../types/column-types.js'
import type { Value } from '../../types/value.js'
import type { ExecContext } from '../batch/context.js'
import { TextHeap } from '../batch/text-heap.js'
import { writeValue } from '../batch/values.js'
import { batchRowsMax } from '../batch/vector.js'
import type { VectorEvaluator } from './expression.js'
import { markNumbers, wholeTypes } from './expression-members.js'

type Call = Extract<Expression, { kind: 'call' }>

/** More numbers than these are looked up; so many are tried one after the other by a generated kernel. */
const triedMax = 16
/** No generated kernel compares these. */
const wideStorages: ReadonlySet<string> = new Set(['entry', 'b16', 'b32'])

/** undefined: it is no list, or a short one, or of a type whose values are not hashed. */
export function compileList(
  { name, args, type }: Call,
  context: ExecContext,
  compile: (part: Expression) => VectorEvaluator,
): VectorEvaluator | undefined {
  const [subject] = args
  const members = subject === undefined ? undefined : membersOf(name, args.slice(1), subject.type)
  if (subject === undefined || members === undefined) return undefined
  if (members.length <= (wideStorages.has(storageOf(subject.type)) ? 0 : triedMax)) return undefined
  const listed = listedOf(subject.type, members, context)
  if (listed === undefined) return undefined
  const evaluate = compile(subject)
  const address = context.space.take(context.rowsMax ?? batchRowsMax)
  const mark = wholeTypes.has(subject.type.name) ? marksNumbers(listed, context) : marksHashed(listed, context)
  return (batch) => {
    mark(evaluate(batch).address, batch.rows, address)
    return { type, address, dictionary: 0 }
  }
}

/** The members as a column of the subject's type. */
interface Listed {
  readonly type: Expression['type']
  readonly address: number
  readonly count: number
}

const hashedStorages = ['i32', 'i64', 'f64', 'entry', 'b16', 'b32'] as const
type HashedStorage = (typeof hashedStorages)[number]

function membersOf(name: string, args: readonly Expression[], type: Expression['type']): readonly Value[] | undefined {
  const [list] = args
  if (name === 'in_list') return list?.kind === 'constants' ? list.values : undefined
  const fits = ({ type: other }: Expression): boolean =>
    other.name === type.name || (storageOf(type) === 'entry' && isPlainText(other.name))
  const values = args.flatMap((member) =>
    member.kind === 'constant' && (member.value === null || fits(member)) ? [member.value] : [],
  )
  return name === 'in' && values.length === args.length ? values : undefined
}

function listedOf(type: Expression['type'], values: readonly Value[], context: ExecContext): Listed | undefined {
  if (!(hashedStorages as readonly string[]).includes(storageOf(type)) || !isPlain(type.name)) return undefined
  const { memory, space, symbols } = context
  const address = space.keep(values.length * widthOf(type))
  const target = { memory, heap: new TextHeap(space), symbols }
  values.forEach((value, row) => {
    writeValue(target, type, address, row, value)
  })
  return { type, address, count: values.length }
}

/** Symbols are told by the entries of their dictionary, and the others have no list of constants. */
function isPlain(name: string): boolean {
  return !['SYMBOL', 'BINARY', 'ARRAY', 'INTERVAL', 'DECIMAL'].includes(name)
}

/** A text of one character is a CHAR. */
function isPlainText(name: string): boolean {
  return name === 'STRING' || name === 'VARCHAR' || name === 'SYMBOL' || name === 'CHAR'
}

type Mark = (values: number, rows: number, out: number) => void

function marksNumbers({ type, address, count }: Listed, { memory }: ExecContext): Mark {
  const wide = widthOf(type) === 8
  const words = memory.i32.subarray(address >>> 2, (address >>> 2) + (wide ? count * 2 : count))
  const numbers: WholeNumbers = withColumn(noNumbers(), words, wide)
  return (values, rows, out) => markNumbers(memory, { values, rows, wide }, numbers, out)
}

function marksHashed({ type, address, count }: Listed, { memory, kernels, space }: ExecContext): Mark {
  const kind = hashKinds[storageOf(type) as HashedStorage]
  const hashes = space.take(batchRowsMax * 4)
  const hashesOf = (values: number, rows: number): Int32Array => {
    memory.u32.fill(0, hashes >>> 2, (hashes >>> 2) + rows)
    kernels.aggregate.hashKeys(kind, values, rows, hashes)
    return memory.i32.subarray(hashes >>> 2, (hashes >>> 2) + rows)
  }
  const isSame = sameValues(memory, storageOf(type) as HashedStorage)
  const width = widthOf(type)
  const { places, hashes: known } = tableOf(count, (from, rows) => hashesOf(address + from * width, rows))
  const mask = places.length - 1
  const { u8 } = memory
  /** Behind the place that the hash names: whether a member has the row's value. */
  const isAmong = (slot: number, hash: number, values: number, row: number): number => {
    for (let at = slot; places[at] !== 0; at = (at + 1) & mask) {
      const member = places[at]! - 1
      if (known[member] === hash && isSame(values, row, address, member)) return 1
    }
    return 0
  }
  return (values, rows, out) => {
    const found = hashesOf(values, rows)
    for (let row = 0; row < rows; row++) {
      const hash = found[row]!
      const slot = hash & mask
      u8[out + row] = places[slot] === 0 ? 0 : isAmong(slot, hash, values, row)
    }
  }
}

interface MemberTable {
  /** By the low bits of a hash, and then the next ones: number of a member + 1, 0 = none. */
  readonly places: Int32Array
  /** By member. */
  readonly hashes: Int32Array
}

function tableOf(count: number, hashesOf: (from: number, rows: number) => Int32Array): MemberTable {
  const places = new Int32Array(2 ** Math.ceil(Math.log2(count * 4)))
  const hashes = new Int32Array(count)
  for (let from = 0; from < count; from += batchRowsMax) {
    hashes.set(hashesOf(from, Math.min(batchRowsMax, count - from)), from)
  }
  const mask = places.length - 1
  for (let member = 0; member < count; member++) {
    let slot = hashes[member]! & mask
    while (places[slot] !== 0) slot = (slot + 1) & mask
    places[slot] = member + 1
  }
  return { places, hashes }
}

type Same = (left: number, row: number, right: number, other: number) => boolean

/** NULL is equal to NULL, as for all lists. */
function sameValues({ u8, i32, u32, f64 }: SharedMemory, storage: HashedStorage): Same {
  switch (storage) {
    case 'f64':
      return (left, row, right, other) => {
        const [a, b] = [f64[(left >>> 3) + row]!, f64[(right >>> 3) + other]!]
        return a === b || (Number.isNaN(a) && Number.isNaN(b))
      }
    case 'entry':
      return (left, row, right, other) => {
        const [at, to] = [(left >>> 2) + row * 2, (right >>> 2) + other * 2]
        const bytes = i32[at + 1]!
        if (bytes !== i32[to + 1]) return false
        const [from, wanted] = [u32[at]!, u32[to]!]
        let byte = 0
        while (byte < bytes && u8[from + byte] === u8[wanted + byte]) byte++
        return byte >= bytes
      }
    default: {
      const words = { i32: 1, i64: 2, b16: 4, b32: 8 }[storage]
      return (left, row, right, other) => {
        const [at, to] = [(left >>> 2) + row * words, (right >>> 2) + other * words]
        let word = 0
        while (word < words && i32[at + word] === i32[to + word]) word++
        return word === words
      }
    }
  }
}
