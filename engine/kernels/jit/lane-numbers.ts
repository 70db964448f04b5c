// Generates the WebAssembly code of numeric expressions, four rows at a time: columns, arithmetic and conditionals.
// Casts are in lane-casts.ts, conditions in lane-masks.ts.

import { nonNull } from '../../base/assert.js'
import { widthOf } from '../../types/column-types.js'
import type { FunctionBuilder } from './assembler.js'
import type { Local } from './code-writer.js'
import { unsupported } from './fragment.js'
import { castNumbers, longToDouble } from './lane-casts.js'
import { conditionOf } from './lane-masks.js'
import {
  combineMasks,
  highWords,
  type LaneGroup,
  lowWords,
  type Mask,
  makeMask,
  maskFor,
  missingMask,
  type Numbers,
  nullVector,
  remember,
  splatDouble,
  splatInt,
  splatLong,
} from './lanes.js'
import type { Node } from './lower.js'
import type { LaneOperation, Operation } from './opcodes.js'

export function numbersOf(laneGroup: LaneGroup, node: Node): Numbers {
  return remember(laneGroup, node, () => compute(laneGroup, node))
}

function compute(laneGroup: LaneGroup, node: Node): Numbers {
  const { f, constants } = laneGroup.env
  const kind = node.kind as Numbers['kind']
  const made = (parts: readonly Local[]): Numbers => ({ kind, parts, missing: node.missing })
  switch (node.operation) {
    case 'column':
      return made(loadColumn(laneGroup, node))
    case 'constant': {
      const constant = nonNull(constants[node.index])
      return made(isTwo(node) ? [constant, constant] : [constant])
    }
    case 'null':
      return made(isTwo(node) ? [nullVector(f, kind), nullVector(f, kind)] : [nullVector(f, kind)])
    case 'cast':
      return castNumbers(laneGroup, node)
    case 'choose':
      return made(chosen(laneGroup, node))
    case 'negate':
    case 'abs':
    case 'sqrt':
    case 'ceil':
    case 'floor':
    case '~':
      return made(unaryParts(f, node, numbersOf(laneGroup, nonNull(node.args[0]))))
    case '/':
    case '%':
      if (kind === 'i32' || kind === 'i64') return made(divided(laneGroup, node))
  }
  return made(binaryParts(laneGroup, node))
}

function isTwo({ kind }: Node): boolean {
  return kind === 'i64' || kind === 'f64'
}

/** Four values of a column. Narrow integers are widened to 32 bits; of entries only the lengths are kept. */
export function loadColumn({ env, row }: LaneGroup, node: Node): readonly Local[] {
  const { f, pointers, columns } = env
  const type = columns[node.index]
  if (type === undefined) return unsupported('column')
  const pointer = nonNull(pointers[node.index])
  const width = widthOf(type)
  const offset = row * width
  switch (width) {
    case 1: {
      const bytes = f.load('v128.load32_zero', pointer, offset)
      return [f.apply('i32x4.extend_low_i16x8_s', f.apply('i16x8.extend_low_i8x16_s', bytes))]
    }
    case 2:
      return [f.load('v128.load16x4_s', pointer, offset)]
    case 4:
      return [f.load('v128.load', pointer, offset)]
    default: {
      const parts = [f.load('v128.load', pointer, offset), f.load('v128.load', pointer, offset + 16)]
      return node.kind === 'entry' ? [highWords(f, parts)] : parts
    }
  }
}

function chosen(laneGroup: LaneGroup, node: Node): readonly Local[] {
  const { f } = laneGroup.env
  const [condition, value, otherwise] = node.args as readonly [Node, Node, Node]
  const mask = maskFor(f, conditionOf(laneGroup, condition), node.kind)
  const left = numbersOf(laneGroup, value).parts
  const right = numbersOf(laneGroup, otherwise).parts
  return left.map((part, index) => f.apply('v128.bitselect', part, nonNull(right[index]), nonNull(mask[index])))
}

const shapes = { i32: 'i32x4', i64: 'i64x2', f32: 'f32x4', f64: 'f64x2' } as const
const symbols = { '+': 'add', '-': 'sub', '*': 'mul', '/': 'div' } as const
const bitwise = { '&': 'v128.and', '|': 'v128.or', '^': 'v128.xor' } as const

