// The just-in-time compiler for query fragments (filter, keys, aggregates, projections), one per thread: generates and
// compiles a WebAssembly module for a fragment. It caches modules by the text of the fragment without its constants,
// which are parameters, so queries that differ only in constants share a module. Methods return null if the fragment
// contains something that generated code does not support; the caller then uses another implementation.
//
// Usage: allocate `blockBytes` and write the constants once per query; set addresses and call `run` for every batch.
// Calls of 4,000 to 65,536 rows are best, because V8 replaces a WebAssembly function by its optimised code only between
// calls.
//
// A call reads up to three rows after the last one. That is within the padding of a column if it begins at a multiple
// of four rows, else at most 24 bytes after it.

import type { SharedMemory } from '../../memory/shared-memory.js'
import type { Value } from '../../types/value.js'
import { writeConstants } from './block.js'
import { setsFor, setsMax, spareRecords } from './cells.js'
import { type AggregatePlan, assembleAggregate, planAggregate } from './codegen-aggregate.js'
import {
  assembleMask,
  assembleProject,
  assembleSelect,
  planProject,
  planSelect,
  type RowsPlan,
} from './codegen-rows.js'
import { type AggregateShape, type ProjectShape, type SelectShape, Unsupported } from './fragment.js'
import { readResult } from './results.js'

/** The common part of all fragments: a block of parameters. */
export interface Fragment {
  /** Size of the block, which is 16-byte aligned in the caller's memory. */
  readonly blockBytes: number
  /** The caller's numbers of predicate lookup tables, by slot. */
  readonly lookups: readonly number[]
  writeConstants(block: number): void
  setColumn(block: number, index: number, address: number): void
  /** Sets a predicate lookup table of `entries` bytes: for NULL, then for every id. */
  setLookup(block: number, slot: number, address: number, entries: number): void
}

export interface AggregateFragment extends Fragment {
  readonly recordBytes: number
  /** Size of a state with that many groups. Without keys each record is a state of its own, for one range of rows. */
  stateBytes(groups: number): number
  /** Sets the number of values of a part of the group number. The product of all is the number of groups. */
  setCount(block: number, key: number, count: number): void
  init(state: number, groups: number): void
  /** Adds rows to the state. Row numbers start at firstRow. */
  run(block: number, rows: number, state: number, groups: number, firstRow: number): void
  /** Combines the sets of a state. Required before it is read, merged or moved. */
  fold(state: number, groups: number): void
  /** Merges a folded state into another one. The same order of merges gives the same bits. */
  merge(from: number, into: number, groups: number): void
  /** The result of an aggregate for a group of a folded state; row numbers are returned as numbers. */
  result(state: number, group: number, aggregate: number): Value
  /** Layout of the records, for reading many results (cells.ts). */
  readonly plan: AggregatePlan
}

export interface SelectFragment extends Fragment {
  /**
   * Output 'rows': writes row numbers from `first` on, returns their number. Output 'mask': writes bytes, returns 0.
   */
  run(block: number, rows: number, out: number, first: number): number
}

interface ProjectFragment extends Fragment {
  setOutput(block: number, index: number, address: number): void
  run(block: number, rows: number): void
}

export interface Jit {
  aggregate(shape: AggregateShape): AggregateFragment | null
  select(shape: SelectShape): SelectFragment | null
  project(shape: ProjectShape): ProjectFragment | null
}

const modulesMax = 512

type Exports = Readonly<Record<string, (...args: number[]) => number>>

export function createJit(memory: SharedMemory): Jit {
  const modules = new Map<string, Exports>()
  const exportsOf = (text: string, assemble: () => Uint8Array): Exports => {
    const known = modules.get(text)
    if (known !== undefined) return known
    const made = new WebAssembly.Instance(new WebAssembly.Module(assemble()), { env: { memory: memory.memory } })
    const oldest = modules.size >= modulesMax ? modules.keys().next() : { done: true as const }
    if (oldest.done !== true) modules.delete(oldest.value as string)
    modules.set(text, made.exports as Exports)
    return made.exports as Exports
  }
  return {
    aggregate: (shape) =>
      supported(() => {
        const plan = planAggregate(shape)
        return aggregateFragment(
          memory,
          plan,
          exportsOf(plan.text, () => assembleAggregate(plan)),
        )
      }),
    select: (shape) =>
      supported(() => {
        const plan = planSelect(shape)
        const assemble = shape.output === 'rows' ? assembleSelect : assembleMask
        return selectFragment(
          memory,
          plan,
          exportsOf(plan.text, () => assemble(plan)),
        )
      }),
    project: (shape) =>
      supported(() => {
        const plan = planProject(shape)
        return projectFragment(
          memory,
          plan,
          exportsOf(plan.text, () => assembleProject(plan)),
        )
      }),
  }
}

