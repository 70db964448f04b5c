// The pseudo-random generator of the rnd_ functions: xorshift128+ over two 64-bit words, so that a seeded sequence
// gives the rows that scripts for this dialect expect.

export interface Random {
  nextLong(): bigint
  nextInt(): number
  nextPositiveInt(): number
  nextPositiveLong(): bigint
  nextDouble(): number
  nextFloat(): number
  nextBoolean(): boolean
}

export function createRandom(seed0: bigint, seed1: bigint): Random {
  let s0 = BigInt.asUintN(64, seed0)
  let s1 = BigInt.asUintN(64, seed1)
  const nextLong = (): bigint => {
    let x = s0
    const y = s1
    s0 = y
    x = BigInt.asUintN(64, x ^ (x << 23n))
    // The shifts keep the sign, as in the generator whose rows these are.
    s1 = BigInt.asUintN(64, x ^ y ^ (BigInt.asIntN(64, x) >> 17n) ^ (BigInt.asIntN(64, y) >> 26n))
    return BigInt.asIntN(64, s1 + y)
  }
  const nextInt = (): number => Number(BigInt.asIntN(32, nextLong()))
  const bits = (count: number): number => Number((nextLong() & 0xffff_ffff_ffffn) >> BigInt(48 - count))
  return {
    nextLong,
    nextInt,
    nextPositiveInt: () => {
      const value = nextInt()
      return value > 0 ? value : value === -2_147_483_648 ? 2_147_483_647 : -value
    },
    nextPositiveLong: () => {
      const value = nextLong()
      return value > 0n ? value : value === -9_223_372_036_854_775_808n ? 9_223_372_036_854_775_807n : -value
    },
    nextDouble: () => (bits(26) * 2 ** 27 + bits(27)) * 2 ** -53,
    nextFloat: () => bits(24) / 2 ** 24,
    nextBoolean: () => nextLong() >> 63n !== 0n,
  }
}
