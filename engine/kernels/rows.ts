// Rows that clients send as parameters to columns, and texts of rows to entries: the interface of the kernel.
//
// FIND (60 bytes, 4-byte aligned), set by the caller, `at`, `described` and `synced` also by findBinds():
//
//    0  at u32          the first message; moved behind the last one that was taken
//    4  limit u32       behind the bytes that have come
//    8  prefix u32, 12 prefixBytes u32, 16 suffix u32, 20 suffixBytes u32: as in BindShape (engine/pg/bind-rows.ts)
//   24  formats u32     where the formats begin in the prefix; 0: there is not one for each value
//   28  values u32      of a message
//   32  bindsMax u32
//   36  syncs u32       1: Sync messages are taken, too
//   40  starts u32, 44 ends u32   addresses of u32 and i32 (-1: NULL) for each value of bindsMax messages, row by row
//   48  behind u32      address of u32 for each message: where it ends
//   52  described u32, 56 synced u32   1: each message had a Describe, a Sync behind it
//
// The functions that take values go over the places of one column, `stride` bytes from one row's to the next one's, and
// stop at the first value that is of another form or not simple; they answer how many rows they took. NULL of a fixed width
// is what lies at `missing`, or 0: they stop there. NULL among texts has the length -1, among symbols the number -1.
//
// SYMBOLS (20 bytes): slots u32 (zeroed, 8 bytes each) | mask u32 | heap u32 | count u32 | used u32. The texts lie in the heap
// by number, each behind its length u32; `used` bytes of it.
//
// An ENTRY is {address u32, length i32 (-1: NULL)}, as memtables have texts. 16 bytes behind every text must be readable,
// and 16 bytes behind a heap writable.

export const symbolSlotBytes = 8

export type TakeFixed = (
  starts: number,
  ends: number,
  stride: number,
  rows: number,
  target: number,
  missing: number,
) => number

/** What a value is on the wire, and the width of what it becomes. */
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
  /** Notes where the values of whole messages alike are; answers how many messages. */
  findBinds(state: number): number
  /** Texts one behind the other into the heap; their lengths (i32). */
  takeTexts(starts: number, ends: number, stride: number, rows: number, lengths: number, heap: number): number
  /** Numbers (u32) of texts, new ones behind those that SYMBOLS has. */
  takeSymbols(state: number, starts: number, ends: number, stride: number, rows: number, ids: number): number
  /** ENTRIES of texts that lie one behind the other from `heap` on, by their lengths (i32; -1: NULL). */
  entriesOf(lengths: number, rows: number, heap: number, entries: number): void
  /**
   * Moves the texts of ENTRIES into a heap, each to a multiple of 8, as long as they fit: answers how many rows. `state` is
   * {next u32, end u32} of the heap.
   */
  moveTexts(entries: number, rows: number, state: number): number
}
