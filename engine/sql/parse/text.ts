// Formats an expression as normalised text. Result columns without an alias are named by it, so the format is a
// contract with clients: one blank around operators, none inside parentheses, `-(a)`, `a::int`, `a in (1, 2)`,
// `count()`. Some forms are written as calls: `a || b` as `concat(a, b)`, a CASE over constants as `switch(..)`.
// Operands of infix operators have parentheses only where precedence requires them: `(a + b) * c`, but `a + b + c` for
// `(a + b) + c`.

import type { CaseExpression, CastExpression, Expression, Slice, TypeName } from '../ast/ast.js'
import { powers } from './powers.js'

export function expressionText(expression: Expression): string {
  switch (expression.kind) {
    case 'column':
      return expression.path.join('.')
    case 'star':
      return expression.table === null ? '*' : `${expression.table}.*`
    case 'null':
      return expression.text ?? 'null'
    case 'boolean':
      return expression.text ?? String(expression.value)
    case 'integer':
    case 'float':
    case 'decimal':
    case 'hex':
    case 'interval':
    case 'geohash':
      return expression.text
    case 'string':
      return quote(expression.value)
    case 'parameter':
      return expression.name === null ? `$${expression.index}` : `:${expression.name}`
    case 'variable':
      return `@${expression.name}`
    case 'subquery':
      return '(query)'
    case 'exists':
      return 'exists(query)'
    default:
      return compositeText(expression)
  }
}

type Simple =
  | 'column'
  | 'star'
  | 'null'
  | 'boolean'
  | 'integer'
  | 'float'
  | 'decimal'
  | 'hex'
  | 'interval'
  | 'geohash'
  | 'string'
  | 'parameter'
  | 'variable'
  | 'subquery'
  | 'exists'

function compositeText(expression: Exclude<Expression, { kind: Simple }>): string {
  switch (expression.kind) {
    case 'unary':
      return `${expression.operator}(${expressionText(expression.operand)})`
    case 'binary':
      return binaryText(expression)
    case 'in':
      return negate(expression.negated, inText(expression))
    case 'between':
      return negate(
        expression.negated,
        `${expressionText(expression.operand)} between (${listText([expression.low, expression.high])})`,
      )
    case 'is null':
      return `${expressionText(expression.operand)} ${expression.negated ? '!=' : '='} null`
    case 'quantified':
      return `${expressionText(expression.left)} ${expression.operator} ${expression.quantifier}(${expressionText(expression.right)})`
    case 'case':
      return caseText(expression)
    case 'cast':
      return jsonCastText(expression) ?? `${castOperand(expression.operand)}::${typeText(expression.type)}`
    case 'call':
      return callText(expression)
    case 'array':
      return expression.elements.length === 0 ? 'ARRAY' : `ARRAY[${listText(expression.elements)}]`
    case 'subscript':
      return subscriptText(expressionText(expression.operand), expression.indexes.map(indexText))
    case 'field':
      return expression.name
    case 'list':
      return `(${listText(expression.elements)})`
  }
}

/** Several indexes are written as arguments of a function. */
function subscriptText(operand: string, indexes: readonly string[]): string {
  return indexes.length === 1 ? `${operand}[${indexes[0]}]` : `[](${[operand, ...indexes].join(', ')})`
}

function quote(value: string): string {
  return `'${value.replaceAll("'", "''")}'`
}

function listText(expressions: readonly Expression[]): string {
  return expressions.map(expressionText).join(', ')
}

function negate(negated: boolean, text: string): string {
  return negated ? `not(${text})` : text
}

/** Replaces `<>` in a tree whose statement is to be shown with `<>` instead of `!=`. */
export const writtenUnequal = 'written unequal'

function shownOperator(operator: string): string {
  return operator === '<>' ? '!=' : operator === writtenUnequal ? '<>' : operator
}

/** Operator chains are left-deep; a loop instead of recursion keeps long ones off the stack. */
type Binary = Extract<Expression, { kind: 'binary' }>

function binaryText(expression: Binary): string {
  if (expression.operator === '||') return `concat(${concatenated(expression)})`
  if (!isInfixText(expression)) return negatedText(expression)
  const parts: string[] = []
  let outer: Binary = expression
  for (;;) {
    parts.push(`${shownOperator(outer.operator)} ${rightText(outer)}`)
    const { left } = outer
    if (isInfixText(left) && powerOf(left) >= powerOf(outer)) outer = left
    else {
      parts.push(isInfixText(left) ? `(${expressionText(left)})` : expressionText(left))
      return parts.reverse().join(' ')
    }
  }
}

/** Whether the operator is written between its operands; others are written as calls. */
function isInfixText(expression: Expression): expression is Binary {
  return expression.kind === 'binary' && expression.operator !== '||' && !expression.operator.startsWith('not ')
}

function powerOf({ operator }: Binary): number {
  return powers.get(operator) ?? 0
}

/**
 * The right operand, in parentheses if precedence requires them. A chain of AND or OR has none, however it is nested.
 */
function rightText({ operator, right }: Binary & { readonly right: Expression }): string {
  const text = expressionText(right)
  if (!isInfixText(right)) return text
  const [outer, inner] = [powers.get(operator) ?? 0, powerOf(right)]
  const isChain = right.operator === operator && (operator === 'and' || operator === 'or')
  return inner > outer || isChain ? text : `(${text})`
}

function negatedText(expression: Extract<Expression, { kind: 'binary' }>): string {
  return `not(${expressionText(expression.left)} ${expression.operator.slice(4)} ${expressionText(expression.right)})`
}

