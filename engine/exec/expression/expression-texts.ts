// Conditions of text columns and constants: LIKE and ILIKE, regular expressions, comparisons and membership. A kernel goes
// over the bytes; what it cannot decide (text that is not ASCII, without case or with _; texts that hold what every match of
// a regular expression holds) goes to the interpreter.

import { patternCharactersMax } from '../../base/limits.js'
import {
  anyByte,
  type TextPattern,
  textAnswers,
  textFlags,
  textOrders,
  textPatternBytes,
  writeTextPattern,
} from '../../kernels/text.js'
import { requiredLiterals } from '../../sql/functions/text/regex-literals.js'
import type { Expression } from '../../sql/plan/plan.js'
import { dataType } from '../../types/column-types.js'
import type { ExecContext } from '../batch/context.js'
import { TextHeap } from '../batch/text-heap.js'
import { writeValue } from '../batch/values.js'
import { batchRowsMax, type Vector } from '../batch/vector.js'
import type { VectorEvaluator } from './expression.js'
import { isText } from './expression-shape.js'
import { interpretLeft, keptText } from './expression-texts-left.js'

type Call = Extract<Expression, { kind: 'call' }>
type Compile = (expression: Expression) => VectorEvaluator
/** Writes one byte per row. */
type Test = (text: Vector, rows: number, out: number) => void

/** undefined: not of that kind. `compile` compiles the text. */
export function compileTextTest(call: Call, context: ExecContext, compile: Compile): VectorEvaluator | undefined {
  const [first, second] = call.args
  if (first === undefined || second === undefined) return undefined
  const turned = first.kind === 'constant' && call.args.length === 2 && mirrored.has(call.name)
  const text = turned ? second : first
  if (!isText(text.type) || text.kind === 'constant') return undefined
  const constants = constantsOf(turned ? [first] : call.args.slice(1))
  if (constants === undefined) return undefined
  const name = turned ? (mirrored.get(call.name) as string) : call.name
  const test = matchTest(call, name, constants, context) ?? compareTest(name, constants, context)
  if (test === undefined) return undefined
  const source = compile(text)
  const address = context.space.take(context.rowsMax ?? batchRowsMax)
  return (batch) => {
    test(source(batch), batch.rows, address)
    return { type: call.type, address, dictionary: 0 }
  }
}

const mirrored: ReadonlyMap<string, string> = new Map([
  ['=', '='],
  ['<>', '<>'],
  ['<', '>'],
  ['>', '<'],
  ['<=', '>='],
  ['>=', '<='],
])

function constantsOf(args: readonly Expression[]): readonly (string | null)[] | undefined {
  const found: (string | null)[] = []
  for (const argument of args) {
    if (argument.kind !== 'constant' || (!isText(argument.type) && argument.type.name !== 'SYMBOL')) return undefined
    if (argument.value !== null && typeof argument.value !== 'string') return undefined
    found.push(argument.value)
  }
  return found
}

// Patterns ----------------------------------------------------------------------------------------------------------

function matchTest(
  call: Call,
  name: string,
  constants: readonly (string | null)[],
  context: ExecContext,
): Test | undefined {
  const pattern = constants.length === 1 ? patternOf(name, constants[0] ?? null) : undefined
  if (pattern === undefined) return undefined
  const { memory, space, kernels } = context
  const address = space.keep(textPatternBytes(pattern))
  writeTextPattern(memory, address, pattern)
  const rough = pattern.rough === true
  const decides = rough || (pattern.flags & (textFlags.ignoreCase | textFlags.wildcards)) !== 0
  const isLeft = (out: number, row: number): boolean =>
    rough ? memory.u8[out + row] !== textAnswers.no : memory.u8[out + row] === textAnswers.undecided
  const decide = decides ? interpretLeft(call, context, new TextHeap(space), isLeft) : undefined
  return (vector, rows, out) => {
    kernels.text.matchTexts(address, vector.address, rows, out)
    decide?.(vector, rows, out)
  }
}

/** `rough`: who does not match it does not match what was asked for; the others may. */
interface AskedPattern extends TextPattern {
  readonly rough?: boolean
}

