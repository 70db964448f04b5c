// Memory for a replay: when what the log holds does not fit, generations become parts while the replay goes on. The job
// that query threads do otherwise runs here, to its end: there are no other threads to wait for.
//
// Invariants:
//   1. Only whole transactions are flushed, so `flushedTxn` says what a replay after a crash has to skip.
//   2. A generation below carryBytesMax stays: a carry frame further on may hold its rows again, and replaces them. It
//      never holds rows of a larger one, because larger ones are not carried.
//   3. Tables whose symbols wait for a gap to be filled stay: parts need the texts.

import { createFlushJob } from './flush.js'
import type { Manifest } from './manifest.js'
import { type Job, partIdsPerFlush } from './messages.js'
import { type JobTools, pageCodecDefault } from './part-job.js'
import type { PartDescriptor } from './schema.js'
import type { WriterCatalog } from './writer-catalog.js'
import { schemaRecords, schemaWritten, symbolCounts, symbolsNamed, writeSymbols } from './writer-records.js'
import type { WriterOptions } from './writer-state.js'
import type { Generation, WriterTable } from './writer-table.js'

export class ReplayFlush {
  /** Generations that became parts. */
  count = 0
  private readonly options: WriterOptions
  private readonly manifest: Manifest
  private readonly catalog: WriterCatalog
  private readonly carryBytesMax: number

  constructor(options: WriterOptions, manifest: Manifest, catalog: WriterCatalog, carryBytesMax: number) {
    this.options = options
    this.manifest = manifest
    this.catalog = catalog
    this.carryBytesMax = carryBytesMax
  }

  /** Flushes the largest oldest generation; false when there is none that may be. Throws FileError. */
  makeRoom(stays: (table: WriterTable) => boolean): boolean {
    let best: { readonly table: WriterTable; readonly generation: Generation } | undefined
    for (const table of this.catalog.byId.values()) {
      const [generation] = table.generations
      if (generation === undefined || generation.memtable.rows === 0 || stays(table)) continue
      const { bytes } = generation.memtable
      if (table.generations.length === 1 && bytes < this.carryBytesMax) continue
      if (best === undefined || bytes > best.generation.memtable.bytes) best = { table, generation }
    }
    if (best === undefined) return false
    this.flush(best.table, best.generation)
    return true
  }

  private flush(table: WriterTable, generation: Generation): void {
    const { manifest, options } = this
    const { memtable, minTxn, maxTxn } = generation
    const firstPartId = manifest.ids.part
    manifest.commit([{ kind: 'ids', part: firstPartId + partIdsPerFlush }])
    memtable.publish(memtable.rows)
    const version = { ...table.describeSettled(), generations: [{ id: memtable.id, address: memtable.address }] }
    const rest = { generation: memtable.address, rows: memtable.rows, minTxn, maxTxn, firstPartId }
    const parts = this.run({ kind: 'flush', version, ...rest })
    writeSymbols(options, [table])
    const dictionaries = symbolCounts(table)
    manifest.commit([
      ...schemaRecords(manifest, table),
      { kind: 'parts', tableId: table.id, added: parts, removed: [], flushedTxn: maxTxn, dictionaries },
      { kind: 'ids', table: this.catalog.nextTableId },
    ])
    schemaWritten(table, 0)
    symbolsNamed(table)
    table.parts = [...table.parts, ...parts]
    table.flushedTxn = maxTxn
    table.generations = table.generations.filter((other) => other !== generation)
    memtable.free()
    this.count++
    options.log('I', 'writer', `flushed within the replay [table=${table.schema.name}, rows=${rest.rows}]`)
  }

  private run(job: Extract<Job, { kind: 'flush' }>): readonly PartDescriptor[] {
    const { files, directory, memory, allocator, kernels } = this.options
    const tools: JobTools = { files, directory, memory, allocator, kernels, codec: pageCodecDefault, group: null }
    const running = createFlushJob(tools, job)
    while (running.step() !== 'done');
    return running.result?.parts ?? []
  }
}
