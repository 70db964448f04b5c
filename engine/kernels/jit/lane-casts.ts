// Generates the WebAssembly code of casts to numeric types, with the results of types/convert.ts: a value outside of
// the range of INT, LONG or FLOAT becomes NULL. BYTE and SHORT have no NULL: integers are cut to their low bits, and
// NULL becomes 0.

import { nonNull } from '../../base/assert.js'
import type { FunctionBuilder } from './assembler.js'
import type { Local } from './code-writer.js'
import { unsupported } from './fragment.js'
import { conditionOf } from './lane-masks.js'
import { numbersOf } from './lane-numbers.js'
import {
  asNarrow,
  asWide,
  extended,
  highWords,
  joinHalves,
  type LaneGroup,
  lowWords,
  missingMask,
  type Numbers,
  nullVector,
  splatDouble,
  splatInt,
  upperHalf,
  wideMask,
} from './lanes.js'
import type { Node } from './lower.js'

export function castNumbers(laneGroup: LaneGroup, node: Node): Numbers {
  const { f } = laneGroup.env
  const source = nonNull(node.args[0])
  const numbers = source.kind === 'mask' ? fromCondition(laneGroup, source) : numbersOf(laneGroup, source)
  const kind = node.kind as Numbers['kind']
  const cut = node.type === 'BYTE' ? 24 : node.type === 'SHORT' ? 16 : 0
  // The low word of NULL is 0.
  const isCut = cut > 0 && numbers.kind === 'i64'
  const parts = isCut ? [lowWords(f, numbers.parts)] : convert(f, numbers, kind)
  if (cut === 0 || (source.missing === 'never' && source.type === 'BYTE')) return { kind, parts, missing: node.missing }
  return { kind, parts: parts.map((part) => signExtended(f, part, cut)), missing: 'never' }
}

/** True becomes 1. */
function fromCondition(laneGroup: LaneGroup, source: Node): Numbers {
  const { f } = laneGroup.env
  const bits = asNarrow(f, conditionOf(laneGroup, source))
  return { kind: 'i32', parts: [f.apply('v128.and', bits, splatInt(f, 1))], missing: 'never' }
}

/** Sign-extends the low bits. NULL, the smallest integer, ends in zeros. */
function signExtended(f: FunctionBuilder, part: Local, bits: number): Local {
  const count = f.number('i32', bits)
  return f.apply('i32x4.shr_s', f.apply('i32x4.shl', part, count), count)
}

function convert(f: FunctionBuilder, source: Numbers, to: Numbers['kind']): readonly Local[] {
  if (source.kind === to) return source.parts
  switch (`${source.kind} ${to}`) {
    case 'i32 i64':
      return intToLong(f, source)
    case 'i32 f64':
      return intToDouble(f, source)
    case 'i32 f32':
      return [orMissing(f, f.apply('f32x4.convert_i32x4_s', nonNull(source.parts[0])), source)]
    case 'i64 i32':
      return [longToInt(f, source)]
    case 'i64 f64':
      return longToDouble(f, source)
    case 'i64 f32':
      return [demoted(f, longToDouble(f, source))]
    case 'f32 f64':
      return promoted(f, nonNull(source.parts[0]))
    case 'f64 f32':
      return [demoted(f, withinFloat(f, source.parts))]
    case 'f64 i32':
      return [doubleToInt(f, source.parts)]
    case 'f32 i32':
      return [doubleToInt(f, promoted(f, nonNull(source.parts[0])))]
    case 'f64 i64':
      return doubleToLong(f, source.parts)
    case 'f32 i64':
      return doubleToLong(f, promoted(f, nonNull(source.parts[0])))
    default:
      return unsupported('cast')
  }
}

function intToLong(f: FunctionBuilder, source: Numbers): readonly Local[] {
  const parts = extended(f, nonNull(source.parts[0]))
  if (source.missing === 'never') return parts
  const missing = asWide(f, missingMask(f, source))
  const nothing = nullVector(f, 'i64')
  return parts.map((part, index) => f.apply('v128.bitselect', nothing, part, nonNull(missing[index])))
}

