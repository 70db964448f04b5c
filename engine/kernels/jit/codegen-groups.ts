// Generates the WebAssembly code of GROUP BY: for every four rows it computes their group numbers and the addresses of
// the groups' accumulators, and then adds the four values one by one. Rows that do not pass the filter are added to
// spare accumulators after those of the groups, which avoids a branch for each row.

import { nonNull } from '../../base/assert.js'
import type { FunctionBuilder } from './assembler.js'
import type { BlockLayout } from './block.js'
import { addToCell, type Cell, pairsOf, type RecordLayout } from './cells.js'
import type { Local } from './code-writer.js'
import { candidates, positions, signedHighWords, takenValues } from './codegen-total.js'
import { unsupported } from './fragment.js'
import { conditionOf } from './lane-masks.js'
import { numbersOf } from './lane-numbers.js'
import {
  asNarrow,
  asWide,
  extended,
  type LaneGroup,
  type Mask,
  missingMask,
  type Numbers,
  presentMask,
  splatDouble,
  splatInt,
  splatLong,
} from './lanes.js'
import type { Node } from './lower.js'
import type { RowLoop } from './rows.js'

/** A lowered GroupKey. */
export type KeyNode =
  /** `shift`: constant that maps values to numbers from 1; null for BOOLEAN. */
  | { readonly kind: 'integer'; readonly node: Node; readonly shift: Node | null }
  | { readonly kind: 'bucket'; readonly node: Node; readonly origin: Node; readonly step: Node }

export interface GroupContext {
  readonly loop: RowLoop
  readonly layout: RecordLayout
  readonly blockLayout: BlockLayout
  readonly keys: readonly KeyNode[]
  /** Function parameters. */
  readonly block: Local
  readonly state: Local
  readonly groups: Local
  readonly stride: Local
  readonly firstRow: Local
}

export type AddLanes = (laneGroup: LaneGroup, mask: Mask | null) => void

export function groupCode(context: GroupContext): AddLanes {
  const { f } = context.loop.env
  const numberOf = groupNumbers(context)
  const spare = f.hoist(() => f.apply('i32x4.add', f.apply('i32x4.splat', context.groups), laneNumbers(f)))
  const sets = f.hoist(() => setAddresses(context))
  const first = f.hoist(() => f.apply('i64x2.splat', context.firstRow))
  return (laneGroup, mask) => {
    const body = (): void => {
      const numbers = numberOf(laneGroup)
      const known = mask === null ? numbers : f.apply('v128.or', numbers, f.apply('v128.not', asNarrow(f, mask)))
      const records = multiplied(f, f.apply('i32x4.min_u', known, spare), context.layout.bytes)
      const addresses = f.apply('i32x4.add', records, sets)
      const lanes = [0, 1, 2, 3].map((lane) => f.extract('i32x4.extract_lane', addresses, lane))
      for (const cell of context.layout.cells) addCell(context, laneGroup, cell, lanes, first)
    }
    if (mask === null) {
      body()
      return
    }
    f.get(asNarrow(f, mask))
    f.op('v128.any_true')
    f.when(body)
  }
}

function multiplied(f: FunctionBuilder, numbers: Local, bytes: number): Local {
  const shift = Math.log2(bytes)
  if (!Number.isInteger(shift)) return f.apply('i32x4.mul', numbers, splatInt(f, bytes))
  return f.apply('i32x4.shl', numbers, f.number('i32', shift))
}

function laneNumbers(f: FunctionBuilder): Local {
  return f.vector(new Uint8Array(Int32Array.of(0, 1, 2, 3).buffer))
}

/** Start addresses of the sets of records, one per lane. */
function setAddresses({ loop, state, stride }: GroupContext): Local {
  const { f } = loop.env
  const strides = f.apply('i32x4.mul', f.apply('i32x4.splat', stride), laneNumbers(f))
  return f.apply('i32x4.add', f.apply('i32x4.splat', state), strides)
}

// Group numbers -----------------------------------------------------------------------------------------------------

type Part = (laneGroup: LaneGroup) => Local

/** Rows outside of all groups get the largest unsigned number. */
function groupNumbers(context: GroupContext): Part {
  const { loop, block, blockLayout, keys } = context
  const { f } = loop.env
  const counts = keys.map((_, index) => f.hoist(() => f.load('i32.load', block, blockLayout.counts + index * 4)))
  const parts = keys.map((key, index) => partOf(context, key, nonNull(counts[index])))
  const [only] = parts
  if (only !== undefined && parts.length === 1) return only
  const limits = counts.map((count) => f.hoist(() => f.apply('i32x4.splat', count)))
  return (laneGroup) => {
    let number: Local | null = null
    let valid: Local | null = null
    for (let index = parts.length - 1; index >= 0; index--) {
      const limit = nonNull(limits[index])
      const part = nonNull(parts[index])(laneGroup)
      const inside = f.apply('i32x4.lt_u', part, limit)
      number = number === null ? part : f.apply('i32x4.add', f.apply('i32x4.mul', number, limit), part)
      valid = valid === null ? inside : f.apply('v128.and', valid, inside)
    }
    return f.apply('v128.or', number as Local, f.apply('v128.not', valid as Local))
  }
}

