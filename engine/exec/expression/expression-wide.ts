// Columns of UUID and LONG256 beside constants: `=`, `<>` and IN compare words, not values.

import type { SharedMemory } from '../../memory/shared-memory.js'
import type { Expression } from '../../sql/plan/plan.js'
import { widthOf } from '../../types/column-types.js'
import type { ExecContext } from '../batch/context.js'
import { TextHeap } from '../batch/text-heap.js'
import { writeValue } from '../batch/values.js'
import { batchRowsMax } from '../batch/vector.js'
import type { VectorEvaluator } from './expression.js'

type Call = Extract<Expression, { kind: 'call' }>

/** Members are tried one after the other. */
const membersMax = 16

/** undefined: not of that kind. `compile` compiles the column. */
export function compileWide(
  { name, args, type }: Call,
  context: ExecContext,
  compile: (expression: Expression) => VectorEvaluator,
): VectorEvaluator | undefined {
  const turned = args[0]?.kind === 'constant' && args.length === 2
  const [value, ...members] = turned ? [...args].reverse() : args
  if (value === undefined || (value.type.name !== 'UUID' && value.type.name !== 'LONG256')) return undefined
  const isMembership = (name === 'in' && !turned) || (members.length === 1 && (name === '=' || name === '<>'))
  if (!isMembership || members.length > membersMax) return undefined
  const wanted = wordsOf(members, value.type.name, context)
  if (wanted === undefined) return undefined
  const { memory, space } = context
  const source = compile(value)
  const address = space.take(context.rowsMax ?? batchRowsMax)
  const words = widthOf(value.type) / 4
  const otherwise = name === '<>' ? 1 : 0
  return (batch) => {
    memory.u8.fill(otherwise, address, address + batch.rows)
    const values = source(batch).address >>> 2
    for (let at = 0; at < wanted.length; at += words)
      markEqual(memory, values, batch.rows, wanted.subarray(at, at + words), 1 - otherwise, address)
    return { type, address, dictionary: 0 }
  }
}

/** As columns have them; undefined when something is no constant of that type. */
function wordsOf(members: readonly Expression[], name: string, context: ExecContext): Int32Array | undefined {
  const { memory, space, symbols } = context
  const [first] = members
  if (first === undefined) return undefined
  const words = widthOf(first.type) / 4
  const address = space.keep(members.length * words * 4)
  const target = { memory, heap: new TextHeap(space), symbols }
  for (const [row, member] of members.entries()) {
    if (member.kind !== 'constant' || member.type.name !== name) return undefined
    writeValue(target, member.type, address, row, member.value)
  }
  return memory.i32.slice(address >>> 2, (address >>> 2) + members.length * words)
}

function markEqual(
  { i32, u8 }: SharedMemory,
  from: number,
  rows: number,
  words: Int32Array,
  mark: number,
  out: number,
) {
  const width = words.length
  const first = words[0]!
  for (let row = 0; row < rows; row++) {
    const at = from + row * width
    if (i32[at] !== first) continue
    let word = 1
    while (word < width && i32[at + word] === words[word]) word++
    if (word === width) u8[out + row] = mark
  }
}
