// Copies a value of a fixed width, or a few bytes, without the cost of a call of memory.copy.

@inline
export function copyOne(target: usize, source: usize, width: usize): void {
  if (width == 8) store<u64>(target, load<u64>(source))
  else if (width == 4) store<u32>(target, load<u32>(source))
  else if (width == 1) store<u8>(target, load<u8>(source))
  else if (width == 2) store<u16>(target, load<u16>(source))
  else {
    v128.store(target, v128.load(source))
    if (width == 32) v128.store(target, v128.load(source, 16), 16)
  }
}

/** Copies a few bytes, up to 15 too many, because a call of memory.copy costs as much as a hundred instructions. */
@inline
export function copyLiterals(target: usize, source: usize, bytes: usize): void {
  if (bytes <= 16) v128.store(target, v128.load(source))
  else if (bytes <= 64) {
    for (let i: usize = 0; i < bytes; i += 16) v128.store(target + i, v128.load(source + i))
  } else memory.copy(target, source, bytes)
}
