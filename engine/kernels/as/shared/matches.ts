// Finds repetitions in a block of bytes for LZ4 and Snappy, by a table of 2^14 positions indexed by the hash of the
// four bytes there. A match is at least four bytes long and at most 64 KiB back.

const HASH_BITS: u32 = 14

/** Results of nextMatch: start of the match, start of the earlier occurrence, and length. */
export let matchAt: usize = 0
export let matchFrom: usize = 0
export let matchLength: usize = 0

@inline
function slotOf(value: u32): usize {
  return <usize>((value * 2654435761) >> (32 - HASH_BITS)) << 2
}

/** `table`: 64 KiB of scratch. */
@inline
export function clearMatches(table: usize): void {
  memory.fill(table, 0, 4 << HASH_BITS)
}

/** Records a position within the last match, so that later matches can refer to it. */
@inline
export function noteMatch(source: usize, at: usize, table: usize): void {
  store<u32>(table + slotOf(load<u32>(at)), <u32>(at - source))
}

/**
 * Searches for a match from `at` on that begins at or before `last` and ends at or before `end`. It may begin before
 * `at`, but not before `anchor`. The step size grows while nothing matches.
 */
export function nextMatch(source: usize, at: usize, anchor: usize, last: usize, end: usize, table: usize): bool {
  let misses: u32 = 64
  while (at <= last) {
    const value = load<u32>(at)
    const slot = table + slotOf(value)
    const candidate = source + <usize>load<u32>(slot)
    store<u32>(slot, <u32>(at - source))
    if (candidate + 65535 < at || candidate >= at || load<u32>(candidate) != value) {
      at += <usize>(misses++ >> 6)
      continue
    }
    let from = candidate
    while (at > anchor && from > source && load<u8>(at - 1) == load<u8>(from - 1)) {
      at--
      from--
    }
    matchAt = at
    matchFrom = from
    matchLength = lengthOf(at, from, end)
    return true
  }
  return false
}

@inline
function lengthOf(at: usize, from: usize, end: usize): usize {
  let length: usize = 4
  while (at + length + 8 <= end) {
    const difference = load<u64>(at + length) ^ load<u64>(from + length)
    if (difference != 0) return length + <usize>(ctz<u64>(difference) >> 3)
    length += 8
  }
  while (at + length < end && load<u8>(at + length) == load<u8>(from + length)) length++
  return length
}
