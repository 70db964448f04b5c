// Which chunk of which part: the key of the chunk cache, and its hash.

export interface ChunkKey {
  readonly partId: number
  readonly columnId: number
  /** Page number, with what chunk-cache.ts adds to it for other kinds of chunks. */
  readonly page: number
}

export function hashOf({ partId, columnId, page }: ChunkKey): number {
  let hash =
    Math.imul(partId >>> 0, 0x9e37_79b1) ^ Math.imul(columnId + 1, 0x85eb_ca77) ^ Math.imul(page + 1, 0xc2b2_ae3d)
  hash ^= hash >>> 15
  hash = Math.imul(hash, 0x2c1b_3c6d)
  return (hash ^ (hash >>> 13)) >>> 0
}
