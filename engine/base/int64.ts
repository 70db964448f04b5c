// Bounds of a signed 64-bit integer.

export const int64Min = -(2n ** 63n)
export const int64Max = 2n ** 63n - 1n
