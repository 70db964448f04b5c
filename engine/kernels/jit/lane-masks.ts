// Generates the WebAssembly code of conditions, four rows at a time, as masks. NULL is treated as in
// sql/functions/comparisons.ts: NULL equals NULL, is neither less nor greater than anything, and `<=` holds for two
// NULLs. NULL is stored as the smallest integer or as NaN, so most comparisons give these results without extra code.

import { nonNull } from '../../base/assert.js'
import type { FunctionBuilder } from './assembler.js'
import type { Local } from './code-writer.js'
import { unsupported } from './fragment.js'
import { loadColumn, numbersOf } from './lane-numbers.js'
import {
  asNarrow,
  bothMasks,
  combineMasks,
  constantMask,
  invertMask,
  type LaneGroup,
  type Mask,
  makeMask,
  missingMask,
  type Numbers,
  narrowMask,
  presentMask,
  remember,
  splatInt,
} from './lanes.js'
import type { Node } from './lower.js'
import type { Operation } from './opcodes.js'

export function conditionOf(laneGroup: LaneGroup, node: Node): Mask {
  return remember(laneGroup, node, () => compute(laneGroup, node))
}

function compute(laneGroup: LaneGroup, node: Node): Mask {
  const { f } = laneGroup.env
  const [left, right] = node.args as readonly [Node, Node]
  switch (node.operation) {
    case 'true':
    case 'false':
      return constantMask(f, node.operation === 'true')
    case 'column':
      return narrowMask(f.apply('i32x4.ne', nonNull(loadColumn(laneGroup, node)[0]), splatInt(f, 0)))
    case 'lookup':
      return lookedUp(laneGroup, node)
    case 'missing':
      return left.kind === 'mask' ? constantMask(f, false) : missingMask(f, numbersOf(laneGroup, left))
    case 'and':
      return both(laneGroup, left, right)
    case 'or':
      return combineMasks(f, 'v128.or', conditionOf(laneGroup, left), conditionOf(laneGroup, right))
    case 'not':
      return invertMask(f, conditionOf(laneGroup, left))
    case 'cast':
      return notZero(f, numbersOf(laneGroup, left))
    case 'choose':
      return chosen(laneGroup, node)
  }
  return left.kind === 'mask' ? sameMask(laneGroup, node) : comparison(laneGroup, node)
}

/** Conjunction; `a and not b` is a single instruction. */
function both(laneGroup: LaneGroup, left: Node, right: Node): Mask {
  const { f } = laneGroup.env
  if (right.operation === 'not')
    return combineMasks(f, 'v128.andnot', conditionOf(laneGroup, left), conditionOf(laneGroup, nonNull(right.args[0])))
  if (left.operation === 'not')
    return combineMasks(f, 'v128.andnot', conditionOf(laneGroup, right), conditionOf(laneGroup, nonNull(left.args[0])))
  return combineMasks(f, 'v128.and', conditionOf(laneGroup, left), conditionOf(laneGroup, right))
}

function sameMask(laneGroup: LaneGroup, { operation, args }: Node): Mask {
  const [left, right] = args.map((arg) => conditionOf(laneGroup, arg)) as [Mask, Mask]
  const differs = combineMasks(laneGroup.env.f, 'v128.xor', left, right)
  return operation === '<>' ? differs : invertMask(laneGroup.env.f, differs)
}

function chosen(laneGroup: LaneGroup, { args }: Node): Mask {
  const { f } = laneGroup.env
  const [condition, value, otherwise] = args.map((arg) => asNarrow(f, conditionOf(laneGroup, arg))) as [
    Local,
    Local,
    Local,
  ]
  return narrowMask(f.apply('v128.bitselect', value, otherwise, condition))
}

/** Casts a number to BOOLEAN; NULL is false. */
function notZero(f: FunctionBuilder, numbers: Numbers): Mask {
  const { kind, parts } = numbers
  const zero = splatInt(f, 0)
  const mask = makeMask(
    kind,
    parts.map((part) => f.apply(`${shapes[kind]}.ne` as Operation, part, zero)),
  )
  return bothMasks(f, mask, numbers.missing === 'never' ? null : presentMask(f, numbers)) as Mask
}

