// Offsets of a symbol dictionary in shared memory (column-layout.ts), in bytes. Both the kernels and TypeScript import
// them: what stands here is AssemblyScript and TypeScript alike.

// DICTIONARY (192 bytes, 64-byte aligned). Id to text lies in chunks that never move.
export const count = 0 // u32: entries that may be read (stored with Atomics after the entry)
export const slotMask = 4 // u32: hash slots - 1                                   (writer only)
export const slots = 8 // u32: address of the slot table                           (writer only)
export const heapNext = 12 // u32: where the next text goes                        (writer only)
export const heapEnd = 16 // u32: end of the current text heap                     (writer only)
export const capacity = 20 // u32: entries for which chunks exist                  (writer only)
export const serial = 24 // u32: tells dictionaries apart that have had the same address
export const holders = 28 // i32: readers who need the texts; -1: chunks and heaps were given back, the file has the texts
export const chunks = 32 // u32[24]: chunk k has (256 << k) entries of 8 bytes {text address u32, text bytes u32}

// SLOT (32 bytes); it begins with the value v128: texts up to 16 bytes, zero padded; of longer ones {hash u32, 0, 0, 0}.
export const slotBytes = 32
export const slotLength = 16 // u32: bytes of the text + 1; 0: the slot is free
export const slotId = 20 // u32
export const slotText = 24 // u32: address of the text; a u32 behind it is reserved

// Results of looking up and entering a text that are no ids.
export const full = -1 // entries, slots or text heap are exhausted: JavaScript grows the dictionary first
export const invalid = -2 // the text is not valid UTF-8
export const missing = -3 // the text is not in the dictionary
