// Byte offsets of the structures of the WebAssembly kernel for JSON records (records.ts). The kernel and TypeScript
// both import this file, so it must be valid in AssemblyScript and in TypeScript.

// STATE (256 bytes, 16-byte aligned), set by the caller. Members are u32. From byte 64 on it is memory of the kernel.
export const stateRecords = 0 // address of the RECORDs
export const stateCount = 4 // number of RECORDs
export const stateIndex = 8 // next record; after a call the one where it stopped
export const stateOut = 12 // address for the next line; after a call the end of the last one
export const stateOutEnd = 16
export const stateScratch = 20 // memory for the fields of one line
export const stateScratchEnd = 24
export const stateFields = 32 // address of the FIELDs; the first one represents the outermost object
export const stateFieldCount = 36
export const stateNative = 40 // 1: the record's timestamp is that of the line
export const stateUnits = 44 // recordUnits of numbers in the timestamp field
export const stateIso = 48 // 1: timestamps as text are ISO 8601; 0: the caller converts records with text in such fields
export const stateKeyMode = 52 // 0: keys are not stored; 1: as a string field; 2: as a symbol
export const stateKeyName = 56 // address of `name=`, escaped
export const stateKeyNameBytes = 60

// RECORD (32 bytes, 8-byte aligned). A zero byte must follow value and key, which stops reads beyond their end, and 15
// more readable bytes must follow that byte.
export const recordValue = 0 // u32: address
export const recordValueBytes = 4 // u32
export const recordKey = 8 // u32: address
export const recordKeyBytes = 12 // i32; -1: none
export const recordTable = 16 // u32: address of the table's name, escaped
export const recordTableBytes = 20 // u32
export const recordMillis = 24 // f64: the record's timestamp

// FIELD (64 bytes, 16-byte aligned), set by the caller, but for two words of the kernel (24 to 31).
export const fieldKey = 0 // u32: address of the key as in the record, with its quotes
export const fieldKeyBytes = 4 // u32
export const fieldName = 8 // u32: address of `name=`, escaped
export const fieldNameBytes = 12 // u32
export const fieldAction = 16 // u32: recordActions
export const fieldParent = 20 // u32: address of the FIELD of the enclosing object
export const fieldMask = 32 // v128: ones over the key's first 16 bytes
export const fieldKeyHead = 48 // v128: these bytes
