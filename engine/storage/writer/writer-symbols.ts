// Symbol dictionaries that were given back (dictionary-indexes.ts) and are wanted again: read from their files, and held
// for readers. Who asks while the memory has no room waits for flushes, and is refused in the end.

import { assert } from '../../base/assert.js'
import { CorruptionError, errorRecord, FileError, ResourceError, SqlError } from '../../base/errors.js'
import { holdDictionary, releaseDictionary } from '../../memory/column-layout.js'
import type { ToWriter } from '../jobs/messages.js'
import { type DictionaryFileId, dictionaryFilePath, readDictionaryFile } from '../memtable/dictionary-file.js'
import { answerNow, receiptOf, refusal, type WriterOptions, type WriterState } from './writer-state.js'
import type { WriterTable } from './writer-table.js'

type HoldSymbols = Extract<ToWriter, { kind: 'holdSymbols' }>

/** How long who asks waits for memory. */
const waitMs = 5000
/** Tables that are written rarely keep their symbols this long, while memory is short but not exhausted. */
const restMs = 10_000

/** Reads the texts of a dictionary that was written to its file. Throws ResourceError, whatever is wrong with the file. */
export function symbolReader({ files, directory, log }: WriterOptions) {
  return (id: DictionaryFileId, count: number): readonly Uint8Array[] => {
    const path = dictionaryFilePath(`${directory}/symbols`, id)
    try {
      return readDictionaryFile(files, path, id, count).texts
    } catch (thrown) {
      if (!(thrown instanceof CorruptionError || thrown instanceof FileError)) throw thrown
      log('E', 'writer', `symbols cannot be read again [file=${path}, error=${thrown.message}]`)
      throw new ResourceError(`symbols of the table cannot be read again [file=${path}]`)
    }
  }
}

/** Answered when the dictionaries are in memory, held once for who asks. */
export function holdSymbols(state: WriterState, message: HoldSymbols): void {
  const untilMs = state.options.clock.monotonicMs() + waitMs
  if (!answerHold(state, message, false)) state.askers.push({ message, untilMs })
}

/** Called now and then: flushes may have made room. */
export function retryHolds(state: WriterState): void {
  const now = state.options.clock.monotonicMs()
  for (const asker of state.askers.splice(0)) {
    if (!answerHold(state, asker.message, now >= asker.untilMs)) state.askers.push(asker)
  }
}

/** False while memory lacks and it does not give up. */
function answerHold(state: WriterState, { requestId, tableId, dictionaries }: HoldSymbols, giveUp: boolean): boolean {
  const table = state.catalog.byId.get(tableId) ?? state.dropped.get(tableId)
  try {
    if (table === undefined) throw new SqlError('the table was dropped', 0)
    state.catalog.indexes.beginRequest()
    holdAll(state, table, dictionaries)
    answerNow(state, receiptOf(requestId, {}))
  } catch (thrown) {
    if (!(thrown instanceof SqlError || thrown instanceof ResourceError)) throw thrown
    if (thrown instanceof ResourceError && !giveUp) return false
    answerNow(state, refusal(requestId, errorRecord(thrown)))
  }
  return true
}

function holdAll({ options: { memory } }: WriterState, table: WriterTable, addresses: readonly number[]): void {
  const held: number[] = []
  const byAddress = new Map([...table.dictionaries.values()].map((dictionary) => [dictionary.address, dictionary]))
  try {
    for (const address of addresses) {
      const dictionary = byAddress.get(address)
      if (dictionary === undefined) throw new SqlError('the table has changed meanwhile, try again', 0)
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

/** Gives back symbols of tables that nobody has written for a while; false when there are none. */
export function restSymbols({ catalog, options: { clock } }: WriterState): boolean {
  const before = clock.monotonicMs() - restMs
  let given = false
  for (const table of catalog.byId.values()) {
    if (table.usedMs > before || table.generations.length > 0) continue
    for (const dictionary of table.dictionaries.values()) given = (dictionary.isLarge && dictionary.evict()) || given
  }
  return given
}
