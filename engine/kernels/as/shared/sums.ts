// Sums the values of a page of a column. Floating-point values are added to four separate sums in SIMD lanes, four rows
// at a time, and these are added at the end together with the last rows (up to three). So the rounding differs from
// that of adding the rows in order. Integers are summed in 64 bits, with wrap-around.

function sumFloats(values: usize, n: usize, wide: bool): f64 {
  let a = f64x2.splat(0), b = f64x2.splat(0)
  let i: usize = 0
  for (; i + 4 <= n; i += 4) {
    const at = values + (i << (wide ? 3 : 2))
    const four = v128.load(at)
    a = f64x2.add(a, wide ? four : f64x2.promote_low_f32x4(four))
    b = f64x2.add(b, wide ? v128.load(at, 16) : f64x2.promote_low_f32x4(i32x4.shuffle(four, four, 2, 3, 0, 1)))
  }
  const lanes = f64x2.add(a, b)
  let rest: f64 = 0
  for (; i < n; i++) rest += wide ? load<f64>(values + (i << 3)) : <f64>load<f32>(values + (i << 2))
  return f64x2.extract_lane(lanes, 0) + f64x2.extract_lane(lanes, 1) + rest
}

function sumIntegers(values: usize, n: usize, wide: bool): i64 {
  let total: i64 = 0
  for (let i: usize = 0; i < n; i++) total += wide ? load<i64>(values + (i << 3)) : <i64>load<i32>(values + (i << 2))
  return total
}

export function sum(values: usize, count: i32, kind: i32, target: usize): void {
  if (kind >= 3) store<f64>(target, sumFloats(values, <usize>count, kind == 4))
  else store<i64>(target, sumIntegers(values, <usize>count, kind == 2))
}
