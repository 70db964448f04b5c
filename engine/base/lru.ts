// A map with a limited number of entries and a limited total weight, as for caches. It removes the least recently used
// entries when a limit is exceeded.

interface Entry<Value> {
  readonly value: Value
  readonly weight: number
}

export interface LruLimits {
  readonly countMax: number
  /** Of all entries together, in the unit of `set`. */
  readonly weightMax: number
}

export class Lru<Key, Value> {
  readonly #limits: LruLimits
  /** The least recently used entry is the first. */
  readonly #entries = new Map<Key, Entry<Value>>()
  #weight = 0

  constructor(limits: LruLimits) {
    this.#limits = limits
  }

  get(key: Key): Value | undefined {
    const entry = this.#entries.get(key)
    if (entry === undefined) return undefined
    this.#entries.delete(key)
    this.#entries.set(key, entry)
    return entry.value
  }

  /** Replaces an entry of that key. An entry that is heavier than the limit is not kept. */
  set(key: Key, value: Value, weight: number): void {
    this.#delete(key)
    if (weight > this.#limits.weightMax) return
    this.#entries.set(key, { value, weight })
    this.#weight += weight
    for (const oldest of this.#entries.keys()) {
      if (this.#entries.size <= this.#limits.countMax && this.#weight <= this.#limits.weightMax) return
      this.#delete(oldest)
    }
  }

  clear(): void {
    this.#entries.clear()
    this.#weight = 0
  }

  #delete(key: Key): void {
    const entry = this.#entries.get(key)
    if (entry === undefined) return
    this.#weight -= entry.weight
    this.#entries.delete(key)
  }
}
