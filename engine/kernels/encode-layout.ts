// Byte offsets of the structures of the encoding kernel (WebAssembly; encode.ts). The kernel and TypeScript both import
// this file, so it must be valid in AssemblyScript and in TypeScript.

// STATE (64 bytes, followed by 128 bytes of scratch memory, 8-byte aligned), set by the caller. Members are u32.
export const stateColumns = 0 // address of the COLUMNs
export const stateCount = 4 // number of COLUMNs
export const stateRow = 8 // next row; encode() advances it
export const stateRowEnd = 12
export const stateOut = 16 // address of the next byte; encode() advances it
export const stateOutEnd = 20 // end of the output buffer
export const stateFlags = 24 // encodeFlags
export const stateDelimiter = 28 // CSV: one ASCII character; messages: the message type
export const stateNeeded = 32 // set by encode() if a row did not fit: upper bound of its size
export const stateWritten = 36 // JSON: 1 when a row precedes, so that a comma comes first; encode() sets it
export const stateIndex = 40 // address of u32 row numbers, indexed by `row`; 0: rows in their own order
export const stateScratch = 64

// COLUMN (4-byte aligned). Members are u32.
export const columnBytes = 32
export const columnKind = 0 // encodeKinds
export const columnValues = 4 // address; 0: every value is NULL (false, 0 for types without NULL)
export const columnDictionary = 8 // SYMBOL (engine/memory/column-layout.ts)
export const columnParameter = 12 // GEOHASH: bits; DECIMAL: scale
export const columnLabel = 16 // lines: address of the text before the value, `{"name":` or `,"name":`; messages: pgFormats
export const columnLabelBytes = 20
