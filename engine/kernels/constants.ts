// Constant tables of the kernels, computed at the start and written to reserved memory (engine/memory/layout.ts).
// Several threads may write them, since the bytes are always the same. engine/kernels/as/shared contains the addresses.
//
//   constantTablesBase            128-bit powers of five for parsing doubles: 10^q, q = -342..308, {high u64, low u64}
//   constantTablesBase + 16 KiB   128-bit powers of ten for printing doubles: 10^k, k = -292..324, rounded up
//   constantTablesBase + 32 KiB   marker u32: 1 once the tables are complete

import { constantTablesBase } from '../memory/layout.js'
import type { SharedMemory } from '../memory/shared-memory.js'

const powersOfFiveAddress = constantTablesBase
const powersOfTenAddress = constantTablesBase + 16 * 1024
const markerAddress = constantTablesBase + 32 * 1024

const word = 0xffff_ffff_ffff_ffffn

/** What this thread has computed, for its further memories: tests open many engines in a thread. */
let computed: { readonly fives: BigUint64Array; readonly tens: BigUint64Array } | null = null

/** Writes the tables unless another thread has already done so. */
export function writeConstants(memory: SharedMemory): void {
  if (Atomics.load(memory.u32, markerAddress >>> 2) === 1) return
  computed ??= { fives: table(-342, 308, parsingPower), tens: table(-292, 324, printingPower) }
  memory.u64.set(computed.fives, powersOfFiveAddress >>> 3)
  memory.u64.set(computed.tens, powersOfTenAddress >>> 3)
  Atomics.store(memory.u32, markerAddress >>> 2, 1)
}

function table(from: number, to: number, power: (exponent: number) => bigint): BigUint64Array {
  const words = new BigUint64Array((to - from + 1) * 2)
  for (let exponent = from; exponent <= to; exponent++) {
    const value = power(exponent)
    words[(exponent - from) * 2] = value >> 64n
    words[(exponent - from) * 2 + 1] = value & word
  }
  return words
}

function bitLength(value: bigint): number {
  const hex = value.toString(16)
  return hex.length * 4 - Math.clz32(Number.parseInt(hex.charAt(0), 16)) + 28
}

/** The leading 128 bits, truncated. */
function leading128(value: bigint): bigint {
  const shift = bitLength(value) - 128
  return shift >= 0 ? value >> BigInt(shift) : value << BigInt(-shift)
}

/**
 * 5^q as a 128-bit mantissa, rounded as the algorithm of Eisel and Lemire requires: truncated, reciprocals plus one.
 */
function parsingPower(q: number): bigint {
  if (q >= 0) return leading128(5n ** BigInt(q))
  const power = 5n ** BigInt(-q)
  const bits = bitLength(power)
  return leading128((1n << BigInt(q >= -27 ? bits + 127 : 2 * bits + 128)) / power + 1n)
}

/** 10^k as a 128-bit mantissa rounded up, exact if it fits. */
function printingPower(k: number): bigint {
  if (k >= 0) {
    const power = 5n ** BigInt(k)
    const shift = bitLength(power) - 128
    if (shift <= 0) return power << BigInt(-shift)
    return (power + (1n << BigInt(shift)) - 1n) >> BigInt(shift)
  }
  const power = 5n ** BigInt(-k)
  const dividend = 1n << BigInt(bitLength(power) + 127)
  return (dividend + power - 1n) / power
}
