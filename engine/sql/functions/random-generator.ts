// The pseudo-random generator of the rnd_* functions: xorshift128+ over two 64-bit words. The algorithm is fixed,
// because scripts for this dialect expect the same rows from the same seeds.

import { SqlError } from '../../base/errors.js'
import { valueBytesMax } from '../../base/limits.js'

export interface Random {
  nextLong(): bigint
  nextInt(): number
  nextPositiveInt(): number
  nextPositiveLong(): bigint
  nextDouble(): number
  nextFloat(): number
  nextBoolean(): boolean
}

/** The last value drawn, as two halves. Valid until the next call. */
const drawn = new Int32Array(2)
const drawnLong = new BigInt64Array(drawn.buffer)

export function createRandom(seed0: bigint, seed1: bigint): Random {
  return new Xorshift(seed0, seed1)
}

/** Every query has a generator but few use it, so its state is created at the first call. */
class Xorshift implements Random {
  readonly #seeds: readonly [bigint, bigint]
  /** Each 64-bit word as two halves, low before high: arithmetic on bigint takes twenty times as long. */
  #state: Int32Array | null = null

  constructor(seed0: bigint, seed1: bigint) {
    this.#seeds = [seed0, seed1]
  }

  nextLong(): bigint {
    this.#next()
    return drawnLong[0]!
  }

  nextInt(): number {
    this.#next()
    return drawn[0]!
  }

  nextPositiveInt(): number {
    const value = this.nextInt()
    return value > 0 ? value : value === -2_147_483_648 ? 2_147_483_647 : -value
  }

  nextPositiveLong(): bigint {
    const value = this.nextLong()
    return value > 0n ? value : value === -9_223_372_036_854_775_808n ? 9_223_372_036_854_775_807n : -value
  }

  nextDouble(): number {
    return (this.#bits(26) * 2 ** 27 + this.#bits(27)) * 2 ** -53
  }

  nextFloat(): number {
    return this.#bits(24) / 2 ** 24
  }

  nextBoolean(): boolean {
    this.#next()
    return drawn[1]! < 0
  }

  /** The upper `count` of 48 bits. */
  #bits(count: number): number {
    this.#next()
    const all = (drawn[1]! & 0xffff) * 2 ** 32 + (drawn[0]! >>> 0)
    return Math.floor(all / 2 ** (48 - count))
  }

  #next(): void {
    this.#state ??= new Int32Array(new BigInt64Array(this.#seeds).buffer)
    const state = this.#state
    let low = state[0]!
    let high = state[1]!
    const lastLow = state[2]!
    const lastHigh = state[3]!
    high ^= (high << 23) | (low >>> 9)
    low ^= low << 23
    // The shifts are arithmetic (sign-extending), as in the generator whose rows must be reproduced.
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
}

export function randomLong256(random: Random): bigint {
  let value = 0n
  for (let word = 0n; word < 4n; word++) value |= BigInt.asUintN(64, random.nextLong()) << (word * 64n)
  return value
}

export function randomUuid(random: Random): bigint {
  const high = (BigInt.asUintN(64, random.nextLong()) & ~0xf000n) | 0x4000n
  const low = (BigInt.asUintN(64, random.nextLong()) & 0x3fff_ffff_ffff_ffffn) | 0x8000_0000_0000_0000n
  return (high << 64n) | low
}

export function randomBytes(random: Random, length: number): Uint8Array {
  if (!(length <= valueBytesMax)) throw new SqlError(`binary value is too long [bytes=${length}]`, 0)
  return Uint8Array.from({ length }, () => random.nextInt() & 255)
}