/** Reads one byte per row from a predicate lookup table. Ids beyond it belong to rows that are not used. */
function lookedUp(laneGroup: LaneGroup, node: Node): Mask {
  const { f, lookups } = laneGroup.env
  const { table, last } = nonNull(lookups[node.slot])
  const ids = nonNull(numbersOf(laneGroup, nonNull(node.args[0])).parts[0])
  const index = f.apply('i32x4.min_u', f.apply('i32x4.add', ids, splatInt(f, 1)), last)
  let results = splatInt(f, 0)
  for (let lane = 0; lane < 4; lane++) {
    const at = f.apply('i32.add', table, f.extract('i32x4.extract_lane', index, lane))
    results = f.replace('i32x4.replace_lane', results, lane, f.load('i32.load8_u', at, 0))
  }
  return narrowMask(f.apply('i32x4.ne', results, splatInt(f, 0)))
}

// Comparisons -------------------------------------------------------------------------------------------------------

const shapes = { i32: 'i32x4', u32: 'i32x4', i64: 'i64x2', f32: 'f32x4', f64: 'f64x2', entry: 'i32x4' } as const
const signs = { i32: '_s', u32: '_u', i64: '_s', f32: '', f64: '', entry: '_s' } as const
type Relation = 'eq' | 'ne' | 'lt' | 'le'

function comparison(laneGroup: LaneGroup, { operation, args }: Node): Mask {
  const { f } = laneGroup.env
  const [a, b] = args.map((arg) => numbersOf(laneGroup, arg)) as [Numbers, Numbers]
  switch (operation) {
    case '=':
      return equal(f, a, b)
    case '<>':
      return different(f, a, b)
    case '<':
      return less(f, a, b)
    case '>':
      return less(f, b, a)
    case '<=':
      return lessOrEqual(f, a, b)
    case '>=':
      return lessOrEqual(f, b, a)
    case 'below':
      return related(f, 'lt', a, b)
    default:
      return unsupported(operation)
  }
}

function related(f: FunctionBuilder, relation: Relation, a: Numbers, b: Numbers): Mask {
  const sign = relation === 'eq' || relation === 'ne' ? '' : signs[a.kind]
  const operation = `${shapes[a.kind]}.${relation}${sign}` as Operation
  return makeMask(
    a.kind,
    a.parts.map((part, index) => f.apply(operation, part, nonNull(b.parts[index]))),
  )
}

function bothMissing(f: FunctionBuilder, a: Numbers, b: Numbers): Mask {
  return combineMasks(f, 'v128.and', missingMask(f, a), missingMask(f, b))
}

function isNanPair(a: Numbers, b: Numbers): boolean {
  return a.missing === 'nan' && b.missing === 'nan'
}

function equal(f: FunctionBuilder, a: Numbers, b: Numbers): Mask {
  const same = related(f, 'eq', a, b)
  return isNanPair(a, b) ? combineMasks(f, 'v128.or', same, bothMissing(f, a, b)) : same
}

function different(f: FunctionBuilder, a: Numbers, b: Numbers): Mask {
  return isNanPair(a, b) ? invertMask(f, equal(f, a, b)) : related(f, 'ne', a, b)
}

/** Less-than; NULL, the smallest integer, must be excluded. */
function less(f: FunctionBuilder, a: Numbers, b: Numbers): Mask {
  const mask = related(f, 'lt', a, b)
  return isOrderedNull(a) ? (bothMasks(f, mask, presentMask(f, a)) as Mask) : mask
}

function lessOrEqual(f: FunctionBuilder, a: Numbers, b: Numbers): Mask {
  if (isNanPair(a, b)) return combineMasks(f, 'v128.or', related(f, 'le', a, b), bothMissing(f, a, b))
  const mask = related(f, 'le', a, b)
  if (!isOrderedNull(a)) return mask
  if (!isOrderedNull(b)) return bothMasks(f, mask, presentMask(f, a)) as Mask
  return combineMasks(f, 'v128.or', less(f, a, b), related(f, 'eq', a, b))
}

function isOrderedNull({ missing }: Numbers): boolean {
  return missing === 'minimum' || missing === 'zero'
}
