// Builds deeply nested objects, to test messages between threads that need much stack.

interface Nested {
  readonly below?: Nested
}

export function nested(depth: number): Nested {
  let value: Nested = {}
  for (let level = 0; level < depth; level++) value = { below: value }
  return value
}

export function depthOf(value: unknown): number {
  let depth = 0
  for (let at = value as Nested; at.below !== undefined; at = at.below) depth++
  return depth
}
