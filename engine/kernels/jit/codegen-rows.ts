// Generates the WebAssembly modules for filters and projections:
//
//   select(block, rows, out, first) -> count   row numbers (u32, first = number of the first row) of rows that pass;
//                                              out has room for four more than that
//   mask(block, rows, out)                     one byte a row, 0 or 255, and zeros up to a multiple of four rows
//   project(block, rows)                       columns in memory layout, at the block's outputs; up to three values
//                                              after the last row are written

import { nonNull } from '../../base/assert.js'
import { type DataType, widthOf } from '../../types/column-types.js'
import { type FunctionBuilder, functionBuilder } from './assembler.js'
import { type BlockLayout, blockLayout, environmentOf } from './block.js'
import { assembleModule, type Local } from './code-writer.js'
import { columnsText, lowerCondition } from './codegen-aggregate.js'
import { type ProjectShape, type SelectShape, unsupported } from './fragment.js'
import { conditionOf } from './lane-masks.js'
import { numbersOf } from './lane-numbers.js'
import { asNarrow, bothMasks, type LaneGroup, type Mask, splatInt } from './lanes.js'
import { lower, type Node, type Parameters } from './lower.js'
import { eachRow, increase, type RowLoop } from './rows.js'

export interface RowsPlan {
  readonly parameters: Parameters
  readonly nodes: readonly Node[]
  readonly block: BlockLayout
  readonly text: string
}

export function planSelect({ columns, predicate, output }: SelectShape): RowsPlan {
  const parameters: Parameters = { columns, constants: [], slots: new Map(), lookups: [] }
  const node = lowerCondition(predicate, parameters)
  const block = blockLayout(parameters, { rowTable: output === 'rows' })
  return { parameters, nodes: [node], block, text: `${output}|${columnsText(parameters)}|${node.text}` }
}

export function planProject({ columns, expressions }: ProjectShape): RowsPlan {
  const parameters: Parameters = { columns, constants: [], slots: new Map(), lookups: [] }
  const nodes = expressions.map((expression) => lower(expression, parameters))
  if (nodes.some(({ kind, type }) => kind === 'entry' || type === 'SYMBOL')) return unsupported('text as a result')
  const block = blockLayout(parameters, { outputs: nodes.length })
  const strings = nodes.map(({ type, text }) => `${type}:${text}`).join(';')
  return { parameters, nodes, block, text: `project|${columnsText(parameters)}|${strings}` }
}

interface Body {
  readonly f: FunctionBuilder
  readonly loop: RowLoop
  readonly plan: RowsPlan
}

function bodyOf(f: FunctionBuilder, plan: RowsPlan): Body {
  const env = environmentOf(f, 0, plan.parameters, plan.block)
  return { f, plan, loop: { env, rows: 1, position: f.local('i32') } }
}

// Selections --------------------------------------------------------------------------------------------------------

export function assembleSelect(plan: RowsPlan): Uint8Array {
  const f = functionBuilder(['i32', 'i32', 'i32', 'i32'], ['i32'])
  const { loop } = bodyOf(f, plan)
  const [block, out, first] = [0, 2, 3]
  const next = f.local('i32')
  f.move(next, out)
  eachRow(loop, 2, (laneGroups, existing) =>
    laneGroups.forEach((laneGroup) => {
      const bits = f.apply('i32x4.bitmask', asNarrow(f, passing(laneGroup, plan, existing)))
      const entry = f.apply('i32.add', block, f.apply('i32.shl', bits, f.number('i32', 4)))
      const lanes = f.load('v128.load', entry, plan.block.rowTable)
      const base = f.apply('i32.add', f.apply('i32.add', first, loop.position), f.number('i32', laneGroup.row))
      f.store('v128.store', next, 0, f.apply('i32x4.add', lanes, f.apply('i32x4.splat', base)))
      const bytes = f.apply('i32.shl', f.apply('i32.popcnt', bits), f.number('i32', 2))
      f.assign(next, 'i32.add', next, bytes)
    }),
  )
  f.get(f.apply('i32.shr_u', f.apply('i32.sub', next, out), f.number('i32', 2)))
  return assembleModule([{ name: 'select', builder: f }])
}

function passing(laneGroup: LaneGroup, { nodes }: RowsPlan, existing: Mask | null): Mask {
  return bothMasks(laneGroup.env.f, conditionOf(laneGroup, nonNull(nodes[0])), existing) as Mask
}

export function assembleMask(plan: RowsPlan): Uint8Array {
  const f = functionBuilder(['i32', 'i32', 'i32'], [])
  const { loop } = bodyOf(f, plan)
  const out = f.local('i32')
  f.move(out, 2)
  eachRow(loop, 4, (laneGroups, existing) => {
    const words = laneGroups.map((laneGroup) => asNarrow(f, passing(laneGroup, plan, existing)))
    storeBytes(f, out, words)
    increase(f, out, laneGroups.length * 4)
  })
  return assembleModule([{ name: 'mask', builder: f }])
}

/** Stores words of 0 or -1 as bytes: four vectors at once, or one. */
function storeBytes(f: FunctionBuilder, out: Local, words: readonly Local[]): void {
  const [a, b, c, d] = words as readonly Local[]
  if (a === undefined) return
  const low = f.apply('i16x8.narrow_i32x4_s', a, b ?? a)
  const bytes = f.apply('i8x16.narrow_i16x8_s', low, c === undefined ? low : f.apply('i16x8.narrow_i32x4_s', c, d ?? c))
  if (words.length === 4) f.store('v128.store', out, 0, bytes)
  else f.store('i32.store', out, 0, f.extract('i32x4.extract_lane', bytes, 0))
}

// Projections -------------------------------------------------------------------------------------------------------

export function assembleProject(plan: RowsPlan): Uint8Array {
  const f = functionBuilder(['i32', 'i32'], [])
  const { loop } = bodyOf(f, plan)
  const outputs = plan.nodes.map((_, index) => f.hoist(() => f.load('i32.load', 0, plan.block.outputs + index * 4)))
  eachRow(loop, 1, (laneGroups) => {
    for (const laneGroup of laneGroups)
      plan.nodes.forEach((node, index) => {
        const out = nonNull(outputs[index])
        storeLanes(f, out, laneGroup, node)
        increase(f, out, widthOf(typeOf(node)) * 4)
      })
  })
  return assembleModule([{ name: 'project', builder: f }])
}

function typeOf({ type }: Node): DataType {
  return { name: type, a: 0, b: 0 }
}

function storeLanes(f: FunctionBuilder, out: Local, laneGroup: LaneGroup, node: Node): void {
  if (node.kind === 'mask') {
    const ones = f.apply('v128.and', asNarrow(f, conditionOf(laneGroup, node)), splatInt(f, 1))
    storeBytes(f, out, [ones])
    return
  }
  const { parts } = numbersOf(laneGroup, node)
  const [first, second] = parts as readonly [Local, Local | undefined]
  if (node.type === 'BYTE') storeBytes(f, out, [first])
  else if (node.type === 'SHORT') {
    const shorts = f.apply('i16x8.narrow_i32x4_s', first, first)
    f.store('i64.store', out, 0, f.extract('i64x2.extract_lane', shorts, 0))
  } else {
    f.store('v128.store', out, 0, first)
    if (second !== undefined) f.store('v128.store', out, 16, second)
  }
}
