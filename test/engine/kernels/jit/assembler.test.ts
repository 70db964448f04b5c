// Goal: the assembler of generated kernels writes the bytes that the WebAssembly specification defines, and its output
// runs. Method: golden bytes of small modules, decoded by hand once; every instruction of the table, except return,
// drop and select, is compiled in a function that uses it; a function with loops and branches is run.

import { describe, expect, test } from 'vitest'
import { functionBuilder } from '../../../../engine/kernels/jit/assembler.js'
import { assembleModule, signed, unsigned } from '../../../../engine/kernels/jit/code-writer.js'
import { type Operation, opcodes, resultOf, type ValueType } from '../../../../engine/kernels/jit/opcodes.js'
import { createSharedMemory } from '../../../../engine/memory/shared-memory.js'

const memory = createSharedMemory(65_536)

function hex(bytes: ArrayLike<number>): string {
  return Buffer.from(Uint8Array.from(bytes)).toString('hex')
}

function exportsOf(module: Uint8Array): Record<string, (...args: number[]) => number> {
  const instance = new WebAssembly.Instance(new WebAssembly.Module(module), { env: { memory: memory.memory } })
  return instance.exports as Record<string, (...args: number[]) => number>
}

describe('bytes', () => {
  test('LEB128', () => {
    expect([0, 127, 128, 16_384, 65_536, 0xffff_ffff].map((value) => hex(unsigned(value)))).toEqual([
      '00',
      '7f',
      '8001',
      '808001',
      '808004',
      'ffffffff0f',
    ])
    const numbers = [0n, -1n, 63n, 64n, -64n, -65n, 0x7fff_ffff_ffff_ffffn, -0x8000_0000_0000_0000n]
    expect(numbers.map((value) => hex(signed(value)))).toEqual([
      '00',
      '7f',
      '3f',
      'c000',
      '40',
      'bf7f',
      'ffffffffffffffffff00',
      '8080808080808080807f',
    ])
  })

  test('a module that adds two numbers', () => {
    const f = functionBuilder(['i32', 'i32'], ['i32'])
    f.get(f.apply('i32.add', 0, 1))
    expect(hex(assembleModule([{ name: 'add', builder: f }]))).toBe(
      [
        '0061736d01000000', // magic, version
        '0107' + '0160027f7f017f', // one type: (i32, i32) -> i32
        '0212' + '0103656e76066d656d6f72790203' + '01808004', // env.memory, shared, 1 to 65536 pages
        '03020100', // one function of type 0
        '0707' + '010361646400' + '00', // exported as add
        '0a0f' + '010d' + '01017f' + '2000' + '2001' + '6a' + '2102' + '2002' + '0b',
      ].join(''),
    )
  })

  test('vector instructions, with constants in the head of the function', () => {
    const f = functionBuilder(['i32'], [])
    const sum = f.apply('f64x2.add', f.load('v128.load', 0, 16), f.vector(new Uint8Array(16).fill(7)))
    f.store('v128.store', 0, 300, sum)
    expect(hex(f.encode())).toBe(
      [
        '32' + '01037b', // length; three vectors
        `fd0c${'07'.repeat(16)}2102`, // the constant, hoisted
        '2000fd0004102101', // load at 16
        '20012002fdf0012103', // add
        '20002003fd0b04ac02', // store at 300
        '0b',
      ].join(''),
    )
  })
})

describe('what is written', () => {
  test('loops, branches and selection run', () => {
    const f = functionBuilder(['i32'], ['i32'])
    const sum = f.local('i32')
    f.block(() =>
      f.loop(() => {
        f.get(0)
        f.op('i32.eqz')
        f.brIf(1)
        f.assign(sum, 'i32.add', sum, 0)
        f.assign(0, 'i32.sub', 0, f.number('i32', 1))
        f.br(0)
      }),
    )
    f.get(f.apply('i32.eqz', sum))
    f.when(
      () => f.move(sum, f.number('i32', -1)),
      () => f.assign(sum, 'i32.add', sum, f.number('i32', 1000)),
    )
    f.get(sum)
    const { sumTo } = exportsOf(assembleModule([{ name: 'sumTo', builder: f }]))
    expect([sumTo?.(0), sumTo?.(10)]).toEqual([-1, 1055])
  })

  test('every instruction of the table is one that the engine knows, with the result that the table says', () => {
    const special = new Set(['return', 'drop', 'select'])
    for (const operation of Object.keys(opcodes) as Operation[]) {
      if (special.has(operation)) continue
      const f = functionBuilder([], [resultOf(operation) as 'i32'])
      f.get(f.apply(operation, ...operandTypes(operation).map((type) => f.local(type))))
      const module = assembleModule([{ name: 'run', builder: f }])
      expect(() => new WebAssembly.Module(module), operation).not.toThrow()
    }
  })
})

/** What an instruction takes, by its name. */
function operandTypes(operation: Operation): ValueType[] {
  const [prefix = '', name = ''] = operation.split('.')
  const vector = prefix.includes('x') || prefix === 'v128'
  if (operation === 'v128.bitselect') return ['v128', 'v128', 'v128']
  if (name === 'splat') return [{ i32x4: 'i32', i64x2: 'i64', f64x2: 'f64' }[prefix] as ValueType]
  if (vector && /^sh[lr]/.test(name)) return ['v128', 'i32']
  const from = /_(i32|i64|f32|f64)(?:_[su])?$/.exec(name)
  if (!vector && from !== null) return [from[1] as ValueType]
  const unary =
    /^(?:eqz|ctz|popcnt|abs|neg|sqrt|ceil|floor|not|any_true|all_true|bitmask|extend|promote|demote|convert|trunc)/
  const type = vector ? 'v128' : (prefix as ValueType)
  return unary.test(name) ? [type] : [type, type]
}
