// Generates the WebAssembly module for a query's aggregation: filter, GROUP BY keys and aggregates in one loop over the
// rows. It has three functions:
//
//   run(block, rows, state, groups, stride, firstRow f64)   adds rows to the state
//   init(state, records)                                    sets records to the neutral element
//   merge(from, into, records)                              merges records into others

import { type FunctionBuilder, functionBuilder } from './assembler.js'
import { type BlockLayout, blockLayout, environmentOf } from './block.js'
import { type RecordLayout, recordLayout, writeInit, writeMerge } from './cells.js'
import { assembleModule } from './code-writer.js'
import { groupCode, type KeyNode } from './codegen-groups.js'
import { accumulators } from './codegen-total.js'
import { type AggregateShape, type FragmentExpression, type GroupKey, unsupported } from './fragment.js'
import { conditionOf } from './lane-masks.js'
import { bothMasks, type LaneGroup, type Mask } from './lanes.js'
import { lower, type Node, type Parameters } from './lower.js'
import { eachRow, type RowLoop } from './rows.js'

/** A lowered AggregateShape, without the values of its constants. */
export interface AggregatePlan {
  readonly parameters: Parameters
  readonly predicate: Node | null
  readonly record: RecordLayout
  readonly keys: readonly KeyNode[]
  readonly block: BlockLayout
  /** Cache key: equal texts have equal modules. */
  readonly text: string
}

export function planAggregate(shape: AggregateShape): AggregatePlan {
  const parameters: Parameters = { columns: shape.columns, constants: [], slots: new Map(), lookups: [] }
  const predicate = shape.predicate === null ? null : lowerCondition(shape.predicate, parameters)
  const record = recordLayout(shape.aggregates, parameters)
  const keys = shape.keys.map((key) => lowerKey(key, parameters))
  const block = blockLayout(parameters, { counts: keys.length })
  const keyText = keys.map((key) => `${key.kind}:${key.node.text}`).join()
  const text = ['aggregate', columnsText(parameters), predicate?.text, record.text, keyText, block.bytes].join('|')
  return { parameters, predicate, record, keys, block, text }
}

export function columnsText({ columns, constants, lookups }: Parameters): string {
  return `${columns.map(({ name }) => name).join()}/${constants.length}/${lookups.length}`
}

export function lowerCondition(expression: FragmentExpression, parameters: Parameters): Node {
  const node = lower(expression, parameters)
  return node.kind === 'mask' ? node : unsupported('a predicate that is no BOOLEAN')
}

function lowerKey(key: GroupKey, parameters: Parameters): KeyNode {
  const node = lower(key.expression, parameters)
  if (key.kind === 'integer') {
    if (node.kind !== 'i32' && node.kind !== 'mask') return unsupported('a key of that type')
    if (node.type === 'SYMBOL' || node.kind === 'mask') return { kind: 'integer', node, shift: null }
    return { kind: 'integer', node, shift: ownSlot(parameters, Int32Array.of(1 - key.origin), 'INT') }
  }
  if (node.kind !== 'i64') return unsupported('buckets of that type')
  const origin = ownSlot(parameters, BigInt64Array.of(key.origin), 'LONG')
  return { kind: 'bucket', node, origin, step: ownSlot(parameters, BigInt64Array.of(key.step), 'LONG') }
}

/** A constant with a slot of its own, whose value may change without a new module. */
function ownSlot({ constants }: Parameters, value: Int32Array | BigInt64Array, type: 'INT' | 'LONG'): Node {
  const bytes = new Uint8Array(16)
  for (let at = 0; at < 16; at += value.byteLength) bytes.set(new Uint8Array(value.buffer), at)
  const index = constants.push(bytes) - 1
  const kind = type === 'INT' ? 'i32' : 'i64'
  return { operation: 'constant', kind, missing: 'never', args: [], index, slot: 0, type, text: `k${index}:own` }
}

export function assembleAggregate(plan: AggregatePlan): Uint8Array {
  const run = functionBuilder(['i32', 'i32', 'i32', 'i32', 'i32', 'f64'], [])
  writeRun(run, plan)
  const init = functionBuilder(['i32', 'i32'], [])
  writeInit(init, plan.record)
  const merge = functionBuilder(['i32', 'i32', 'i32'], [])
  writeMerge(merge, plan.record)
  return assembleModule([
    { name: 'run', builder: run },
    { name: 'init', builder: init },
    { name: 'merge', builder: merge },
  ])
}

function writeRun(f: FunctionBuilder, plan: AggregatePlan): void {
  const [block, rows, state, groups, stride, first] = [0, 1, 2, 3, 4, 5]
  const { predicate, record, keys, parameters } = plan
  const env = environmentOf(f, block, parameters, plan.block)
  const loop: RowLoop = { env, rows, position: f.local('i32') }
  const firstRow = f.hoist(() => f.apply('i64.trunc_f64_s', first))
  const passing = (laneGroup: LaneGroup, existing: Mask | null): Mask | null =>
    bothMasks(f, predicate === null ? null : conditionOf(laneGroup, predicate), existing)
  if (keys.length > 0) {
    const add = groupCode({
      loop,
      layout: record,
      blockLayout: plan.block,
      keys,
      block,
      state,
      groups,
      stride,
      firstRow,
    })
    eachRow(loop, 1, (laneGroups, existing) =>
      laneGroups.forEach((laneGroup) => add(laneGroup, passing(laneGroup, existing))),
    )
    return
  }
  const totals = accumulators({ loop, firstRow, everyRow: predicate === null }, record)
  eachRow(loop, laneGroupsPerStep(plan), (laneGroups, existing) =>
    laneGroups.forEach((laneGroup, slot) => {
      const mask = passing(laneGroup, existing)
      for (const total of totals) total.add(laneGroup, slot, mask)
    }),
  )
  for (const total of totals) total.finish(state)
}

/** Lane groups per loop step. Only the simplest loops gain from several; others then run out of registers. */
function laneGroupsPerStep({ predicate, record }: AggregatePlan): number {
  return predicate === null && record.cells.length === 1 && record.cells[0]?.kind === 'sums' ? 2 : 1
}