function concatenated(expression: Expression): string {
  const parts: string[] = []
  let left = expression
  while (left.kind === 'binary' && left.operator === '||') {
    parts.push(expressionText(left.right))
    left = left.left
  }
  parts.push(expressionText(left))
  return parts.reverse().join(', ')
}

function inText(expression: Extract<Expression, { kind: 'in' }>): string {
  const operand = expressionText(expression.operand)
  if ('kind' in expression.set) return `${operand} in (query)`
  const [only] = expression.set
  if (only !== undefined && expression.set.length === 1) return `${operand} in ${expressionText(only)}`
  return `${operand} in (${listText(expression.set)})`
}

const distinctNames: Readonly<Record<string, string>> = {
  count: 'count_distinct',
  string_agg: 'string_distinct_agg',
  sum: 'sum_distinct',
  avg: 'avg_distinct',
}

/** OVER, FILTER and ORDER BY are not part of the name. */
function callText(call: Extract<Expression, { kind: 'call' }>): string {
  const [first] = call.args
  const schema = call.schema === null ? '' : `${call.schema}.`
  if (call.args.length === 1 && first?.kind === 'star') return `${schema}${call.name}()`
  const name = (call.distinct ? distinctNames[call.name.toLowerCase()] : undefined) ?? schema + call.name
  if (first?.kind === 'string' && first.word === true)
    return `${name}(${[first.value, ...call.args.slice(1).map(expressionText)].join(', ')})`
  return `${name}(${listText(call.args)})`
}

function caseText(expression: CaseExpression): string {
  const { operand, branches, otherwise } = expression
  const switched = switchText(expression)
  if (switched !== null) return switched
  const parts = operand === null ? ['case'] : ['case', expressionText(operand)]
  for (const branch of branches) parts.push('when', expressionText(branch.when), 'then', expressionText(branch.result))
  if (otherwise !== null) parts.push('else', expressionText(otherwise))
  return [...parts, 'end'].join(' ')
}

/** A CASE that compares one value with constants is written as a call of switch(); null for any other CASE. */
export function switchText({ operand, branches, otherwise }: CaseExpression): string | null {
  const parts: string[] = []
  let value = operand === null ? null : expressionText(operand)
  for (const { when, result } of branches) {
    const pair = operand === null ? equality(when) : ([value ?? '', expressionText(when)] as const)
    if (pair === null || (value !== null && pair[0] !== value)) return null
    value = pair[0]
    parts.push(pair[1], expressionText(result))
  }
  if (value === null) return null
  if (otherwise !== null) parts.push(expressionText(otherwise))
  else if (operand === null) parts.push('null')
  return `switch(${[value, ...parts].join(', ')})`
}

/** For `a = 1`, `1 = a` or `a is null` of a column: the column and the constant. */
function equality(when: Expression): readonly [string, string] | null {
  if (when.kind === 'is null') return compared(when.operand, when.negated ? null : 'null')
  if (when.kind !== 'binary' || when.operator !== '=') return null
  const { left, right } = when
  return isLiteral(right)
    ? compared(left, expressionText(right))
    : isLiteral(left)
      ? compared(right, expressionText(left))
      : null
}

function compared(value: Expression, literal: string | null): readonly [string, string] | null {
  return value.kind === 'column' && literal !== null ? [expressionText(value), literal] : null
}

function isLiteral({ kind }: Expression): boolean {
  return (
    kind === 'string' ||
    kind === 'integer' ||
    kind === 'float' ||
    kind === 'boolean' ||
    kind === 'decimal' ||
    kind === 'null'
  )
}

/** Type numbers in json_extract()'s third argument; 0 for its default. */
const jsonTypes: Readonly<Record<string, number>> = {
  boolean: 1,
  short: 3,
  int: 5,
  long: 6,
  date: 7,
  timestamp: 8,
  float: 10,
  double: 10,
  varchar: 0,
  timestamp_ns: 262_152,
}

/** A cast of json_extract() is written as its third argument. */
function jsonCastText({ operand, type }: CastExpression): string | null {
  if (operand.kind !== 'call' || operand.name.toLowerCase() !== 'json_extract' || operand.args.length !== 2) return null
  const number = jsonTypes[type.text.toLowerCase()]
  if (number === undefined || type.dimensions > 0) return null
  return `${operand.name}(${listText(operand.args)}${number === 0 ? '' : `, ${number}`})`
}

const compound: ReadonlySet<Expression['kind']> = new Set(['unary', 'binary', 'is null', 'in', 'between', 'case'])

function castOperand(operand: Expression): string {
  const text = expressionText(operand)
  return compound.has(operand.kind) ? `(${text})` : text
}

/** Names of PostgreSQL that are shown as those of the native dialect. */
const typeNames: Readonly<Record<string, string>> = {
  int2: 'SHORT',
  int4: 'INT',
  int8: 'LONG',
  float4: 'FLOAT',
  float8: 'DOUBLE',
}

function typeText({ text, parameters, unit, dimensions }: TypeName): string {
  const suffix = unit === null ? parameters.map((parameter) => `_${parameter}`).join('') : `${parameters[0]}${unit}`
  return (typeNames[text.toLowerCase()] ?? text) + suffix + '[]'.repeat(dimensions)
}

function indexText(index: Expression | Slice): string {
  if (index.kind !== 'slice') return expressionText(index)
  const bound = (expression: Expression | null) => (expression === null ? '' : expressionText(expression))
  if (index.low !== null && index.high === null) return `:(${bound(index.low)})`
  const mark = index.low === null ? ':' : ' : '
  return `${bound(index.low)}${mark}${bound(index.high)}`
}
