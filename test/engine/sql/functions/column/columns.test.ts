// Goal: the vectorised implementation of an SQL function returns the same values as its scalar one (`eval`). Method:
// every function that has a vectorised one (`column`, or `constantWithin` for functions of a timestamp), and calls such
// as casts that are not in the function tables, on random vectors with NULLs; each argument is a column or a constant.
// Results are compared with the interpreter row by row, with and without generated WebAssembly kernels.

import { afterAll, expect, test } from 'vitest'
import type { ExecContext } from '../../../../../engine/exec/batch/context.js'
import { QueryArena } from '../../../../../engine/exec/batch/query-arena.js'
import { newQueryState } from '../../../../../engine/exec/batch/query-state.js'
import { StringHeap } from '../../../../../engine/exec/batch/string-heap.js'
import { SymbolStrings, Symbols } from '../../../../../engine/exec/batch/symbols.js'
import { valueReader, writeValue } from '../../../../../engine/exec/batch/values.js'
import type { Vector } from '../../../../../engine/exec/batch/vector.js'
import { compileVector } from '../../../../../engine/exec/expression/expression.js'
import { createJit } from '../../../../../engine/kernels/jit/jit.js'
import type { BoundArgument, ScalarFunction, TypePattern } from '../../../../../engine/sql/functions/function-types.js'
import { createRandom as sqlRandom } from '../../../../../engine/sql/functions/random-generator.js'
import { scalarFunctions } from '../../../../../engine/sql/functions/registry/all.js'
import { compileExpression } from '../../../../../engine/sql/functions/registry/evaluate.js'
import type { Expression } from '../../../../../engine/sql/plan/plan.js'
import { type ColumnType, type DataType, dataType, widthOf } from '../../../../../engine/types/column-types.js'
import type { Value } from '../../../../../engine/types/value.js'
import { createRandom, type Random } from '../../../../support/random.js'
import { createBench, noParts } from '../../../exec/exec-support.js'

const rounds = 60
const rows = 70

const bench = createBench(64)
const jit = createJit(bench.memory)
const arenas: QueryArena[] = []

afterAll(() => {
  for (const arena of arenas) arena.freeAll()
})

function contextWith(withKernels: boolean): ExecContext {
  const { memory, allocator, kernels } = bench
  const arena = new QueryArena(memory, allocator)
  arenas.push(arena)
  const nowMicros = 1_700_000_000_000_000n
  return {
    memory,
    arena,
    state: newQueryState(arena),
    kernels,
    partAccess: noParts,
    snapshots: [],
    evaluation: {
      nowMicros,
      clockMicros: () => nowMicros,
      random: sqlRandom(nowMicros, 1n),
      user: '',
      subqueries: [],
    },
    strings: new SymbolStrings(memory),
    symbols: new Symbols(arena),
    jit: withKernels ? jit : null,
    alive: () => {},
    onEnd: () => {},
  }
}

const strings = ['', 'a', 'abc', '  ab ', 'Äpfel', 'a😀b', 'ABC', 'aXbX', 'x%y', '12', 'm', 'month', 'hour', '1h', '3d']
const times = [0n, -1n, 1_700_000_000_123_456n, 951_782_400_000_000n, -62_135_596_800_000_000n]

function someValue(random: Random, { name }: DataType): Value {
  switch (name) {
    case 'BOOLEAN':
      return random.chance(0.5)
    case 'BYTE':
      return random.between(-128, 127)
    case 'SHORT':
      return random.between(-300, 300)
    case 'INT':
      return random.chance(0.1) ? null : random.pick([random.between(-5, 5), 2 ** 31 - 1, -(2 ** 31) + 1])
    case 'FLOAT':
      return random.chance(0.1) ? null : Math.fround(random.between(-500, 500) / 8)
    case 'DOUBLE':
      return random.chance(0.1) ? null : random.pick([random.between(-50, 50) / 4, 1e300, -0, 1 / 3])
    case 'TIMESTAMP':
    case 'TIMESTAMP_NS': {
      // Neighbouring rows often share a day, and seldom an hour.
      const second = name === 'TIMESTAMP' ? 1_000_000n : 1_000_000_000n
      return random.chance(0.1) ? null : random.pick(times) + BigInt(random.below(300_000)) * second
    }
    case 'CHAR':
      return random.chance(0.1) ? null : random.pick(['h', 'd', 'm', 'M', 's', 'x'])
    case 'LONG':
    case 'UUID':
      return random.chance(0.1) ? null : BigInt(random.below(4))
    default:
      return random.chance(0.1) ? null : random.pick(strings)
  }
}

/** Types that match a pattern; for ANY the first argument decides for the others. */
function typeFor(random: Random, pattern: TypePattern, first: DataType | undefined): DataType {
  if (pattern === 'TEXT') return dataType(random.pick(['STRING', 'VARCHAR']))
  if (pattern === 'TIME') return dataType(random.pick(['TIMESTAMP', 'TIMESTAMP_NS']))
  if (pattern !== 'ANY') return dataType(pattern)
  if (first !== undefined) return first
  const any: readonly ColumnType[] = [
    'INT',
    'LONG',
    'DOUBLE',
    'FLOAT',
    'SHORT',
    'STRING',
    'VARCHAR',
    'UUID',
    'TIMESTAMP',
  ]
  return dataType(random.pick(any))
}

