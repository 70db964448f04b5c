// The key of the chunk cache (chunk-cache.ts), which identifies a decoded page by its part (Parquet file), column and
// page number. Also computes the hash of a key.

/** All fields are int32, so that V8 keeps one object shape for all keys; a larger number would be boxed. */
export interface ChunkKey {
  readonly partLow: number
  readonly partHigh: number
  readonly columnId: number
  /** Page number, plus an offset for the kind of chunk (chunk-cache.ts). */
  readonly page: number
}

export function chunkKey(partId: number, columnId: number, page: number): ChunkKey {
  return { partLow: partId | 0, partHigh: Math.floor(partId / 2 ** 32) | 0, columnId: columnId | 0, page: page | 0 }
}

export function hashOf({ partLow, columnId, page }: ChunkKey): number {
  let hash = Math.imul(partLow, 0x9e37_79b1) ^ Math.imul(columnId + 1, 0x85eb_ca77) ^ Math.imul(page + 1, 0xc2b2_ae3d)
  hash ^= hash >>> 15
  hash = Math.imul(hash, 0x2c1b_3c6d)
  return (hash ^ (hash >>> 13)) >>> 0
}
