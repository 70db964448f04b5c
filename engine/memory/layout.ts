// The fixed address map of the shared memory. Everything from `heapBase` on belongs to the allocator.
//
//   0         64 KiB    unused: address 0 means "none"
//   64 KiB    2 MiB     data segments of the kernel modules, 64 KiB each (constants; rewritten at every instantiation)
//   2 MiB     3 MiB     constant tables of the kernels (every thread writes the same bytes)
//   3 MiB     4 MiB     control words: see below
//   4 MiB     end       heap
//
// Control words, each on its own 64-byte line (byte addresses):

const KIB = 1024
const MIB = 1024 * KIB
export const constantTablesBase = 2 * MIB
const controlBase = 3 * MIB
export const heapBase = 4 * MIB

/** Sequence lock of the row counts: odd while the writer publishes a group. Readers retry if it has changed. */
export const publishSequenceAddress = controlBase
/** Wake word of thread n: incremented and notified by a thread that sends it a message. */
export const wakeWordsAddress = controlBase + 1 * KIB
export const wakeWordStride = 64
export const threadsMax = 128
/** State of the allocator. */
export const allocatorAddress = controlBase + 64 * KIB
/** Head and tail of the ingest ring. */
export const ingestRingAddress = controlBase + 512 * KIB
/** Metrics: see metrics.ts. */
export const metricsAddress = controlBase + 768 * KIB
/** The most recent flushes and compactions: see storage-work.ts. */
export const storageWorkAddress = controlBase + 800 * KIB
/** The most recent transactions: see transactions.ts. */
export const transactionsAddress = controlBase + 832 * KIB
/** Cancelled queries and jobs: see cancel-flags.ts. */
export const cancelFlagsAddress = controlBase + 1008 * KIB
