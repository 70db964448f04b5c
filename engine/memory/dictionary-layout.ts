// Byte offsets within a symbol dictionary in shared memory (column-layout.ts). WebAssembly kernels and TypeScript both
// import this file, so it must be valid in AssemblyScript and in TypeScript.

// DICTIONARY (192 bytes, 64-byte aligned). The chunks, which map ids to strings, never move while readers hold them.
export const count = 0 // u32: entries that may be read (stored with Atomics after the entry)
export const slotMask = 4 // u32: hash slots - 1                                   (writer only)
export const slots = 8 // u32: address of the slot table                           (writer only)
export const heapNext = 12 // u32: address for the next string                     (writer only)
export const heapEnd = 16 // u32: end of the current string heap                   (writer only)
export const capacity = 20 // u32: entries for which chunks exist                  (writer only)
export const serial = 24 // u32: distinguishes dictionaries that were created at the same address
export const holders = 28 // i32: readers that hold the strings; -1: they were evicted and are only in the file
export const chunks = 32 // u32[24]: chunk k has (256 << k) entries of 8 bytes {string address u32, string bytes u32}

// SLOT (32 bytes), begins with the value v128: strings up to 16 bytes, zero padded; of longer ones {hash u32, 0, 0, 0}.
export const slotBytes = 32
export const slotLength = 16 // u32: bytes of the string + 1; 0: the slot is free
export const slotId = 20 // u32
export const slotText = 24 // u32: address of the string; the u32 after it is reserved

// Results of a lookup or insertion that are not ids.
export const full = -1 // entries, slots or string heap are exhausted: TypeScript grows the dictionary and tries again
export const invalid = -2 // the string is not valid UTF-8
export const missing = -3 // the string is not in the dictionary
