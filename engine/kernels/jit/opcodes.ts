// The WebAssembly instructions that generated kernels use, by their names in the specification. Codes above 0xff
// include a prefix: 0xfdNN is vector instruction NN, 0xfcNN is a saturating truncation.

export const opcodes = {
  return: 0x0f,
  drop: 0x1a,
  select: 0x1b,
  'i32.eqz': 0x45,
  'i32.eq': 0x46,
  'i32.ne': 0x47,
  'i32.lt_u': 0x49,
  'i32.gt_u': 0x4b,
  'i32.ge_u': 0x4f,
  'i64.eqz': 0x50,
  'i64.eq': 0x51,
  'i64.ne': 0x52,
  'i64.lt_s': 0x53,
  'i64.lt_u': 0x54,
  'i64.gt_s': 0x55,
  'i64.le_s': 0x57,
  'i64.ge_s': 0x59,
  'f64.lt': 0x63,
  'f64.gt': 0x64,
  'i32.ctz': 0x68,
  'i32.popcnt': 0x69,
  'i32.add': 0x6a,
  'i32.sub': 0x6b,
  'i32.mul': 0x6c,
  'i32.div_s': 0x6d,
  'i32.rem_s': 0x6f,
  'i32.and': 0x71,
  'i32.or': 0x72,
  'i32.shl': 0x74,
  'i32.shr_u': 0x76,
  'i64.add': 0x7c,
  'i64.sub': 0x7d,
  'i64.mul': 0x7e,
  'i64.div_s': 0x7f,
  'i64.rem_s': 0x81,
  'f64.abs': 0x99,
  'f64.add': 0xa0,
  'i32.wrap_i64': 0xa7,
  'i64.extend_i32_s': 0xac,
  'i64.extend_i32_u': 0xad,
  'i64.trunc_f64_s': 0xb0,
  'f64.convert_i64_s': 0xb9,
  'f64.promote_f32': 0xbb,
  'i64.trunc_sat_f64_s': 0xfc06,
  'i32x4.splat': 0xfd11,
  'i64x2.splat': 0xfd12,
  'f64x2.splat': 0xfd14,
  'i32x4.eq': 0xfd37,
  'i32x4.ne': 0xfd38,
  'i32x4.lt_s': 0xfd39,
  'i32x4.lt_u': 0xfd3a,
  'i32x4.gt_s': 0xfd3b,
  'i32x4.gt_u': 0xfd3c,
  'i32x4.le_s': 0xfd3d,
  'i32x4.le_u': 0xfd3e,
  'i32x4.ge_s': 0xfd3f,
  'i32x4.ge_u': 0xfd40,
  'f32x4.eq': 0xfd41,
  'f32x4.ne': 0xfd42,
  'f32x4.lt': 0xfd43,
  'f32x4.gt': 0xfd44,
  'f32x4.le': 0xfd45,
  'f32x4.ge': 0xfd46,
  'f64x2.eq': 0xfd47,
  'f64x2.ne': 0xfd48,
  'f64x2.lt': 0xfd49,
  'f64x2.gt': 0xfd4a,
  'f64x2.le': 0xfd4b,
  'f64x2.ge': 0xfd4c,
  'v128.not': 0xfd4d,
  'v128.and': 0xfd4e,
  'v128.andnot': 0xfd4f,
  'v128.or': 0xfd50,
  'v128.xor': 0xfd51,
  'v128.bitselect': 0xfd52,
  'v128.any_true': 0xfd53,
  'f32x4.demote_f64x2_zero': 0xfd5e,
  'f64x2.promote_low_f32x4': 0xfd5f,
  'i8x16.narrow_i16x8_s': 0xfd65,
  'f32x4.ceil': 0xfd67,
  'f32x4.floor': 0xfd68,
  'f64x2.ceil': 0xfd74,
  'f64x2.floor': 0xfd75,
  'i16x8.narrow_i32x4_s': 0xfd85,
  'i16x8.extend_low_i8x16_s': 0xfd87,
  'i32x4.neg': 0xfda1,
  'i32x4.all_true': 0xfda3,
  'i32x4.bitmask': 0xfda4,
  'i32x4.extend_low_i16x8_s': 0xfda7,
  'i32x4.shl': 0xfdab,
  'i32x4.shr_s': 0xfdac,
  'i32x4.add': 0xfdae,
  'i32x4.sub': 0xfdb1,
  'i32x4.mul': 0xfdb5,
  'i32x4.min_s': 0xfdb6,
  'i32x4.min_u': 0xfdb7,
  'i32x4.max_s': 0xfdb8,
  'i64x2.neg': 0xfdc1,
  'i64x2.all_true': 0xfdc3,
  'i64x2.extend_low_i32x4_s': 0xfdc7,
  'i64x2.extend_high_i32x4_s': 0xfdc8,
  'i64x2.shr_s': 0xfdcc,
  'i64x2.add': 0xfdce,
  'i64x2.sub': 0xfdd1,
  'i64x2.mul': 0xfdd5,
  'i64x2.eq': 0xfdd6,
  'i64x2.ne': 0xfdd7,
  'i64x2.lt_s': 0xfdd8,
  'i64x2.gt_s': 0xfdd9,
  'i64x2.le_s': 0xfdda,
  'i64x2.ge_s': 0xfddb,
  'i64x2.extmul_low_i32x4_s': 0xfddc,
  'i64x2.extmul_high_i32x4_s': 0xfddd,
  'f32x4.abs': 0xfde0,
  'f32x4.neg': 0xfde1,
  'f32x4.sqrt': 0xfde3,
  'f32x4.add': 0xfde4,
  'f32x4.sub': 0xfde5,
  'f32x4.mul': 0xfde6,
  'f32x4.div': 0xfde7,
  'f32x4.pmin': 0xfdea,
  'f32x4.pmax': 0xfdeb,
  'f64x2.abs': 0xfdec,
  'f64x2.neg': 0xfded,
  'f64x2.sqrt': 0xfdef,
  'f64x2.add': 0xfdf0,
  'f64x2.sub': 0xfdf1,
  'f64x2.mul': 0xfdf2,
  'f64x2.div': 0xfdf3,
  'f64x2.pmin': 0xfdf6,
  'f64x2.pmax': 0xfdf7,
  'f32x4.convert_i32x4_s': 0xfdfa,
  'i32x4.trunc_sat_f64x2_s_zero': 0xfdfc,
  'f64x2.convert_low_i32x4_s': 0xfdfe,
} as const

