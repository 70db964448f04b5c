// An assembler for generated WebAssembly functions, which lets code generators work with values instead of the operand
// stack: `apply` and similar methods take local variables and return the one with the result. Constant vectors are
// created once, in the function's head.
//
// A branch names its target by the number of enclosing blocks and loops in between, 0 is the innermost. The body of a
// `when` counts as a block.

import { assert } from '../../base/assert.js'
import { type CodeWriter, codeWriter, type Local } from './code-writer.js'
import { type LaneOperation, type MemoryOperation, type Operation, resultOf, type ValueType } from './opcodes.js'

export interface FunctionBuilder extends CodeWriter {
  /** Applies an instruction to locals; the result is in a new local. */
  apply(operation: Operation, ...operands: readonly Local[]): Local
  /** Like apply, but the result is in an existing local. */
  assign(target: Local, operation: Operation, ...operands: readonly Local[]): void
  load(operation: MemoryOperation, address: Local, offset: number): Local
  store(operation: MemoryOperation, address: Local, offset: number, value: Local): void
  extract(operation: LaneOperation, vector: Local, lane: number): Local
  /** The vector with one lane replaced, in a new local. */
  replace(operation: LaneOperation, vector: Local, lane: number, value: Local): Local
  /** Selects bytes of two vectors; numbers from 16 on refer to the second one. */
  shuffle(left: Local, right: Local, bytes: readonly number[]): Local
  move(target: Local, source: Local): void
  number(type: 'i32' | 'f64', value: number): Local
  long(value: bigint): Local
  /** A constant vector. */
  vector(bytes: ArrayLike<number>): Local
}

export function functionBuilder(params: readonly ValueType[], results: readonly ValueType[]): FunctionBuilder {
  const writer = codeWriter(params, results)
  const { get, set, op, memory, lane, i32, i64, f64, hoist } = writer
  const vectors = new Map<string, Local>()
  const into = (type: ValueType): Local => {
    const result = writer.local(type)
    set(result)
    return result
  }
  const assign = (target: Local, operation: Operation, ...operands: readonly Local[]): void => {
    operands.forEach(get)
    op(operation)
    set(target)
  }
  const constant = (bytes: ArrayLike<number>): Local =>
    hoist(() => {
      writer.v128(bytes)
      return into('v128')
    })
  return {
    ...writer,
    assign,
    apply: (operation, ...operands) => {
      const result = writer.local(resultOf(operation))
      assign(result, operation, ...operands)
      return result
    },
    load: (operation, address, offset) => {
      get(address)
      memory(operation, offset)
      return into(resultOf(operation))
    },
    store: (operation, address, offset, value) => {
      get(address)
      get(value)
      memory(operation, offset)
    },
    extract: (operation, vector, index) => {
      get(vector)
      lane(operation, index)
      return into(resultOf(operation))
    },
    replace: (operation, vector, index, value) => {
      get(vector)
      get(value)
      lane(operation, index)
      return into('v128')
    },
    shuffle: (left, right, bytes) => {
      assert(bytes.length === 16, 'K2: a shuffle names 16 bytes')
      get(left)
      get(right)
      writer.shuffleBytes(bytes)
      return into('v128')
    },
    move: (target, source) => {
      get(source)
      set(target)
    },
    number: (type, value) => {
      if (type === 'i32') i32(value)
      else f64(value)
      return into(type)
    },
    long: (value) => {
      i64(value)
      return into('i64')
    },
    vector: (bytes) => {
      const key = Array.prototype.join.call(bytes)
      const known = vectors.get(key)
      if (known !== undefined) return known
      const made = constant(bytes)
      vectors.set(key, made)
      return made
    },
  }
}
