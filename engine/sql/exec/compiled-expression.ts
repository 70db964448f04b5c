// Expressions as generated kernels: not yet.
import type { Expression } from '../plan/plan.js'
import type { ExecContext } from './context.js'
import type { VectorEvaluator } from './expression.js'

export function compileGenerated(_expression: Expression, _context: ExecContext): VectorEvaluator | undefined {
  return undefined
}