/** A call over columns and constants; undefined if the function rejects the constants. */
function callOf(random: Random, row: ScalarFunction, columns: DataType[]): Expression | undefined {
  const patterns = [...row.takes]
  if (row.more !== undefined) for (let more = random.below(4); more > 0; more--) patterns.push(row.more)
  let first: DataType | undefined
  const args = patterns.map((pattern, index): Expression => {
    const type = typeFor(random, pattern, first)
    if (pattern === 'ANY') first = type
    const mustBeConstant = row.name === 'in' && index > 0
    if (!mustBeConstant && random.chance(0.6)) {
      return { kind: 'column', index: columns.push(type) - 1, type, position: 0 }
    }
    return { kind: 'constant', value: someValue(random, type), type, position: 0 }
  })
  if (row.name === 'case' && args.length > 2) {
    // Conditions alternate with values.
    for (let index = 0; index + 1 < args.length; index += 2)
      args[index] = {
        kind: 'column',
        index: columns.push(dataType('BOOLEAN')) - 1,
        type: dataType('BOOLEAN'),
        position: 0,
      }
  }
  const bound: BoundArgument[] = args.map((part) => ({
    type: part.type,
    constant: part.kind === 'constant' ? part.value : undefined,
    position: 0,
  }))
  try {
    row.check?.(bound, 0)
  } catch {
    return undefined
  }
  const { gives } = row
  const type = typeof gives === 'function' ? gives(bound) : gives === 'FIRST' ? bound[0]?.type : dataType(gives)
  return type && { kind: 'call', name: row.name, args, type, position: 0 }
}

function vectorOf(context: ExecContext, type: DataType, values: readonly Value[]): Vector {
  const { memory, arena, symbols } = context
  const address = arena.take(rows * widthOf(type))
  const target = { memory, heap: new StringHeap(arena), symbols }
  values.forEach((value, row) => {
    writeValue(target, type, address, row, value)
  })
  return { type, address, dictionary: 0 }
}

/** The values, or the text of the error. */
function outcome(evaluate: () => readonly Value[]): readonly Value[] | string {
  try {
    return evaluate()
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

function compare(random: Random, call: Expression, columns: readonly DataType[], withKernels: boolean): void {
  const context = contextWith(withKernels)
  const data = columns.map((type) => Array.from({ length: rows }, () => someValue(random, type)))
  const vectors = columns.map((type, index) => vectorOf(context, type, data[index] ?? []))
  const byRow = compileExpression(call, context.evaluation)
  const expected = outcome(() =>
    Array.from({ length: rows }, (_, row) => byRow(data.map((column) => column[row] ?? null))),
  )
  const found = outcome(() => {
    const read = valueReader(bench.memory, context.strings, compileVector(call, context)({ rows, vectors }))
    return Array.from({ length: rows }, (_, row) => read(row))
  })
  context.arena.freeAll()
  const plain = (value: Value): Value => (Object.is(value, -0) ? 0 : value)
  const all = (values: readonly Value[] | string) => (typeof values === 'string' ? values : values.map(plain))
  expect(
    all(found),
    JSON.stringify(call, (_, value) => (typeof value === 'bigint' ? `${value}n` : value)),
  ).toEqual(all(expected))
}

const vectorised = scalarFunctions.filter(
  ({ column, constantWithin }) => column !== undefined || constantWithin !== undefined,
)

test('many functions are vectorised', () => {
  expect(vectorised.length).toBeGreaterThan(100)
})

test.each(vectorised.map((row) => [`${row.name}(${row.takes.join()})`, row] as const))('%s', (_, row) => {
  const random = createRandom(17)
  for (let round = 0; round < rounds; round++) {
    const columns: DataType[] = []
    const call = callOf(random, row, columns)
    if (call !== undefined) compare(random, call, columns, round % 2 === 0)
  }
})

test.each(['STRING', 'VARCHAR'] as const)('cast to %s', (name) => {
  const random = createRandom(19)
  for (const from of ['BYTE', 'SHORT', 'INT', 'LONG', 'TIMESTAMP', 'TIMESTAMP_NS', 'UUID', 'DOUBLE'] as const) {
    const type = dataType(from)
    const value: Expression = { kind: 'column', index: 0, type, position: 0 }
    compare(random, { kind: 'call', name: 'cast', args: [value], type: dataType(name), position: 0 }, [type], true)
  }
})

test('lists of constants', () => {
  const random = createRandom(23)
  for (const name of ['INT', 'LONG', 'DOUBLE', 'STRING', 'UUID', 'TIMESTAMP', 'SHORT'] as const) {
    const type = dataType(name)
    const list: Expression = {
      kind: 'constants',
      values: Array.from({ length: 40 }, () => someValue(random, type)),
      type,
      position: 0,
    }
    const value: Expression = { kind: 'column', index: 0, type, position: 0 }
    compare(
      random,
      { kind: 'call', name: 'in_list', args: [value, list], type: dataType('BOOLEAN'), position: 0 },
      [type],
      true,
    )
  }
})
