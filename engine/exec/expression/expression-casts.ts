// Casts of numbers, times and addresses to text: the kernel of kernels/number.ts prints a column at once.

import { encodeKindOf } from '../../kernels/encode.js'
import type { Expression } from '../../sql/plan/plan.js'
import { type DataType, isSpan } from '../../types/column-types.js'
import type { ExecContext } from '../batch/context.js'
import { batchRowsMax } from '../batch/vector.js'
import type { VectorEvaluator } from './expression.js'

type Call = Extract<Expression, { kind: 'call' }>

/** Their texts are the same in results and in expressions. */
const printed: ReadonlySet<string> = new Set([
  'BYTE',
  'SHORT',
  'INT',
  'LONG',
  'TIMESTAMP',
  'TIMESTAMP_NS',
  'UUID',
  'IPv4',
] satisfies DataType['name'][])
/** Of the longest text, and what the kernel wants to be left behind it. */
const textBytesMax = 40
const marginBytes = 128

/** undefined: not of that kind. `compile` compiles the value. */
export function compileTextCast(
  call: Call,
  context: ExecContext,
  compile: (expression: Expression) => VectorEvaluator,
): VectorEvaluator | undefined {
  const [value] = call.args
  const { type } = call
  if (call.name !== 'cast' || value === undefined || !printed.has(value.type.name)) return undefined
  if ((type.name !== 'VARCHAR' && type.name !== 'STRING') || isSpan(value.type)) return undefined
  const { space, kernels } = context
  const source = compile(value)
  const kind = encodeKindOf(value.type)
  const rowsMax = context.rowsMax ?? batchRowsMax
  const outBytes = rowsMax * textBytesMax + marginBytes
  const [address, scratch, out] = [space.take(rowsMax * 8), space.keep(128), space.take(outBytes)]
  return (batch) => {
    const values = source(batch).address
    kernels.number.formatColumn(kind, values, 0, batch.rows, address, out, out + outBytes, scratch)
    return { type, address, dictionary: 0 }
  }
}