/** NULL becomes NaN by setting all bits. */
function intToDouble(f: FunctionBuilder, source: Numbers): readonly Local[] {
  const [ints] = source.parts as readonly [Local]
  const parts = [ints, upperHalf(f, ints)].map((part) => f.apply('f64x2.convert_low_i32x4_s', part))
  if (source.missing === 'never') return parts
  const missing = asWide(f, missingMask(f, source))
  return parts.map((part, index) => f.apply('v128.or', part, nonNull(missing[index])))
}

function orMissing(f: FunctionBuilder, part: Local, source: Numbers): Local {
  return source.missing === 'never' ? part : f.apply('v128.or', part, asNarrow(f, missingMask(f, source)))
}

/** A value fits if its high word is the sign of its low word, which is not the case for NULL. */
function longToInt(f: FunctionBuilder, { parts }: Numbers): Local {
  const words = lowWords(f, parts)
  const sign = f.apply('i32x4.shr_s', words, f.number('i32', 31))
  const fits = f.apply('i32x4.eq', highWords(f, parts), sign)
  return f.apply('v128.bitselect', words, nullVector(f, 'i32'), fits)
}

export function longToDouble(f: FunctionBuilder, source: Numbers): readonly Local[] {
  const parts = source.parts.map((part) => {
    const [low, high] = [0, 1].map((lane) => f.apply('f64.convert_i64_s', f.extract('i64x2.extract_lane', part, lane)))
    return f.replace('f64x2.replace_lane', f.apply('f64x2.splat', low as Local), 1, high as Local)
  })
  if (source.missing === 'never') return parts
  const missing = asWide(f, missingMask(f, source))
  return parts.map((part, index) => f.apply('v128.or', part, nonNull(missing[index])))
}

export function promoted(f: FunctionBuilder, floats: Local): readonly Local[] {
  return [floats, upperHalf(f, floats)].map((part) => f.apply('f64x2.promote_low_f32x4', part))
}

/** Values outside of the range of FLOAT become NULL. */
function withinFloat(f: FunctionBuilder, parts: readonly Local[]): readonly Local[] {
  const largest = splatDouble(f, 3.4028234663852886e38)
  return parts.map((part) => f.apply('v128.or', part, f.apply('f64x2.gt', f.apply('f64x2.abs', part), largest)))
}

function demoted(f: FunctionBuilder, parts: readonly Local[]): Local {
  const [low, high] = parts.map((part) => f.apply('f32x4.demote_f64x2_zero', part))
  return joinHalves(f, low as Local, high as Local)
}

function doubleToInt(f: FunctionBuilder, parts: readonly Local[]): Local {
  const [low, high] = parts.map((part) => f.apply('i32x4.trunc_sat_f64x2_s_zero', part))
  const inside = asNarrow(f, wideMask(parts.map((part) => insideOf(f, part, 2 ** 31))))
  return f.apply('v128.bitselect', joinHalves(f, low as Local, high as Local), nullVector(f, 'i32'), inside)
}

function doubleToLong(f: FunctionBuilder, parts: readonly Local[]): readonly Local[] {
  return parts.map((part) => {
    const [low, high] = [0, 1].map((lane) =>
      f.apply('i64.trunc_sat_f64_s', f.extract('f64x2.extract_lane', part, lane)),
    )
    const whole = f.replace('i64x2.replace_lane', f.apply('i64x2.splat', low as Local), 1, high as Local)
    return f.apply('v128.bitselect', whole, nullVector(f, 'i64'), insideOf(f, part, 2 ** 63))
  })
}

/** -limit < x < limit; false for NaN. */
function insideOf(f: FunctionBuilder, part: Local, limit: number): Local {
  return f.apply('f64x2.lt', f.apply('f64x2.abs', part), splatDouble(f, limit))
}