function patternOf(name: string, value: string | null): AskedPattern | undefined {
  if (value === null) return undefined
  if (name === '~') return regexPattern(value)
  if (name === 'starts_with') {
    const literals = value === '' ? [] : [new Uint8Array(Buffer.from(value))]
    return { literals, flags: value === '' ? 0 : textFlags.anchoredStart }
  }
  return name === 'like' || name === 'ilike' ? likePattern(value, name === 'ilike') : undefined
}

/** What every match holds. */
function regexPattern(value: string): AskedPattern | undefined {
  const required = requiredLiterals(value)
  if (required === undefined) return undefined
  const literals = required.literals.map((text) => new Uint8Array(Buffer.from(text)))
  return { literals, flags: required.ignoreCase ? textFlags.ignoreCase : 0, rough: !required.whole }
}

/** Literals divided by %; undefined when the pattern needs more than that. */
function likePattern(value: string, ignoreCase: boolean): TextPattern | undefined {
  const text = ignoreCase ? value.toLowerCase() : value
  // Without case only ASCII folds byte by byte.
  if (ignoreCase && Buffer.byteLength(text) !== text.length) return undefined
  let flags = ignoreCase ? textFlags.ignoreCase : 0
  const literals: number[][] = [[]]
  for (let at = 0; at < text.length; at++) {
    const literal = literals.at(-1) as number[]
    const escaped = text[at] === '\\' && at + 1 < text.length
    const character = String.fromCodePoint(text.codePointAt(escaped ? ++at : at) as number)
    at += character.length - 1
    if (escaped || !'%_'.includes(character)) literal.push(...Buffer.from(character))
    else if (character === '%') literals.push([])
    else {
      flags |= textFlags.wildcards
      literal.push(anyByte)
    }
  }
  // The interpreter refuses it.
  if ((flags & textFlags.wildcards) !== 0 && text.length >= patternCharactersMax) return undefined
  if ((literals[0] as number[]).length > 0 || literals.length === 1) flags |= textFlags.anchoredStart
  if ((literals.at(-1) as number[]).length > 0 || literals.length === 1) flags |= textFlags.anchoredEnd
  return { literals: literals.filter(({ length }) => length > 0).map((bytes) => Uint8Array.from(bytes)), flags }
}

// Comparisons -------------------------------------------------------------------------------------------------------

const orders: ReadonlyMap<string, number> = new Map([
  ['<', textOrders.less],
  ['>', textOrders.greater],
  ['<=', textOrders.less | textOrders.equal],
  ['>=', textOrders.greater | textOrders.equal],
])
/** They are tried one after the other. */
const membersMax = 64

function compareTest(name: string, constants: readonly (string | null)[], context: ExecContext): Test | undefined {
  const order = orders.get(name)
  if (order !== undefined && constants.length === 1) return orderTest(constants[0] ?? null, order, context)
  const isMembership = name === 'in' || (constants.length === 1 && (name === '=' || name === '<>'))
  if (!isMembership || constants.length > membersMax) return undefined
  const { memory, kernels } = context
  const members = entriesOf(constants, context)
  return (vector, rows, out) => {
    kernels.text.memberTexts(vector.address, rows, members, constants.length, out)
    if (name !== '<>') return
    const { u8 } = memory
    for (let row = out; row < out + rows; row++) u8[row] = u8[row]! ^ 1
  }
}

function entriesOf(values: readonly (string | null)[], { memory, space, symbols }: ExecContext): number {
  const address = space.keep(values.length * 8)
  const target = { memory, heap: new TextHeap(space), symbols }
  values.forEach((value, row) => {
    writeValue(target, dataType('VARCHAR'), address, row, value)
  })
  return address
}

function orderTest(value: string | null, wanted: number, context: ExecContext): Test | undefined {
  if (value === null) return undefined
  const { text } = context.kernels
  const { address, bytes } = keptText(value, context)
  return (vector, rows, out) => text.orderTexts(vector.address, rows, address, bytes, wanted, out)
}
