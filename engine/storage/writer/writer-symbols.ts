// Reloads symbol dictionaries that were evicted from memory (dictionary-indexes.ts) from their files and pins them for
// readers. If memory is short, a reader waits for flushes to free some, and is refused after a time-out. Also evicts
// the dictionaries of tables that were not written for 10 seconds, before a lack of memory causes flushes.

import { assert } from '../../base/assert.js'
import { CorruptionError, errorRecord, FileError, ResourceError, SqlError } from '../../base/errors.js'
import { holdDictionary, releaseDictionary } from '../../memory/column-layout.js'
import type { ToWriter } from '../jobs/messages.js'
import { type DictionaryFileId, dictionaryFilePath, readDictionaryFile } from '../memtable/dictionary-file.js'
import { receiptOf, refusal, sendReceiptNow, type WriterOptions, type WriterState } from './writer-state.js'
import type { WriterTable } from './writer-table.js'

type HoldSymbols = Extract<ToWriter, { kind: 'holdSymbols' }>

/** How long a reader waits for memory. */
const waitMs = 5000
/** Tables that were not written for this time lose their symbols when memory is short, but not exhausted. */
const idleMs = 10_000

/** Reads the strings of a dictionary from its file. Throws ResourceError, also if the file is unreadable. */
export function symbolReader({ files, directory, log }: WriterOptions) {
  return (id: DictionaryFileId, count: number): readonly Uint8Array[] => {
    const path = dictionaryFilePath(`${directory}/symbols`, id)
    try {
      return readDictionaryFile(files, path, id, count).strings
    } catch (thrown) {
      if (!(thrown instanceof CorruptionError || thrown instanceof FileError)) throw thrown
      log('E', 'writer', `symbols cannot be reloaded [file=${path}, error=${thrown.message}]`)
      throw new ResourceError(`symbols of the table cannot be reloaded [file=${path}]`)
    }
  }
}

/** Responds when the dictionaries are in memory and pinned for the reader. */
export function holdSymbols(state: WriterState, message: HoldSymbols): void {
  const untilMs = state.options.clock.monotonicMs() + waitMs
  if (!replyToHold(state, message, false)) state.waitingHolds.push({ message, untilMs })
}

/** Retries waiting requests, since flushes may have freed memory. Called periodically. */
export function retryHolds(state: WriterState): void {
  const now = state.options.clock.monotonicMs()
  for (const asker of state.waitingHolds.splice(0)) {
    if (!replyToHold(state, asker.message, now >= asker.untilMs)) state.waitingHolds.push(asker)
  }
}

/** Returns false if memory is missing and the request may wait. */
function replyToHold(state: WriterState, { requestId, tableId, dictionaries }: HoldSymbols, giveUp: boolean): boolean {
  const table = state.catalog.byId.get(tableId) ?? state.dropped.get(tableId)
  try {
    if (table === undefined) throw state.catalog.droppedNames.error(tableId)
    state.catalog.indexes.beginRequest()
    holdAll(state, table, dictionaries)
    sendReceiptNow(state, receiptOf(requestId, {}))
  } catch (thrown) {
    if (!(thrown instanceof SqlError || thrown instanceof ResourceError)) throw thrown
    if (thrown instanceof ResourceError && !giveUp) return false
    sendReceiptNow(state, refusal(requestId, errorRecord(thrown)))
  }
  return true
}

function holdAll({ options: { memory } }: WriterState, table: WriterTable, addresses: readonly number[]): void {
  const held: number[] = []
  const byAddress = new Map([...table.dictionaries.values()].map((dictionary) => [dictionary.address, dictionary]))
  try {
    for (const address of addresses) {
      const dictionary = byAddress.get(address)
      if (dictionary === undefined) throw SqlError.tableChanged(table.schema.name)
      dictionary.restore()
      const isHeld = holdDictionary(memory, address)
      assert(isHeld, 'S4: symbols that are in memory can be held')
      held.push(address)
    }
  } catch (thrown) {
    for (const address of held) releaseDictionary(memory, address)
    throw thrown
  }
}

/** Evicts symbols of tables that were not written for a while; false if there are none. */
export function evictSymbols({ catalog, options: { clock } }: WriterState): boolean {
  const before = clock.monotonicMs() - idleMs
  let given = false
  for (const table of catalog.byId.values()) {
    if (table.usedMs > before || table.memtables.length > 0) continue
    for (const dictionary of table.dictionaries.values()) given = (dictionary.isLarge && dictionary.evict()) || given
  }
  return given
}
