// Generates the WebAssembly code of the loop over the rows of a batch: full steps of one or more groups of four rows,
// then the remaining rows, again four at a time, with a mask of those that exist. Columns are readable up to the next
// multiple of 64 bytes, so the last group may extend beyond the last row.

import { widthOf } from '../../types/column-types.js'
import type { FunctionBuilder } from './assembler.js'
import type { Local } from './code-writer.js'
import { type Environment, type LaneGroup, laneGroupAt, type Mask, narrowMask } from './lanes.js'

export interface RowLoop {
  readonly env: Environment
  /** Parameter: the number of rows. */
  readonly rows: Local
  /** Row number at the pointers. */
  readonly position: Local
}

/** `body` generates code twice: for a whole step, and for four rows with a mask of the existing ones. */
export function eachRow(
  loop: RowLoop,
  laneGroups: number,
  body: (laneGroups: readonly LaneGroup[], rows: Mask | null) => void,
): void {
  const { env, rows } = loop
  const { f } = env
  const left = f.local('i32')
  f.move(left, rows)
  wholeSteps(loop, left, laneGroups, () =>
    body(
      Array.from({ length: laneGroups }, (_, index) => laneGroupAt(env, index * 4)),
      null,
    ),
  )
  f.block(() => {
    f.loop(() => {
      f.get(left)
      f.op('i32.eqz')
      f.brIf(1)
      body([laneGroupAt(env, 0)], rowMask(f, left))
      advance(loop, 4)
      decrease(f, left, 4)
      f.br(0)
    })
  })
}

function wholeSteps(loop: RowLoop, left: Local, laneGroups: number, body: () => void): void {
  const { f } = loop.env
  const step = laneGroups * 4
  const enough = (): void => {
    f.get(left)
    f.i32(step)
    f.op('i32.ge_u')
  }
  enough()
  f.when(() =>
    f.loop(() => {
      body()
      advance(loop, step)
      f.get(left)
      f.i32(step)
      f.op('i32.sub')
      f.set(left)
      enough()
      f.brIf(0)
    }),
  )
}

/** Decreases a counter, but not below zero. */
function decrease(f: FunctionBuilder, left: Local, by: number): void {
  f.get(left)
  f.i32(by)
  f.op('i32.sub')
  f.i32(0)
  f.get(left)
  f.i32(by)
  f.op('i32.gt_u')
  f.op('select')
  f.set(left)
}

/** Mask of the lanes that are below the number of remaining rows. */
function rowMask(f: FunctionBuilder, left: Local): Mask {
  const lanes = f.vector(new Uint8Array(Int32Array.of(0, 1, 2, 3).buffer))
  return narrowMask(f.apply('i32x4.lt_u', lanes, f.apply('i32x4.splat', left)))
}

function advance({ env, position }: RowLoop, rows: number): void {
  const { f, pointers, columns } = env
  pointers.forEach((pointer, index) => {
    const type = columns[index]
    if (type !== undefined) increase(f, pointer, widthOf(type) * rows)
  })
  increase(f, position, rows)
}

export function increase(f: FunctionBuilder, local: Local, by: number): void {
  f.get(local)
  f.i32(by)
  f.op('i32.add')
  f.set(local)
}
