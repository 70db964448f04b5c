// The low-level writer of the code generator: appends the instructions of a WebAssembly function as bytes, and encodes
// finished functions as a module. opcodes.ts has the instruction set; assembler.ts is the interface that code
// generators use.

import { unsupported } from './fragment.js'
import {
  type LaneOperation,
  laneOpcodes,
  type MemoryOperation,
  memoryOpcodes,
  type Operation,
  opcodes,
  type ValueType,
} from './opcodes.js'

/** Index of a parameter or a local variable of a function. */
export type Local = number

export interface CodeWriter {
  readonly params: readonly ValueType[]
  readonly results: readonly ValueType[]
  /** Creates a local variable; it is initially zero. */
  local(type: ValueType): Local
  get(local: Local): void
  set(local: Local): void
  op(operation: Operation): void
  memory(operation: MemoryOperation, offset: number): void
  lane(operation: LaneOperation, lane: number): void
  shuffleBytes(bytes: ArrayLike<number>): void
  i32(value: number): void
  i64(value: bigint): void
  f64(value: number): void
  v128(bytes: ArrayLike<number>): void
  block(content: () => void): void
  loop(content: () => void): void
  /** An if-else; takes the condition from the stack. */
  when(then: () => void, otherwise?: () => void): void
  br(depth: number): void
  brIf(depth: number): void
  /** Emits to the function's head, before everything in its body. */
  hoist<T>(emit: () => T): T
  /** The function's entry of the code section. */
  encode(): readonly number[]
}

const typeCodes: Record<ValueType, number> = { i32: 0x7f, i64: 0x7e, f32: 0x7d, f64: 0x7c, v128: 0x7b }
const noResult = 0x40
const end = 0x0b
/** Limits indexes to two bytes. A function that needs more is not worth compiling. */
const localsMax = 16_000

export function codeWriter(params: readonly ValueType[], results: readonly ValueType[]): CodeWriter {
  const locals: ValueType[] = []
  const head: number[] = []
  const body: number[] = []
  let code = body
  const put = (...bytes: readonly number[]): void => {
    for (const byte of bytes) code.push(byte)
  }
  const nested = (opening: number, content: () => void): void => {
    put(opening, noResult)
    content()
    put(end)
  }
  return {
    params,
    results,
    local: (type) => {
      if (locals.length >= localsMax) unsupported('too many variables')
      return params.length + locals.push(type) - 1
    },
    get: (local) => {
      if (local < 128) code.push(0x20, local)
      else code.push(0x20, (local & 127) | 128, local >>> 7)
    },
    set: (local) => {
      if (local < 128) code.push(0x21, local)
      else code.push(0x21, (local & 127) | 128, local >>> 7)
    },
    op: (operation) => {
      const opcode = opcodes[operation]
      if (opcode < 0x100) code.push(opcode)
      else put(...instruction(opcode))
    },
    memory: (operation, offset) => {
      const [opcode, alignment] = memoryOpcodes[operation]
      put(...instruction(opcode), alignment, ...unsigned(offset))
    },
    lane: (operation, lane) => put(...instruction(laneOpcodes[operation]), lane),
    shuffleBytes: (bytes) => put(0xfd, 0x0d, ...Array.from(bytes)),
    i32: (value) => {
      if (value >= -64 && value < 64) code.push(0x41, value & 0x7f)
      else put(0x41, ...signed(BigInt(value | 0)))
    },
    i64: (value) => put(0x42, ...signed(BigInt.asIntN(64, value))),
    f64: (value) => put(0x44, ...new Uint8Array(Float64Array.of(value).buffer)),
    v128: (bytes) => put(0xfd, 0x0c, ...Array.from(bytes)),
    block: (content) => nested(0x02, content),
    loop: (content) => nested(0x03, content),
    when: (then, otherwise) =>
      nested(0x04, () => {
        then()
        if (otherwise === undefined) return
        put(0x05)
        otherwise()
      }),
    br: (depth) => put(0x0c, ...unsigned(depth)),
    brIf: (depth) => put(0x0d, ...unsigned(depth)),
    hoist: (emit) => {
      const outer = code
      code = head
      const result = emit()
      code = outer
      return result
    },
    encode: () => {
      const content = [...localRuns(locals), ...head, ...body, end]
      return [...unsigned(content.length), ...content]
    },
  }
}

/** Run-length encodes the types of locals for their declaration. */
function localRuns(locals: readonly ValueType[]): number[] {
  const runs: { type: ValueType; count: number }[] = []
  for (const type of locals) {
    const last = runs.at(-1)
    if (last?.type === type) last.count++
    else runs.push({ type, count: 1 })
  }
  return vectorOf(runs.map(({ type, count }) => [...unsigned(count), typeCodes[type]]))
}

/** Encodes a module that imports `env.memory` (shared) and exports the functions. */
export function assembleModule(
  functions: readonly { readonly name: string; readonly builder: CodeWriter }[],
): Uint8Array {
  const types = functions.map(({ builder: { params, results } }) => [0x60, ...typeList(params), ...typeList(results)])
  const shared = 0x03
  const memory = [...text('env'), ...text('memory'), 0x02, shared, ...unsigned(1), ...unsigned(65_536)]
  const exported = functions.map(({ name }, index) => [...text(name), 0x00, ...unsigned(index)])
  const module: number[] = [0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00]
  for (const [id, content] of [
    [1, vectorOf(types)],
    [2, vectorOf([memory])],
    [3, vectorOf(functions.map((_, index) => unsigned(index)))],
    [7, vectorOf(exported)],
    [10, vectorOf(functions.map(({ builder }) => builder.encode()))],
  ] as const) {
    module.push(id, ...unsigned(content.length))
    for (const byte of content) module.push(byte)
  }
  return Uint8Array.from(module)
}

function instruction(opcode: number): number[] {
  return opcode > 0xff ? [opcode >>> 8, ...unsigned(opcode & 0xff)] : [opcode]
}

function typeList(types: readonly ValueType[]): number[] {
  return vectorOf(types.map((type) => [typeCodes[type]]))
}

function vectorOf(items: readonly (readonly number[])[]): number[] {
  const bytes = unsigned(items.length)
  for (const item of items) for (const byte of item) bytes.push(byte)
  return bytes
}

function text(value: string): number[] {
  return [...unsigned(Buffer.byteLength(value)), ...Buffer.from(value)]
}

/** Unsigned LEB128. */
export function unsigned(value: number): number[] {
  const bytes: number[] = []
  let rest = value
  do {
    const low = rest % 128
    rest = Math.floor(rest / 128)
    bytes.push(rest > 0 ? low | 0x80 : low)
  } while (rest > 0)
  return bytes
}

export function signed(value: bigint): number[] {
  const bytes: number[] = []
  let rest = value
  for (;;) {
    const low = Number(rest & 0x7fn)
    rest >>= 7n
    const done = (rest === 0n && (low & 0x40) === 0) || (rest === -1n && (low & 0x40) !== 0)
    bytes.push(done ? low : low | 0x80)
    if (done) return bytes
  }
}
