// Operator: projection. Evaluates a list of expressions over each batch of its input.

import type { Expression } from '../../sql/plan/plan.js'
import type { ExecContext } from '../batch/context.js'
import { isBatch, type Operator } from '../batch/vector.js'
import { compileVector } from '../expression/expression.js'

export function projectOperator(context: ExecContext, input: Operator, expressions: readonly Expression[]): Operator {
  const evaluators = expressions.map((expression) => compileVector(expression, context))
  return {
    pull: () => {
      const batch = input.pull()
      if (!isBatch(batch)) return batch
      return { rows: batch.rows, vectors: evaluators.map((evaluate) => evaluate(batch)) }
    },
    goIdle: () => input.goIdle?.(),
  }
}
