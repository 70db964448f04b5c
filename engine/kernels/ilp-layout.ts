// Byte offsets of the structures of the line-protocol kernel (WebAssembly; ilp.ts), and the codes of its values and
// outcomes. The kernel and TypeScript both import this file, so it must be valid in AssemblyScript and in TypeScript.

// STATE (64 bytes, 8-byte aligned), set by the caller; decode() also changes `cursor`, `current` and `stopped..`.
export const stateCursor = 0 // u32: next line; after decode: where it stopped, always the start of a line
export const stateEnd = 4 // u32: end of the block; the byte before it is a newline, and 64 readable bytes follow
export const stateTemplates = 8 // u32: address of the hash table u32[mask + 1] of template addresses; 0: a free slot
export const stateMask = 12 // u32
export const stateCurrent = 16 // u32: template of the last line, 0 at the start
export const stateStoppedBytes = 20 // u32: size of the symbol for which the dictionary has no room
export const stateStoppedTemplate = 24 // u32: it or its dictionary is full, or does not take the line; 0: none
export const stateStoppedColumn = 28 // u32: number of the COLUMN whose dictionary is full
export const stateUnitNanos = 32 // i64: nanoseconds of the designated timestamp's unit: 1 (n), 1e3 (u), 1e6 (ms), ...; 0: guessed
export const stateNowMicros = 40 // i64: timestamp of lines without one

// TEMPLATE (112 bytes, 16-byte aligned).
export const templateBytes = 112
export const templateRows = 0 // u32: rows decoded; the caller resets it after taking them
export const templateMaxRows = 4 // u32: capacity of every column buffer in rows; 0: the caller has to prepare it
export const templateColumns = 8 // u32: count
export const templateColumnsAt = 12 // u32: address of the COLUMNs, tags first
export const templateTimestamps = 16 // u32: address of i64[maxRows]
export const templateFieldsAt = 20 // u32: address of the first COLUMN that is a field
export const templateNanos = 24 // u32: 1 when the designated timestamp is TIMESTAMP_NS, 0 for TIMESTAMP
export const templateSorted = 28 // u32: 1 while timestamps ascend
export const templateMinTs = 32 // i64
export const templateMaxTs = 40 // i64
export const templateLastTs = 48 // i64
export const templateLine = 56 // u64: counts lines that have other columns than predicted
export const templateName = 64 // v128: the first 16 bytes of the table's name on the wire
export const templateNameMask = 80 // v128: ones over the name's bytes
export const templateNameBytes = 96 // u32
export const templateNameAddress = 100 // u32: the whole name, with a comma and 16 readable bytes after it
export const templateComplete = 104 // u32: 1 if a row has values of all columns; the caller resets it

// COLUMN (64 bytes, 16-byte aligned); begins with the first 16 bytes of the predicted key.
export const columnBytes = 64
export const columnMask = 16 // v128: ones over the key's bytes
export const columnKeyBytes = 32 // u32
export const columnKeyAddress = 36 // u32: the whole key; compared beyond 16 bytes
export const columnKind = 40 // u32: ilpKinds
export const columnValues = 44 // u32: address of the column buffer
export const columnDictionary = 48 // u32: SYMBOL only
export const columnPresent = 52 // u32: 1 if a row has a value of it that lacks other columns; the caller resets it
export const columnSkipped = 56 // u64: the last line, by templateLine, that has a later column and not yet this one

// Why decode() returned.
export const done = 0 // the whole block is decoded
export const otherLine = 1 // the line at the cursor needs the general parser: no template takes it
export const templateFull = 2 // stoppedTemplate is full: take its rows, set `rows` to 0, and continue
export const dictionaryFull = 3 // the dictionary of stoppedColumn must grow before the line at the cursor
export const badBlock = 4 // the block does not end with a newline: nothing was decoded
