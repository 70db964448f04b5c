// Vectorised concat(), also written ||, and replace(). If a result in a batch could exceed the maximum size of a value,
// the batch is evaluated row by row by `eval`, which reports the error.

import { valueBytesMax } from '../../../base/limits.js'
import type { Expression } from '../../plan/plan.js'
import { type ColumnFunction, constantBytes, isText, isTextVector } from './column-function.js'

/** Maximum number of arguments of a vectorised concat(). */
const columnsMax = 64
const everyRow = (): boolean => true

/** `textOf` formats a constant argument as concat() does. */
export function concatColumn(textOf: (constant: Extract<Expression, { kind: 'constant' }>) => string): ColumnFunction {
  return (call, { memory, kernels, allocate, reserve }) => {
    const args = call.args.map((part) =>
      part.kind === 'constant' && !isText(part.type) ? { ...part, value: textOf(part), type: call.type } : part,
    )
    if (args.length > columnsMax || !args.every(({ type }) => isText(type) || type.name === 'SYMBOL')) return undefined
    const { u32 } = memory
    const columns = allocate(args.length * 4)
    return {
      args,
      run: (rows, vectors, out) => {
        let bytes = 0
        vectors.forEach((entries, index) => {
          u32[(columns >>> 2) + index] = entries
          bytes += kernels.text.stringsBytes(entries, rows)
        })
        if (bytes > valueBytesMax) return rows
        kernels.text.joinStrings(columns, vectors.length, rows, reserve(bytes), out)
        return 0
      },
      isLeft: everyRow,
    }
  }
}

export const replaceColumn: ColumnFunction = ({ args: [text, from, to] }, context) => {
  const [wanted, other] = [constantText(from), constantText(to)]
  if (!isTextVector(text) || wanted === undefined || other === undefined || wanted === '') return undefined
  const { kernels, reserve } = context
  const [target, replacement] = [constantBytes(wanted, context), constantBytes(other, context)]
  const growth = Math.max(1, replacement.bytes / target.bytes)
  return {
    args: [text],
    run: (rows, [strings = 0], out) => {
      const bytes = Math.ceil(kernels.text.stringsBytes(strings, rows) * growth)
      if (bytes > valueBytesMax) return rows
      const heap = reserve(bytes)
      const { address, bytes: length } = target
      kernels.text.replaceInStrings(strings, rows, address, length, replacement.address, replacement.bytes, heap, out)
      return 0
    },
    isLeft: everyRow,
  }
}

function constantText(argument: Expression | undefined): string | undefined {
  return argument?.kind === 'constant' && typeof argument.value === 'string' ? argument.value : undefined
}