function partOf(context: GroupContext, key: KeyNode, count: Local): Part {
  return key.kind === 'bucket' ? bucketPart(context, key, count) : integerPart(context, key)
}

/** NULL becomes 0; ids start at -1, which is NULL. */
function integerPart({ loop }: GroupContext, { node, shift }: Extract<KeyNode, { kind: 'integer' }>): Part {
  const { f } = loop.env
  return (laneGroup) => {
    if (node.kind === 'mask') return f.apply('v128.and', asNarrow(f, conditionOf(laneGroup, node)), splatInt(f, 1))
    const numbers = numbersOf(laneGroup, node)
    const value = nonNull(numbers.parts[0])
    if (shift === null) return f.apply('i32x4.add', value, splatInt(f, 1))
    const shifted = f.apply('i32x4.add', value, nonNull(numbersOf(laneGroup, shift).parts[0]))
    if (numbers.missing === 'never') return shifted
    return f.apply('v128.andnot', shifted, asNarrow(f, missingMask(f, numbers)))
  }
}

/** Adjacent rows are mostly in one bucket, so it divides only when a timestamp is outside of the last bucket. */
function bucketPart({ loop }: GroupContext, key: Extract<KeyNode, { kind: 'bucket' }>, count: Local): Part {
  const { f } = loop.env
  const bucket: Bucket = {
    ...bucketVariables(f),
    count,
    origin: f.hoist(() => f.extract('i64x2.extract_lane', nonNull(loop.env.constants[key.origin.index]), 0)),
    step: f.hoist(() => f.extract('i64x2.extract_lane', nonNull(loop.env.constants[key.step.index]), 0)),
  }
  const result = f.local('v128')
  return (laneGroup) => {
    const { parts } = numbersOf(laneGroup, key.node)
    const [low, high] = parts as readonly [Local, Local]
    const outside = [low, high].map((part) =>
      f.apply('v128.or', f.apply('i64x2.gt_s', bucket.starts, part), f.apply('i64x2.gt_s', part, bucket.lasts)),
    )
    f.move(result, bucket.numbers)
    f.get(f.apply('v128.any_true', f.apply('v128.or', nonNull(outside[0]), nonNull(outside[1]))))
    f.when(() => {
      ;[low, high].forEach((part, half) => {
        for (const lane of [0, 1]) {
          enterBucket(f, bucket, f.extract('i64x2.extract_lane', part, lane))
          f.move(result, f.replace('i32x4.replace_lane', result, half * 2 + lane, bucket.number))
        }
      })
      f.assign(bucket.starts, 'i64x2.splat', bucket.start)
      f.assign(bucket.lasts, 'i64x2.splat', bucket.last)
      f.assign(bucket.numbers, 'i32x4.splat', bucket.number)
    })
    return result
  }
}

interface Bucket {
  /** Inclusive bounds of the last bucket and its number: as scalars and in every lane. */
  readonly start: Local
  readonly last: Local
  readonly number: Local
  readonly starts: Local
  readonly lasts: Local
  readonly numbers: Local
  readonly count: Local
  readonly origin: Local
  readonly step: Local
}

/** Initially the last bucket is empty. */
function bucketVariables(
  f: FunctionBuilder,
): Pick<Bucket, 'start' | 'last' | 'number' | 'starts' | 'lasts' | 'numbers'> {
  const [starts, lasts, numbers] = [f.local('v128'), f.local('v128'), f.local('v128')]
  const [start, last, number] = [f.local('i64'), f.local('i64'), f.local('i32')]
  f.hoist(() => {
    f.i64(1n)
    f.set(start)
    f.assign(starts, 'i64x2.splat', start)
  })
  return { start, last, number, starts, lasts, numbers }
}

/** Makes the value's bucket the last one. NULL and out-of-range values have number -1. */
function enterBucket(f: FunctionBuilder, bucket: Bucket, value: Local): void {
  f.get(f.apply('i64.lt_s', value, bucket.start))
  f.get(f.apply('i64.gt_s', value, bucket.last))
  f.op('i32.or')
  f.when(() => {
    const distance = f.apply('i64.sub', value, bucket.origin)
    const cut = f.apply('i64.div_s', distance, bucket.step)
    const rest = f.apply('i64.sub', distance, f.apply('i64.mul', cut, bucket.step))
    const below = f.apply('i64.extend_i32_u', f.apply('i64.lt_s', rest, f.long(0n)))
    const quotient = f.apply('i64.sub', cut, below)
    f.assign(bucket.start, 'i64.add', bucket.origin, f.apply('i64.mul', quotient, bucket.step))
    f.assign(bucket.last, 'i64.add', bucket.start, f.apply('i64.sub', bucket.step, f.long(1n)))
    f.get(f.apply('i32.wrap_i64', quotient))
    f.i32(-1)
    f.get(f.apply('i64.lt_u', quotient, f.apply('i64.extend_i32_u', bucket.count)))
    f.op('select')
    f.set(bucket.number)
  })
}

