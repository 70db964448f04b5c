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
  // Words as two halves each, low before high: integers of 64 bits as bigint take twenty times as long.
  const state = new Int32Array(new BigInt64Array([seed0, seed1]).buffer)
  const drawn = new Int32Array(2)
  const drawnLong = new BigInt64Array(drawn.buffer)
  const next = (): void => {
    let low = state[0] as number
    let high = state[1] as number
    const lastLow = state[2] as number
    const lastHigh = state[3] as number
    high ^= (high << 23) | (low >>> 9)
    low ^= low << 23
    // The shifts keep the sign, as in the generator whose rows these are.
    const freshLow = low ^ lastLow ^ ((low >>> 17) | (high << 15)) ^ ((lastLow >>> 26) | (lastHigh << 6))
    const freshHigh = high ^ lastHigh ^ (high >> 17) ^ (lastHigh >> 26)
    state[0] = lastLow
    state[1] = lastHigh
    state[2] = freshLow
    state[3] = freshHigh
    const sum = (freshLow >>> 0) + (lastLow >>> 0)
    drawn[0] = sum
    drawn[1] = freshHigh + lastHigh + (sum >= 2 ** 32 ? 1 : 0)
  }
  const nextLong = (): bigint => {
    next()
    return drawnLong[0] as bigint
  }
  const nextInt = (): number => {
    next()
    return drawn[0] as number
  }
  /** The upper ones of 48 bits. */
  const bits = (count: number): number => {
    next()
    const all = ((drawn[1] as number) & 0xffff) * 2 ** 32 + ((drawn[0] as number) >>> 0)
    return Math.floor(all / 2 ** (48 - count))
  }
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
    nextBoolean: () => {
      next()
      return (drawn[1] as number) < 0
    },
  }
}
