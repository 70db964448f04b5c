// Memoises a function without arguments: the value is computed at the first call.

export function once<Result>(make: () => Result): () => Result {
  let made: Result | undefined
  return () => {
    made ??= make()
    return made
  }
}
