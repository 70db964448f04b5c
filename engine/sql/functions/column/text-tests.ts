// Vectorised string conditions: LIKE and ILIKE, regular expressions, prefixes, comparisons with constants. A
// WebAssembly kernel scans the bytes. Strings for which it cannot decide are evaluated by `eval`, the row-by-row
// implementation: non-ASCII strings where case or `_` matters, and strings that contain the literals required by a
// regular expression (regex-literals.ts) and so may match it.

import { patternCharactersMax } from '../../../base/limits.js'
import {
  anyByte,
  type TextPattern,
  textFlags,
  textOrders,
  textPatternBytes,
  textResults,
  writeTextPattern,
} from '../../../kernels/text.js'
import { dataType } from '../../../types/column-types.js'
import type { Expression } from '../../plan/plan.js'
import {
  type Call,
  type ColumnContext,
  type ColumnFunction,
  type ColumnPlan,
  constantBytes,
  isText,
  isTextVector,
} from './column-function.js'
import { requiredLiterals } from './regex-literals.js'

// Patterns ----------------------------------------------------------------------------------------------------------

/**
 * `rough`: the kernel's pattern is only a filter. A string that fails it does not match; one that passes needs `eval`.
 */
interface SearchedPattern extends TextPattern {
  readonly rough?: boolean
}

export const likeColumn = patternColumn((value) => likePattern(value, false))
export const ilikeColumn = patternColumn((value) => likePattern(value, true))
export const regexColumn = patternColumn(regexPattern)
export const startsWithColumn = patternColumn((value) =>
  value === ''
    ? { literals: [], flags: 0 }
    : { literals: [new Uint8Array(Buffer.from(value))], flags: textFlags.anchoredStart },
)

function patternColumn(patternOf: (value: string) => SearchedPattern | undefined): ColumnFunction {
  return ({ args: [text, requested] }, { memory, kernels, allocate }) => {
    const value = constantText(requested)
    const pattern = typeof value === 'string' ? patternOf(value) : undefined
    if (!isTextVector(text) || pattern === undefined) return undefined
    const address = allocate(textPatternBytes(pattern))
    writeTextPattern(memory, address, pattern)
    const rough = pattern.rough === true
    const leaves = rough || (pattern.flags & (textFlags.ignoreCase | textFlags.wildcards)) !== 0
    return {
      args: [text],
      run: (rows, [strings = 0], out) => {
        kernels.text.matchStrings(address, strings, rows, out)
        return leaves ? rows : 0
      },
      isLeft: (out, row) =>
        rough ? memory.u8[out + row] !== textResults.no : memory.u8[out + row] === textResults.undecided,
    }
  }
}

/** The literals that every match contains. */
function regexPattern(value: string): SearchedPattern | undefined {
  const required = requiredLiterals(value)
  if (required === undefined) return undefined
  const literals = required.literals.map((text) => new Uint8Array(Buffer.from(text)))
  return { literals, flags: required.ignoreCase ? textFlags.ignoreCase : 0, rough: !required.whole }
}

/** Literals separated by %; undefined if the pattern needs more than that. */
function likePattern(value: string, ignoreCase: boolean): TextPattern | undefined {
  const text = ignoreCase ? value.toLowerCase() : value
  // Without case sensitivity only ASCII folds byte by byte.
  if (ignoreCase && Buffer.byteLength(text) !== text.length) return undefined
  let flags = ignoreCase ? textFlags.ignoreCase : 0
  let literal: number[] = []
  const literals = [literal]
  for (let at = 0; at < text.length; at++) {
    const escaped = text[at] === '\\' && at + 1 < text.length
    const character = String.fromCodePoint(text.codePointAt(escaped ? ++at : at) ?? 0)
    at += character.length - 1
    if (escaped || !'%_'.includes(character)) literal.push(...Buffer.from(character))
    else if (character === '%') {
      literal = []
      literals.push(literal)
    } else {
      flags |= textFlags.wildcards
      literal.push(anyByte)
    }
  }
  // `eval` reports the error.
  if ((flags & textFlags.wildcards) !== 0 && text.length >= patternCharactersMax) return undefined
  if (literals.length === 1 || literals[0]?.length !== 0) flags |= textFlags.anchoredStart
  if (literals.length === 1 || literal.length > 0) flags |= textFlags.anchoredEnd
  return { literals: literals.filter(({ length }) => length > 0).map((bytes) => Uint8Array.from(bytes)), flags }
}

// Comparisons -------------------------------------------------------------------------------------------------------

/** Up to this number, members are compared one by one. */
const membersMax = 64

const orders: Readonly<Record<string, number>> = {
  '<': textOrders.less,
  '>': textOrders.greater,
  '<=': textOrders.less | textOrders.equal,
  '>=': textOrders.greater | textOrders.equal,
}
const mirrored: Readonly<Record<string, string>> = { '<': '>', '>': '<', '<=': '>=', '>=': '<=' }

/** A comparison of strings with a constant on either side. */
export function compareStrings({ name, args: [left, right] }: Call, context: ColumnContext): ColumnPlan | undefined {
  const [text, constant] = left?.kind === 'constant' ? [right, left] : [left, right]
  const value = constantText(constant)
  if (!isTextVector(text) || value === undefined) return undefined
  if (name === '=' || name === '<>') return amongStrings(text, [value], name === '<>', context)
  const order = orders[text === left ? name : (mirrored[name] ?? name)]
  if (value === null || order === undefined) return undefined
  const { address, bytes } = constantBytes(value, context)
  return {
    args: [text],
    run: (rows, [strings = 0], out) => {
      context.kernels.text.orderStrings(strings, rows, address, bytes, order, out)
      return 0
    },
  }
}

/** `text in (constants)`; undefined if there are too many to compare one by one. */
export function textMembers({ args: [text, ...members] }: Call, context: ColumnContext): ColumnPlan | undefined {
  const values: (string | null)[] = []
  for (const member of members) {
    const value = constantText(member)
    if (value === undefined) return undefined
    values.push(value)
  }
  if (!isTextVector(text) || values.length > membersMax) return undefined
  return amongStrings(text, values, false, context)
}

function amongStrings(
  text: Expression,
  values: readonly (string | null)[],
  isOpposite: boolean,
  { memory, kernels, vector }: ColumnContext,
): ColumnPlan {
  const members = vector(dataType('VARCHAR'), values)
  return {
    args: [text],
    run: (rows, [strings = 0], out) => {
      kernels.text.memberStrings(strings, rows, members, values.length, out)
      if (isOpposite) {
        const { u8 } = memory
        for (let row = out; row < out + rows; row++) u8[row] = u8[row]! ^ 1
      }
      return 0
    },
  }
}

/** The value of a constant string; undefined for any other argument. */
function constantText(argument: Expression | undefined): string | null | undefined {
  if (argument?.kind !== 'constant' || (!isText(argument.type) && argument.type.name !== 'SYMBOL')) return undefined
  return argument.value === null || typeof argument.value === 'string' ? argument.value : undefined
}
