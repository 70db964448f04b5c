// Translates expressions of a query to the nodes from which WebAssembly code is generated. There are only a few
// operations, values have one of the kinds below instead of an SQL type, and a constant is a position in the kernel's
// parameter memory. The text of a node determines its code, so it is used as the key of caches.
//
// Kinds: i32 (INT, SHORT, BYTE, ids), u32 (IPv4), i64 (LONG and timestamps), f32, f64, mask (BOOLEAN), entry (strings,
// BINARY and arrays, of which generated code reads only the length; a negative one means NULL).

import { nonNull } from '../../base/assert.js'
import { type ColumnType, columnTypes, type DataType } from '../../types/column-types.js'
import type { Value } from '../../types/value.js'
import { type FragmentExpression, unsupported } from './fragment.js'

export type Kind = 'i32' | 'u32' | 'i64' | 'f32' | 'f64' | 'mask' | 'entry'

/** How NULL is represented: never, the minimum integer, -1 (ids), a negative value (lengths), 0 (addresses), NaN. */
export type Missing = 'never' | 'minimum' | 'negative' | 'zero' | 'nan'

export interface Node {
  /** `column`, `constant`, `null`, `true`, `false`, `lookup`, or an operation. */
  readonly operation: string
  readonly kind: Kind
  readonly missing: Missing
  readonly args: readonly Node[]
  /** Column index of `column` and `lookup`; slot of `constant`. */
  readonly index: number
  /** Slot of `lookup`'s table, else 0. */
  readonly slot: number
  readonly type: ColumnType
  readonly text: string
}

/** The constants and lookup tables that a fragment needs at run time. */
export interface Parameters {
  readonly columns: readonly DataType[]
  /** 16 bytes each, with the value in every lane. */
  readonly constants: Uint8Array[]
  /** Slots of `constants` by their bytes. */
  readonly slots: Map<string, number>
  /** The caller's numbers of predicate lookup tables. */
  readonly lookups: number[]
  /** Number of nodes lowered so far. */
  parts?: number
}

/** Maximum number of nodes of a fragment. Larger ones compile too slowly and need too many local variables. */
export const fragmentPartsMax = 3_000
/** Maximum length of a node's text, which grows exponentially with nesting if operations repeat their operands. */
const textMax = 100_000

const kinds: Partial<Record<ColumnType, readonly [Kind, Missing]>> = {
  BOOLEAN: ['mask', 'never'],
  BYTE: ['i32', 'never'],
  SHORT: ['i32', 'never'],
  INT: ['i32', 'minimum'],
  SYMBOL: ['i32', 'negative'],
  IPv4: ['u32', 'zero'],
  LONG: ['i64', 'minimum'],
  DATE: ['i64', 'minimum'],
  TIMESTAMP: ['i64', 'minimum'],
  TIMESTAMP_NS: ['i64', 'minimum'],
  FLOAT: ['f32', 'nan'],
  DOUBLE: ['f64', 'nan'],
  STRING: ['entry', 'negative'],
  VARCHAR: ['entry', 'negative'],
  BINARY: ['entry', 'negative'],
  ARRAY: ['entry', 'negative'],
}

function kindOf(type: DataType): readonly [Kind, Missing] {
  return kinds[type.name] ?? unsupported(`type ${type.name}`)
}

const noBytes = new Uint8Array(0)

function node(operation: string, type: ColumnType, args: readonly Node[], missing?: Missing): Node {
  const [kind, usual] = kinds[type] ?? unsupported(`type ${type}`)
  if (args.reduce((sum, arg) => sum + arg.text.length, 0) > textMax) return unsupported('a large expression')
  const text = `${operation}:${type}(${args.map((arg) => arg.text).join()})`
  return { operation, kind, missing: missing ?? usual, args, index: 0, slot: 0, type, text }
}

function literal(value: boolean): Node {
  return node(value ? 'true' : 'false', 'BOOLEAN', [])
}

/** Lowers an expression; throws Unsupported. */
export function lower(expression: FragmentExpression, parameters: Parameters): Node {
  parameters.parts = (parameters.parts ?? 0) + 1
  if (parameters.parts > fragmentPartsMax) return unsupported('a large expression')
  switch (expression.kind) {
    case 'column':
      return columnNode(expression.index, parameters)
    case 'constant':
      return constantNode(expression.value, expression.type, parameters)
    case 'lookup':
      return lookupNode(expression.column, expression.table, parameters)
    case 'call':
      return lowerCall(expression.name, expression.args, expression.type, parameters)
    case 'subquery':
      return unsupported('sub-query')
  }
}

