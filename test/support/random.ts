// Seeded random numbers (xoshiro128**): the same seed gives the same numbers on every machine. A test prints the seed
// of a failure.

export interface Random {
  /** In [0, 1). */
  next(): number
  /** An integer in [0, limit). */
  below(limit: number): number
  /** An integer in [low, high]. */
  between(low: number, high: number): number
  chance(probability: number): boolean
  pick<T>(items: readonly T[]): T
  fill(target: Uint8Array): Uint8Array
  /** Another generator, that does not disturb this one however much it is used. */
  fork(): Random
}

export function createRandom(seed: number): Random {
  const state = seedState(seed)
  const word = () => step(state)
  const next = () => word() / 0x1_0000_0000
  const below = (limit: number) => Math.floor(next() * limit)
  return {
    next,
    below,
    between: (low, high) => low + below(high - low + 1),
    chance: (probability) => next() < probability,
    pick: (items) => {
      const item = items[below(items.length)]
      if (item === undefined && items.length === 0) throw new RangeError('nothing to pick from')
      return item as (typeof items)[number]
    },
    fill: (target) => fill(target, word),
    fork: () => createRandom(word()),
  }
}

/** splitmix32 spreads small seeds over the whole state. */
function seedState(seed: number): Uint32Array {
  const state = new Uint32Array(4)
  let word = seed >>> 0
  for (let index = 0; index < 4; index++) {
    word = (word + 0x9e3779b9) >>> 0
    let mixed = word
    mixed = Math.imul(mixed ^ (mixed >>> 16), 0x21f0aaad)
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97)
    state[index] = mixed ^ (mixed >>> 15)
  }
  return state
}

function step(state: Uint32Array): number {
  const [a = 0, b = 0, c = 0, d = 0] = state
  const result = Math.imul(rotateLeft(Math.imul(b, 5), 7), 9) >>> 0
  const c1 = c ^ a
  const d1 = d ^ b
  state[0] = a ^ d1
  state[1] = b ^ c1
  state[2] = c1 ^ (b << 9)
  state[3] = rotateLeft(d1, 11)
  return result
}

function rotateLeft(word: number, count: number): number {
  return (word << count) | (word >>> (32 - count))
}

function fill(target: Uint8Array, word: () => number): Uint8Array {
  for (let at = 0; at < target.length; at += 4) {
    const value = word()
    target[at] = value
    if (at + 1 < target.length) target[at + 1] = value >>> 8
    if (at + 2 < target.length) target[at + 2] = value >>> 16
    if (at + 3 < target.length) target[at + 3] = value >>> 24
  }
  return target
}