function supported<T>(make: () => T): T | null {
  try {
    return make()
  } catch (error) {
    if (error instanceof Unsupported) return null
    throw error
  }
}

/**
 * Callers that extend the object must list its members one by one: a spread creates an object shape of its own in V8,
 * which makes access to it slow.
 */
function fragment(memory: SharedMemory, { parameters, block }: Pick<RowsPlan, 'parameters' | 'block'>): Fragment {
  const { u32 } = memory
  const hasTable = block.columns > block.rowTable
  return {
    blockBytes: block.bytes,
    lookups: parameters.lookups,
    writeConstants: (at) => writeConstants(memory, at, parameters.constants, hasTable ? block.rowTable : null),
    setColumn: (at, index, address) => {
      u32[((at + block.columns) >>> 2) + index] = address
    },
    setLookup: (at, slot, address, entries) => {
      const word = ((at + block.lookups) >>> 2) + slot * 2
      u32[word] = address
      u32[word + 1] = entries - 1
    },
  }
}

function aggregateFragment(memory: SharedMemory, plan: AggregatePlan, code: Exports): AggregateFragment {
  const { record, keys } = plan
  const keyed = keys.length > 0
  const { run, init, merge } = code as { run: Run; init: Run; merge: Run }
  const records = (groups: number): number => (keyed ? groups + spareRecords : groups)
  const stride = (groups: number): number => records(groups) * record.bytes
  const sets = (groups: number): number => setsFor(record, groups, keyed)
  const { blockBytes, lookups, writeConstants, setColumn, setLookup } = fragment(memory, plan)
  return {
    blockBytes,
    lookups,
    writeConstants,
    setColumn,
    setLookup,
    plan,
    recordBytes: record.bytes,
    stateBytes: (groups) => Math.max(16, stride(groups) * sets(groups)),
    setCount: (at, key, count) => {
      memory.u32[((at + plan.block.counts) >>> 2) + key] = count
    },
    init: (state, groups) => {
      init(state, records(groups) * sets(groups))
    },
    run: (at, rows, state, groups, firstRow) => {
      run(at, rows, state, groups, sets(groups) === setsMax ? stride(groups) : 0, firstRow)
    },
    fold: (state, groups) => {
      const bytes = stride(groups)
      for (let set = 1; set < sets(groups); set++) {
        merge(state + set * bytes, state, records(groups))
        init(state + set * bytes, records(groups))
      }
    },
    merge: (from, into, groups) => {
      merge(from, into, records(groups))
    },
    result: (state, group, aggregate) => readResult(memory, record, state + group * record.bytes, aggregate),
  }
}

type Run = (...args: number[]) => number

function selectFragment(memory: SharedMemory, plan: RowsPlan, code: Exports): SelectFragment {
  const { select, mask } = code
  const { blockBytes, lookups, writeConstants, setColumn, setLookup } = fragment(memory, plan)
  return {
    blockBytes,
    lookups,
    writeConstants,
    setColumn,
    setLookup,
    run: (at, rows, out, first) => {
      if (select !== undefined) return select(at, rows, out, first) >>> 0
      mask?.(at, rows, out)
      return 0
    },
  }
}

function projectFragment(memory: SharedMemory, plan: RowsPlan, code: Exports): ProjectFragment {
  const { project } = code as { project: Run }
  const { blockBytes, lookups, writeConstants, setColumn, setLookup } = fragment(memory, plan)
  return {
    blockBytes,
    lookups,
    writeConstants,
    setColumn,
    setLookup,
    setOutput: (at, index, address) => {
      memory.u32[((at + plan.block.outputs) >>> 2) + index] = address
    },
    run: (at, rows) => {
      project(at, rows)
    },
  }
}