function columnNode(index: number, { columns }: Parameters): Node {
  const type = columns[index]
  if (type === undefined) return unsupported(`column ${index}`)
  const [kind, missing] = kindOf(type)
  return { operation: 'column', kind, missing, args: [], index, slot: 0, type: type.name, text: `c${index}` }
}

function lookupNode(column: number, table: number, parameters: Parameters): Node {
  const known = parameters.lookups.indexOf(table)
  const slot = known >= 0 ? known : parameters.lookups.push(table) - 1
  const symbol = columnNode(column, parameters)
  if (symbol.type !== 'SYMBOL') unsupported('a lookup of something else than a symbol')
  return { ...node('lookup', 'BOOLEAN', [symbol]), index: column, slot, text: `l${slot}(${symbol.text})` }
}

/** Equal constants share a slot, so that equal expressions have equal texts. */
function constantNode(value: Value, type: DataType, { constants, slots }: Parameters): Node {
  const [kind, missing] = kindOf(type)
  if (kind === 'mask') return literal(value === true)
  if (kind === 'entry' && value !== null) return unsupported('text')
  const bytes = value === null ? noBytes : splat(value, kind)
  if (bytes.length === 0 || isNull(value, missing)) return node('null', type.name, [])
  const key = Buffer.from(bytes.buffer).toString('latin1')
  const index = slots.get(key) ?? constants.push(bytes) - 1
  slots.set(key, index)
  const text = `k${index}:${kind}`
  return { operation: 'constant', kind, missing: 'never', args: [], index, slot: 0, type: type.name, text }
}

function isNull(value: Value, missing: Missing): boolean {
  if (missing === 'nan') return Number.isNaN(value)
  return (missing === 'negative' && Number(value) < 0) || (missing === 'zero' && Number(value) === 0)
}

function splat(value: Value, kind: Kind): Uint8Array {
  if (typeof value !== 'number' && typeof value !== 'bigint') return unsupported(`a constant of ${typeof value}`)
  switch (kind) {
    case 'i64': {
      const word = BigInt.asIntN(64, BigInt(value))
      return new Uint8Array(BigInt64Array.of(word, word).buffer)
    }
    case 'f64':
      return new Uint8Array(Float64Array.of(Number(value), Number(value)).buffer)
    case 'f32':
      return new Uint8Array(new Float32Array(4).fill(Number(value)).buffer)
    default:
      return new Uint8Array(new Int32Array(4).fill(Number(value)).buffer)
  }
}

// Calls -------------------------------------------------------------------------------------------------------------

type Args = readonly FragmentExpression[]

const comparisons: ReadonlySet<string> = new Set(['=', '<>', '<', '>', '<=', '>='])
const membersMax = 16

function lowerCall(name: string, args: Args, type: DataType, parameters: Parameters): Node {
  if (name === 'between') return lowerBetween(args, parameters)
  if ((name === 'in' || name === 'in_values') && args.length > membersMax + 1) return unsupported('a long list')
  const nodes = args.map((arg) => lower(arg, parameters))
  if (comparisons.has(name)) return compare(name, nodes)
  switch (name) {
    case 'and':
    case 'or':
      return nodes.reduce((left, right) => logic(name, left, right))
    case 'not':
      return node('not', 'BOOLEAN', nodes)
    case 'in':
    case 'in_values':
      return lowerIn(nodes)
    case 'in_ranges':
      return lowerRanges(nodes)
    case 'cast':
      return castNode(nodes, type.name)
    case 'case':
      return lowerCase(nodes, type.name)
    case 'coalesce':
      return lowerCoalesce(nodes, type.name)
    case 'nullif':
      return lowerNullif(nodes, type.name)
    case 'ceiling':
      return arithmetic('ceil', nodes, type.name)
    case 'round':
    case 'trunc':
      return lowerRounded(name, nodes, type, parameters)
    default:
      return arithmetic(name, nodes, type.name)
  }
}

function logic(name: 'and' | 'or', left: Node, right: Node): Node {
  const absorbing = name === 'and' ? 'false' : 'true'
  const neutral = name === 'and' ? 'true' : 'false'
  if (left.operation === neutral || right.operation === absorbing) return right
  if (right.operation === neutral || left.operation === absorbing) return left
  return node(name, 'BOOLEAN', [left, right])
}