export type Operation = keyof typeof opcodes

/** Loads and stores: code and natural alignment as a power of two. */
export const memoryOpcodes = {
  'i32.load': [0x28, 2],
  'i64.load': [0x29, 3],
  'f64.load': [0x2b, 3],
  'i32.load8_u': [0x2d, 0],
  'i32.store': [0x36, 2],
  'i64.store': [0x37, 3],
  'f64.store': [0x39, 3],
  'i32.store8': [0x3a, 0],
  'v128.load': [0xfd00, 4],
  'v128.load16x4_s': [0xfd03, 3],
  'v128.store': [0xfd0b, 4],
  'v128.load32_zero': [0xfd5c, 2],
  'v128.load64_zero': [0xfd5d, 3],
} as const

export type MemoryOperation = keyof typeof memoryOpcodes

/** Instructions with a lane number. */
export const laneOpcodes = {
  'i32x4.extract_lane': 0xfd1b,
  'i32x4.replace_lane': 0xfd1c,
  'i64x2.extract_lane': 0xfd1d,
  'i64x2.replace_lane': 0xfd1e,
  'f32x4.extract_lane': 0xfd1f,
  'f64x2.extract_lane': 0xfd21,
  'f64x2.replace_lane': 0xfd22,
} as const

export type LaneOperation = keyof typeof laneOpcodes

export type ValueType = 'i32' | 'i64' | 'f32' | 'f64' | 'v128'

const scalarResults = /^(?:return|drop|select)$/
const comparisons = /^(?:i32|i64|f64)\.(?:eqz?|ne|[lg][te](?:_[su])?)$/
const vectorTests = /\.(?:any_true|all_true|bitmask)$/

const results = new Map<string, ValueType>()

/** Type of an instruction's result. `select` and similar ones have no type of their own. */
export function resultOf(operation: Operation | MemoryOperation | LaneOperation): ValueType {
  const known = results.get(operation)
  if (known !== undefined) return known
  const type = resultByName(operation)
  results.set(operation, type)
  return type
}

function resultByName(operation: string): ValueType {
  if (scalarResults.test(operation)) throw new TypeError(`the result of ${operation} depends on its operands`)
  if (vectorTests.test(operation) || comparisons.test(operation)) return 'i32'
  const [prefix = ''] = operation.split('.')
  if (operation.endsWith('.extract_lane')) return prefix.slice(0, 3) as ValueType
  return prefix === 'i32' || prefix === 'i64' || prefix === 'f32' || prefix === 'f64' ? prefix : 'v128'
}
