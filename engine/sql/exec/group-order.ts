// The order in which dense groups had their first rows. After every stretch of rows the counts of the groups that had none
// yet are looked at; only when one of them has rows now, a second loop over the stretch finds the first rows.

import type { AggregateFragment } from '../../kernels/jit/jit.js'
import type { ExecContext } from './context.js'
import type { DenseKey } from './fragment-keys.js'
import type { FragmentInputs } from './fragments.js'
import type { Vector } from './vector.js'

export interface OrderedGroups {
  readonly fragment: AggregateFragment
  readonly firsts: AggregateFragment
  readonly inputs: FragmentInputs
  readonly keys: readonly DenseKey[]
  readonly groups: number
  readonly aggregates: number
}

export class GroupOrder {
  readonly #context: ExecContext
  readonly #query: OrderedGroups
  readonly #block: number
  readonly #state: number
  /** -1 while the group has had no row. */
  readonly #firstRows: Float64Array
  #unseen: number[]

  constructor(context: ExecContext, query: OrderedGroups) {
    const { firsts, keys, groups, inputs } = query
    this.#context = context
    this.#query = query
    this.#block = context.space.keep(firsts.blockBytes)
    this.#state = context.space.keep(firsts.stateBytes(groups))
    this.#firstRows = new Float64Array(groups).fill(-1)
    this.#unseen = Array.from(this.#firstRows, (_, group) => group)
    firsts.writeConstants(this.#block)
    inputs.bindLookups(firsts, this.#block)
    keys.forEach(({ count }, index) => firsts.setCount(this.#block, index, count))
  }

  /** The rows have been added to the state, which is folded here. */
  note(state: number, vectors: readonly Vector[], rows: number, firstRow: number): void {
    const { fragment, keys, groups } = this.#query
    if (this.#unseen.length === 0) return
    if (keys.length > 0) fragment.fold(state, groups)
    if (this.#unseen.some((group) => countWord(this.#context, this.#query, state, group) !== 0)) {
      this.#find(vectors, rows, firstRow)
    }
  }

  /** Groups that had rows, in order of their first rows. */
  groups(): number[] {
    const found: number[] = []
    this.#firstRows.forEach((row, group) => {
      if (row >= 0) found.push(group)
    })
    return found.sort((a, b) => (this.#firstRows[a] as number) - (this.#firstRows[b] as number))
  }

  #find(vectors: readonly Vector[], rows: number, firstRow: number): void {
    const { firsts, inputs, groups } = this.#query
    firsts.init(this.#state, groups)
    inputs.bind(firsts, this.#block, vectors)
    firsts.run(this.#block, rows, this.#state, groups, firstRow)
    firsts.fold(this.#state, groups)
    this.#unseen = this.#unseen.filter((group) => {
      const row = firsts.result(this.#state, group, 0)
      if (typeof row !== 'number') return true
      this.#firstRows[group] = row
      return false
    })
  }
}

/** Not 0 when the group of a folded state has rows. */
export function countWord(
  { memory }: ExecContext,
  { fragment, aggregates }: Pick<OrderedGroups, 'fragment' | 'aggregates'>,
  state: number,
  group: number,
): number {
  const offset = fragment.plan.record.outputs[aggregates]?.cell.offset ?? 0
  return memory.u32[(state + group * fragment.recordBytes + offset) >>> 2] as number
}