/** Comparisons with NULL become tests for NULL; `>` and `>=` swap operands if that reduces the number of operations. */
function compare(name: string, [left, right]: readonly Node[]): Node {
  if (left === undefined || right === undefined) return unsupported('a comparison of one side')
  if (left.kind !== right.kind || isText(left) !== isText(right)) return unsupported('a comparison of two kinds')
  if (right.operation === 'null') return compareNull(name, left)
  if (left.operation === 'null') return compareNull(name, right)
  if (left.kind === 'entry') return unsupported('text')
  const equality = name === '=' || name === '<>'
  if (left.type === 'SYMBOL' && !equality) return unsupported('order of symbols')
  if (left.type === 'SYMBOL' && left.operation === 'column' && right.operation === 'column')
    return unsupported('symbols of two dictionaries')
  if (left.kind === 'mask' && !equality) return unsupported('order of conditions')
  return node(name, 'BOOLEAN', [left, right])
}

function isText({ type }: Node): boolean {
  return type === 'SYMBOL'
}

function compareNull(name: string, side: Node): Node {
  if (name === '<' || name === '>') return literal(false)
  const isMissing = side.operation === 'null' ? literal(true) : node('missing', 'BOOLEAN', [side])
  return name === '<>' ? node('not', 'BOOLEAN', [isMissing]) : isMissing
}

/** Bounds of timestamps may be in either order; two constant ones are sorted here. */
function lowerBetween(args: Args, parameters: Parameters): Node {
  const [value, a, b] = args
  if (value === undefined || a === undefined || b === undefined) return unsupported('between')
  const subject = lower(value, parameters)
  const isOfTimes = times.includes(subject.type)
  const swap = isOfTimes && a.kind === 'constant' && b.kind === 'constant' && isLess(b.value, a.value)
  const [low, high] = (swap ? [b, a] : [a, b]).map((bound) => lower(bound, parameters)) as [Node, Node]
  if (low.operation === 'null' || high.operation === 'null') return literal(false)
  if (subject.kind !== low.kind || low.kind !== high.kind || subject.kind === 'mask') return unsupported('between')
  if (subject.type === 'SYMBOL' || subject.kind === 'entry') return unsupported('order of text')
  if (low.operation === 'constant' && high.operation === 'constant') return within(subject, low, high)
  const ordered = [within(subject, low, high)]
  if (isOfTimes) ordered.push(within(subject, high, low))
  const bounds = [low, high].map((bound) => node('not', 'BOOLEAN', [node('missing', 'BOOLEAN', [bound])]))
  return [ordered.reduce((left, right) => node('or', 'BOOLEAN', [left, right])), ...bounds].reduce((left, right) =>
    node('and', 'BOOLEAN', [left, right]),
  )
}

function isLess(left: Value, right: Value): boolean {
  return left !== null && right !== null && left < right
}

/**
 * low <= subject <= high. NULL is outside, because it is below bounds that are not NULL. `below` is a plain `<` of the
 * values, one instruction, while `<=` of integers takes three.
 */
function within(subject: Node, low: Node, high: Node): Node {
  if (subject.kind !== 'f32' && subject.kind !== 'f64') {
    const outside = [node('below', 'BOOLEAN', [subject, low]), node('below', 'BOOLEAN', [high, subject])]
    return node('not', 'BOOLEAN', [node('or', 'BOOLEAN', outside)])
  }
  return node('and', 'BOOLEAN', [node('>=', 'BOOLEAN', [subject, low]), node('<=', 'BOOLEAN', [subject, high])])
}

function lowerIn([subject, ...members]: readonly Node[]): Node {
  if (subject === undefined) return unsupported('no subject')
  return members.map((member) => compare('=', [subject, member])).reduce((a, b) => logic('or', a, b), literal(false))
}

function lowerRanges([subject, ...bounds]: readonly Node[]): Node {
  if (subject === undefined || bounds.length > membersMax) return unsupported('many ranges')
  let result = literal(false)
  for (let index = 0; index + 1 < bounds.length; index += 2)
    result = logic('or', result, within(subject, nonNull(bounds[index]), nonNull(bounds[index + 1])))
  return result
}

function lowerCase(nodes: readonly Node[], type: ColumnType): Node {
  let result = nodes.length % 2 === 1 ? nonNull(nodes.at(-1)) : emptyOf(type)
  const branches = nodes.length - (nodes.length % 2)
  for (let index = branches - 2; index >= 0; index -= 2) {
    const [condition, value] = [nonNull(nodes[index]), nonNull(nodes[index + 1])]
    result = choose(condition, value, result, type)
  }
  return result
}

/** The result of `nullOf`: false for BOOLEAN. Types without NULL and without a node for 0 are not supported. */
function emptyOf(type: ColumnType): Node {
  if (type === 'BOOLEAN') return literal(false)
  if (!columnTypes[type].nullable) return unsupported(`NULL of ${type}`)
  return node('null', type, [])
}

function lowerCoalesce(nodes: readonly Node[], type: ColumnType): Node {
  return nodes.reduceRight((rest, value) =>
    value.missing === 'never' ? value : choose(node('missing', 'BOOLEAN', [value]), rest, value, type),
  )
}