function binaryParts(laneGroup: LaneGroup, node: Node): readonly Local[] {
  const { f } = laneGroup.env
  const [a, b] = node.args.map((arg) => numbersOf(laneGroup, arg)) as [Numbers, Numbers]
  const operation = binaryOperation(node)
  if (operation === 'i32x4.mul') return productOfInts(f, node, a, b)
  const parts = a.parts.map((part, index) => f.apply(operation, part, nonNull(b.parts[index])))
  if (node.missing === 'nan') return finite(f, node, parts)
  const isExact = node.operation in bitwise || node.args.every(isNarrow)
  return withNull(f, node, parts, [a, b], isExact ? null : beyondRange(f, node, parts, a, b))
}

/** Whether a value has at most half of the operation's bits, so that sums, differences and products cannot overflow. */
function isNarrow({ type, kind, operation, args }: Node): boolean {
  const source = operation === 'cast' ? nonNull(args[0]) : null
  if (source !== null && kind === 'i64') return source.kind === 'i32' || source.kind === 'mask'
  return (
    kind === 'i32' && [type, source?.type].some((name) => name === 'BYTE' || name === 'SHORT' || name === 'BOOLEAN')
  )
}

/** Mask of overflows of integer operations. */
function beyondRange(f: FunctionBuilder, node: Node, parts: readonly Local[], a: Numbers, b: Numbers): Mask {
  if (node.operation === '*') return productBeyond(f, parts, a, b)
  const zero = splatInt(f, 0)
  const isSum = node.operation === '+'
  return makeMask(
    node.kind,
    parts.map((part, index) => {
      const [left, right] = [nonNull(a.parts[index]), nonNull(b.parts[index])]
      // A sum overflows if its sign differs from those of both terms. Of a difference of opposite signs, compare the
      // second term's.
      const signs = f.apply(
        'v128.and',
        f.apply('v128.xor', left, part),
        isSum ? f.apply('v128.xor', right, part) : f.apply('v128.xor', left, right),
      )
      return f.apply(node.kind === 'i64' ? 'i64x2.lt_s' : 'i32x4.lt_s', signs, zero)
    }),
  )
}

/**
 * Detects overflows of 64-bit products: a wrapped one differs by 2^64 or more from the product as doubles, any other by
 * less than 2^13.
 */
function productBeyond(f: FunctionBuilder, parts: readonly Local[], a: Numbers, b: Numbers): Mask {
  const [left, right, product] = [a.parts, b.parts, parts].map((longs) =>
    longToDouble(f, { kind: 'i64', parts: longs, missing: 'never' }),
  ) as [readonly Local[], readonly Local[], readonly Local[]]
  const limit = splatDouble(f, 2 ** 62)
  return makeMask(
    'i64',
    product.map((part, index) => {
      const exact = f.apply('f64x2.mul', nonNull(left[index]), nonNull(right[index]))
      return f.apply('f64x2.gt', f.apply('f64x2.abs', f.apply('f64x2.sub', exact, part)), limit)
    }),
  )
}

/** A 64-bit product fits 32 bits if its high word is the sign of its low word. */
function productOfInts(f: FunctionBuilder, node: Node, a: Numbers, b: Numbers): readonly Local[] {
  const [left, right] = [nonNull(a.parts[0]), nonNull(b.parts[0])]
  const wide = (['i64x2.extmul_low_i32x4_s', 'i64x2.extmul_high_i32x4_s'] as const).map((half) =>
    f.apply(half, left, right),
  )
  const low = lowWords(f, wide)
  if (node.args.every(isNarrow)) return withNull(f, node, [low], [a, b], null)
  const beyond = f.apply('i32x4.ne', highWords(f, wide), f.apply('i32x4.shr_s', low, f.number('i32', 31)))
  return withNull(f, node, [low], [a, b], makeMask('i32', [beyond]))
}

/** Infinite results become NULL: x - x is NaN for an infinite x, else 0. */
function finite(f: FunctionBuilder, { kind }: Node, parts: readonly Local[]): readonly Local[] {
  const subtract = kind === 'f32' ? 'f32x4.sub' : 'f64x2.sub'
  return parts.map((part) => f.apply(subtract, part, f.apply(subtract, part, part)))
}

function binaryOperation({ operation, kind }: Node): Operation {
  if (operation in bitwise) return bitwise[operation as keyof typeof bitwise]
  if (kind === 'mask' || kind === 'u32' || kind === 'entry') return unsupported(operation)
  return `${shapes[kind]}.${symbols[operation as keyof typeof symbols]}` as Operation
}

