// The interface of the WebAssembly kernel that turns the parameters of Bind messages (PostgreSQL protocol) into
// columns, and copies strings; and its structures.
//
// FIND (60 bytes, 4-byte aligned), set by the caller; findBinds() also changes `at`, `described` and `synced`:
//
//    0  at u32          address of the next message; advanced by the kernel
//    4  limit u32       end of the received bytes
//    8  prefix u32, 12 prefixBytes u32, 16 suffix u32, 20 suffixBytes u32: as in BindShape (engine/pg/bind-rows.ts)
//   24  formats u32     offset of the format codes in the prefix; 0: there is not one for each value
//   28  values u32      number of values per message
//   32  bindsMax u32
//   36  syncs u32       1: Sync messages are accepted, too
//   40  starts u32, 44 ends u32   addresses of u32 and i32 (-1: NULL) for each value of bindsMax messages, row by row
//   48  after u32      address of u32 for each message: its end
//   52  described u32, 56 synced u32   1: each message is followed by a Describe, or a Sync
//
// The functions that take values process one column, whose values are `stride` bytes apart in starts and ends. They
// stop at the first value that has another form or is not simple, and return the number of rows processed. NULL of
// fixed width is the value at `missing`; if that is 0, they stop at a NULL. NULL strings have length -1, NULL symbols
// number -1.
//
// SYMBOLS (20 bytes): slots u32 (zeroed, 8 bytes each) | mask u32 | heap u32 | count u32 | used u32. The heap contains
// the strings in the order of their numbers, each preceded by its length u32; `used` bytes of it.
//
// An ENTRY is {address u32, length i32 (-1: NULL)}, as in memtables. 16 bytes after every string must be readable, and
// 16 bytes after a heap writable.

export const symbolSlotBytes = 8

export type TakeFixed = (
  starts: number,
  ends: number,
  stride: number,
  rows: number,
  target: number,
  missing: number,
) => number

/** The form of a value on the wire, and the width of the result. */
export const fixedTakes = {
  takeDoubles: 8,
  takeLongs: 8,
  takeInts: 4,
  takeWideInts: 8,
  takeMicros: 8,
  takeTimes: 8,
  takeWholes: 8,
  takeDecimals: 8,
} as const

export type FixedTake = keyof typeof fixedTakes

export interface RowsKernel extends Readonly<Record<FixedTake, TakeFixed>> {
  /** Finds the values of complete messages of the same form; returns the number of messages. */
  findBinds(state: number): number
  /** Concatenates strings in the heap, and writes their lengths (i32). */
  takeStrings(starts: number, ends: number, stride: number, rows: number, lengths: number, heap: number): number
  /** Writes the numbers (u32) of strings; new ones are added to SYMBOLS. */
  takeSymbols(state: number, starts: number, ends: number, stride: number, rows: number, ids: number): number
  /** Writes ENTRIES for strings that are concatenated from `heap` on, by their lengths (i32; -1: NULL). */
  entriesOf(lengths: number, rows: number, heap: number, entries: number): void
  /**
   * Moves the strings of ENTRIES to a heap, each aligned to 8, while they fit; returns the number of rows. `state` is
   * {next u32, end u32} of the heap.
   */
  moveStrings(entries: number, rows: number, state: number): number
  /** Sum of the sizes of the strings of ENTRIES. */
  stringsBytes(entries: number, rows: number): number
  /**
   * Writes the lengths (i32; -1: NULL) of the strings of ENTRIES, and concatenates the strings in the heap; returns
   * their end.
   */
  packStrings(entries: number, rows: number, lengths: number, heap: number): number
}