function lowerNullif(nodes: readonly Node[], type: ColumnType): Node {
  const [value] = nodes
  if (value === undefined || nodes.length !== 2 || nodes.some((part) => part.type !== type))
    return unsupported('nullif')
  return choose(compare('=', nodes), emptyOf(type), value, type)
}

function choose(condition: Node, value: Node, otherwise: Node, type: ColumnType): Node {
  const [kind] = kinds[type] ?? unsupported(`type ${type}`)
  if (condition.kind !== 'mask' || kind === 'entry' || kind === 'u32') return unsupported('choice')
  if (value.kind !== kind || otherwise.kind !== kind || type === 'SYMBOL') return unsupported('choice of two kinds')
  const missing = value.missing === 'never' && otherwise.missing === 'never' ? 'never' : undefined
  return node('choose', type, [condition, value, otherwise], missing)
}

const binary: ReadonlySet<string> = new Set(['+', '-', '*', '/', '%', '&', '|', '^'])
const unary: ReadonlySet<string> = new Set(['negate', 'abs', 'sqrt', 'ceil', 'floor', '~'])
/** Operations on floating-point values only. */
const real: ReadonlySet<string> = new Set(['sqrt', 'ceil', 'floor'])

function arithmetic(name: string, nodes: readonly Node[], type: ColumnType): Node {
  const [kind] = kinds[type] ?? unsupported(`type ${type}`)
  const arity = binary.has(name) ? 2 : unary.has(name) ? 1 : unsupported(name)
  if (nodes.length !== arity || !nodes.every((arg) => arg.kind === kind)) return unsupported(`${name} of those types`)
  if (kind === 'mask' || kind === 'u32' || kind === 'entry' || type === 'SYMBOL')
    return unsupported(`${name} of ${type}`)
  const floating = kind === 'f32' || kind === 'f64'
  if (floating ? '%&|^~'.includes(name) : real.has(name)) return unsupported(`${name} of ${type}`)
  // The results would have to be truncated to their width.
  if (type === 'BYTE' || type === 'SHORT') return unsupported(`${name} of ${type}`)
  if (nodes.some(({ operation }) => operation === 'null')) return node('null', type, [])
  return node(name, type, nodes)
}

/** Rounds to integers like Math.round (halves upwards) and Math.trunc, except for negative zero. */
function lowerRounded(name: 'round' | 'trunc', nodes: readonly Node[], type: DataType, parameters: Parameters): Node {
  const [x] = nodes
  if (x === undefined || nodes.length > 1 || type.name !== 'DOUBLE') return unsupported(`${name} to places`)
  const constant = (value: number): Node => constantNode(value, type, parameters)
  const above = arithmetic('ceil', nodes, type.name)
  const below =
    name === 'trunc' ? arithmetic('floor', nodes, type.name) : arithmetic('-', [above, constant(1)], type.name)
  const isBelow =
    name === 'trunc'
      ? compare('>', [x, constant(0)])
      : compare('>', [arithmetic('-', [above, constant(0.5)], type.name), x])
  return arithmetic('+', [choose(isBelow, below, above, type.name), constant(0)], type.name)
}

const castable: ReadonlySet<ColumnType> = new Set<ColumnType>([
  'BOOLEAN',
  'BYTE',
  'SHORT',
  'INT',
  'LONG',
  'DATE',
  'TIMESTAMP',
  'TIMESTAMP_NS',
  'FLOAT',
  'DOUBLE',
])
const times: readonly ColumnType[] = ['DATE', 'TIMESTAMP', 'TIMESTAMP_NS']

/** Casts are operations named by source and target kind; those between units of time multiply or divide. */
function castNode([source]: readonly Node[], to: ColumnType): Node {
  if (source === undefined || !castable.has(source.type) || !castable.has(to)) return unsupported('cast')
  const from = source.type
  if (from === to) return source
  if (times.includes(from) && times.includes(to)) return unsupported('cast between units of time')
  const small = to === 'BYTE' || to === 'SHORT'
  if (small && source.kind !== 'i32' && source.kind !== 'i64' && source.kind !== 'mask') return unsupported('cast')
  const [kind, missing] = kinds[to] ?? unsupported(`type ${to}`)
  const whole = source.kind === 'i32' || source.kind === 'i64' || source.kind === 'mask'
  const widens = kind !== 'i32' || source.kind !== 'i64'
  const stays = whole && widens && source.missing === 'never'
  return { ...node('cast', to, [source], stays ? 'never' : missing), text: `cast:${to}(${source.text}:${from})` }
}
