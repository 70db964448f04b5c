// Expressions of numbers, times and conditions as generated kernels that fill a vector.

import type { Expression } from '../../sql/plan/plan.js'
import { widthOf } from '../../types/column-types.js'
import type { ExecContext } from '../batch/context.js'
import { batchRowsMax } from '../batch/vector.js'
import type { VectorEvaluator } from './expression.js'
import { FragmentInputs } from './fragments.js'

/** undefined: generated code cannot do it, or must not. */
export function compileGenerated(expression: Expression, context: ExecContext): VectorEvaluator | undefined {
  const { jit, space } = context
  if (jit === null || expression.type.name === 'SYMBOL') return undefined
  const inputs = new FragmentInputs(context, () => 0)
  const root = inputs.expression(expression)
  if (root === null || inputs.columns.length === 0) return undefined
  const fragment = jit.project({ columns: inputs.types, expressions: [root] })
  if (fragment === null) return undefined
  const block = space.keep(fragment.blockBytes)
  const { type } = expression
  const address = space.take((context.rowsMax ?? batchRowsMax) * widthOf(type))
  fragment.writeConstants(block)
  fragment.setOutput(block, 0, address)
  return ({ rows, vectors }) => {
    inputs.bind(fragment, block, vectors)
    fragment.run(block, rows)
    return { type, address, dictionary: 0 }
  }
}