/** NULL if an operand is NULL, and on overflow. Floating-point arithmetic does the former by itself. */
function withNull(
  f: FunctionBuilder,
  node: Node,
  parts: readonly Local[],
  operands: readonly Numbers[],
  beyond: Mask | null,
): readonly Local[] {
  const nullable = operands.filter(({ missing }) => missing !== 'never')
  if (node.missing === 'nan' || (nullable.length === 0 && beyond === null)) return parts
  const missing = nullable.length === 0 ? null : anyMissing(f, nullable)
  const nothing =
    missing === null || beyond === null ? (missing ?? beyond) : combineMasks(f, 'v128.or', missing, beyond)
  return nullWhere(f, node, parts, nothing as Mask)
}

function anyMissing(f: FunctionBuilder, operands: readonly Numbers[]): Mask {
  return operands
    .map((operand) => missingMask(f, operand))
    .reduce((left, right) => combineMasks(f, 'v128.or', left, right))
}

function nullWhere(f: FunctionBuilder, { kind }: Node, parts: readonly Local[], mask: Mask): readonly Local[] {
  const bits = maskFor(f, mask, kind)
  const nothing = nullVector(f, kind)
  return parts.map((part, index) => f.apply('v128.bitselect', nothing, part, nonNull(bits[index])))
}

/** The smallest integer is its own negative, so NULL remains NULL. */
function unaryParts(f: FunctionBuilder, node: Node, operand: Numbers): readonly Local[] {
  const { operation, kind } = node
  if (operation === '~')
    return withNull(
      f,
      node,
      operand.parts.map((part) => f.apply('v128.not', part)),
      [operand],
      null,
    )
  if (kind === 'mask' || kind === 'u32' || kind === 'entry') return unsupported(operation)
  if (operation === 'abs' && (kind === 'i32' || kind === 'i64'))
    return operand.parts.map((part) => magnitude(f, kind, part))
  const name = `${shapes[kind]}.${operation === 'negate' ? 'neg' : operation}` as Operation
  const parts = operand.parts.map((part) => f.apply(name, part))
  return node.missing === 'nan' ? finite(f, node, parts) : parts
}

function magnitude(f: FunctionBuilder, kind: 'i32' | 'i64', part: Local): Local {
  const zero = splatInt(f, 0)
  const negative = kind === 'i32' ? f.apply('i32x4.lt_s', part, zero) : f.apply('i64x2.lt_s', part, zero)
  return f.apply('v128.bitselect', f.apply(kind === 'i32' ? 'i32x4.neg' : 'i64x2.neg', part), part, negative)
}

/** Integer division has no vector instruction: lane by lane, with operands that cannot trap. */
function divided(laneGroup: LaneGroup, node: Node): readonly Local[] {
  const { f } = laneGroup.env
  const wide = node.kind === 'i64'
  const [a, b] = node.args.map((arg) => numbersOf(laneGroup, arg)) as [Numbers, Numbers]
  const zero = splatInt(f, 0)
  const byZero = makeMask(
    node.kind,
    b.parts.map((part) => f.apply(wide ? 'i64x2.eq' : 'i32x4.eq', part, zero)),
  )
  const nullable = [a, b].filter(({ missing }) => missing !== 'never')
  const bad = nullable.length === 0 ? byZero : combineMasks(f, 'v128.or', byZero, anyMissing(f, nullable))
  const bits = maskFor(f, bad, node.kind)
  const one = wide ? splatLong(f, 1n) : splatInt(f, 1)
  const name = `${wide ? 'i64' : 'i32'}.${node.operation === '/' ? 'div_s' : 'rem_s'}` as Operation
  const parts = a.parts.map((part, index) => {
    const left = f.apply('v128.bitselect', zero, part, nonNull(bits[index]))
    const right = f.apply('v128.bitselect', one, nonNull(b.parts[index]), nonNull(bits[index]))
    return eachLane(f, wide, left, right, name)
  })
  return nullWhere(f, node, parts, bad)
}

function eachLane(f: FunctionBuilder, wide: boolean, left: Local, right: Local, name: Operation): Local {
  const lanes = wide ? [0, 1] : [0, 1, 2, 3]
  const extract: LaneOperation = wide ? 'i64x2.extract_lane' : 'i32x4.extract_lane'
  const replace: LaneOperation = wide ? 'i64x2.replace_lane' : 'i32x4.replace_lane'
  let result = left
  for (const lane of lanes) {
    const value = f.apply(name, f.extract(extract, left, lane), f.extract(extract, right, lane))
    result = f.replace(replace, result, lane, value)
  }
  return result
}