// Cells -------------------------------------------------------------------------------------------------------------

/** Adds the values of four rows to a cell, lane by lane. */
function addCell(
  context: GroupContext,
  laneGroup: LaneGroup,
  cell: Cell,
  addresses: readonly Local[],
  firstRow: Local,
): void {
  const { f } = context.loop.env
  const add = (values: readonly Local[], offset: number): void =>
    values.forEach((value, lane) => {
      addToCell(f, cell, nonNull(addresses[lane]), offset, value)
    })
  switch (cell.kind) {
    case 'count':
      countRows(f, laneGroup, cell, addresses)
      break
    case 'sums':
      add(pairs(f, ...summed(f, laneGroup, cell)), cell.offset)
      break
    case 'wide': {
      const [values, ones] = summed(f, laneGroup, cell)
      const zero = splatInt(f, 0)
      add(pairs(f, values, ones), cell.offset)
      add(pairs(f, signedHighWords(f, values), [zero, zero]), cell.offset + 16)
      break
    }
    case 'extremes':
      add(pairs(f, ...bounds(f, numbersOf(laneGroup, nodeOf(cell)), null)), cell.offset)
      break
    case 'rows':
      add(pairs(f, ...rowBounds(context, laneGroup, cell, firstRow)), cell.offset)
      break
  }
}

function nodeOf({ node }: Cell): Node {
  return node ?? unsupported('a cell without argument')
}

function pairs(f: FunctionBuilder, left: readonly Local[], right: readonly Local[]): readonly Local[] {
  return left.flatMap((part, index) => pairsOf(f, part, nonNull(right[index])))
}

function present(f: FunctionBuilder, laneGroup: LaneGroup, { node }: Cell): Mask | null {
  return node === null || node.missing === 'never' ? null : presentMask(f, numbersOf(laneGroup, node))
}

/** Values and ones; both are zero for NULL. */
function summed(f: FunctionBuilder, laneGroup: LaneGroup, cell: Cell): readonly [readonly Local[], readonly Local[]] {
  const taken = present(f, laneGroup, cell)
  const values = takenValues(f, numbersOf(laneGroup, nodeOf(cell)), taken)
  const one = cell.floating ? splatDouble(f, 1) : splatLong(f, 1n)
  const ones = taken === null ? [one, one] : asWide(f, taken).map((part) => f.apply('v128.and', one, part))
  return [values, ones]
}

/** 64-bit candidates for {min, max}. */
function bounds(
  f: FunctionBuilder,
  numbers: Numbers,
  mask: Mask | null,
): readonly [readonly Local[], readonly Local[]] {
  const { kind, parts } = numbers
  if (kind === 'i64' || kind === 'f64') return candidates(f, numbers, mask)
  if (kind === 'f32') {
    const values = takenValues(f, numbers, null)
    return [values, values]
  }
  // Widened first, because the neutral elements are 64-bit values.
  const missing = numbers.missing === 'never' ? null : asWide(f, missingMask(f, numbers))
  const wide = extended(f, nonNull(parts[0]))
  if (missing === null) return [wide, wide]
  const [top, bottom] = [splatLong(f, 0x7fff_ffff_ffff_ffffn), splatLong(f, -0x8000_0000_0000_0000n)]
  const choose = (other: Local): readonly Local[] =>
    wide.map((part, index) => f.apply('v128.bitselect', other, part, nonNull(missing[index])))
  return [choose(top), choose(bottom)]
}

function rowBounds(
  { loop }: GroupContext,
  laneGroup: LaneGroup,
  cell: Cell,
  firstRow: Local,
): readonly [readonly Local[], readonly Local[]] {
  const { f } = loop.env
  const rows = extended(f, positions(loop, laneGroup)).map((part) => f.apply('i64x2.add', part, firstRow))
  return candidates(f, { kind: 'i64', parts: rows, missing: 'never' }, present(f, laneGroup, cell))
}

function countRows(f: FunctionBuilder, laneGroup: LaneGroup, cell: Cell, addresses: readonly Local[]): void {
  const taken = present(f, laneGroup, cell)
  const bits = taken === null ? null : asNarrow(f, taken)
  const one = f.long(1n)
  addresses.forEach((address, lane) => {
    const old = f.load('i64.load', address, cell.offset)
    const sum =
      bits === null
        ? f.apply('i64.add', old, one)
        : f.apply('i64.sub', old, f.apply('i64.extend_i32_s', f.extract('i32x4.extract_lane', bits, lane)))
    f.store('i64.store', address, cell.offset, sum)
  })
}
