// LazyMap: a map that allocates nothing before its first entry. Every query has several maps, and in most queries most
// of them stay empty.

export class LazyMap<Key, Value> {
  #entries: Map<Key, Value> | null = null

  get(key: Key): Value | undefined {
    return this.#entries?.get(key)
  }

  has(key: Key): boolean {
    return this.#entries?.has(key) === true
  }

  set(key: Key, value: Value): void {
    this.#entries ??= new Map()
    this.#entries.set(key, value)
  }

  clear(): void {
    this.#entries = null
  }
}
