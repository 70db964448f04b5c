// placeholder
import type { Expression } from '../plan/plan.js'
import type { ExecContext } from './context.js'
import type { VectorEvaluator } from './expression.js'

export function compileLoop(_expression: Expression, _context: ExecContext): VectorEvaluator | undefined {
  return undefined
}
