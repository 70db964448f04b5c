// json_extract() and the JSON scanner behind all JSON functions: finds a value by its path, `$.trades[0].price` or
// `.trades[0].price`, in one pass over the text. Only values on the path are parsed, and numbers keep all their digits
// because values are returned as text.

import type { Value } from '../../../types/value.js'
import type { ScalarFunction } from '../function-types.js'

export type Step = string | number

/** The steps of a path; null if it is not valid. */
function parsePath(path: string): Step[] | null {
  const steps: Step[] = []
  const pattern = /\.([^.[\]]+)|\[(\d+)\]|\["([^"]*)"\]/gy
  pattern.lastIndex = path.startsWith('$') ? 1 : 0
  const start = path[pattern.lastIndex] ?? ''
  const text = start === '' || start === '.' || start === '[' ? path : `.${path}`
  while (pattern.lastIndex < text.length) {
    const match = pattern.exec(text)
    if (match === null) return null
    const [, name, index, quoted] = match
    steps.push(index === undefined ? (name ?? quoted ?? '') : Number(index))
  }
  return steps
}

interface Scanner {
  readonly text: string
  at: number
}

const depthMax = 512

/** Bounds of the value at the path; null if there is none, or the text up to it is not JSON. */
function find(scanner: Scanner, steps: readonly Step[]): readonly [number, number] | null {
  for (const step of steps) {
    skipBlanks(scanner)
    if (typeof step === 'number' ? !enterElement(scanner, step) : !enterMember(scanner, step)) return null
  }
  skipBlanks(scanner)
  const start = scanner.at
  return skipValue(scanner, 0) ? [start, scanner.at] : null
}

function skipBlanks(scanner: Scanner): void {
  while (/\s/.test(scanner.text[scanner.at] ?? '')) scanner.at++
}

function take(scanner: Scanner, character: string): boolean {
  skipBlanks(scanner)
  if (scanner.text[scanner.at] !== character) return false
  scanner.at++
  return true
}

/** Number of elements of the array at the scanner; -1 if there is none or it is not closed. */
function elementsAt({ text, at }: Scanner): number {
  const scanner: Scanner = { text, at }
  if (!take(scanner, '[')) return -1
  if (take(scanner, ']')) return 0
  for (let count = 1; skipValue(scanner, 1); count++) if (!take(scanner, ',')) return take(scanner, ']') ? count : -1
  return -1
}

/** Moves to an element. A negative index counts from the end. */
function enterElement(scanner: Scanner, wanted: number): boolean {
  const index = wanted < 0 ? wanted + elementsAt(scanner) : wanted
  if (index < 0 || !take(scanner, '[')) return false
  skipBlanks(scanner)
  if (scanner.text[scanner.at] === ']') return false
  for (let element = 0; element < index; element++) if (!skipValue(scanner, 0) || !take(scanner, ',')) return false
  return true
}

function enterMember(scanner: Scanner, name: string): boolean {
  if (!take(scanner, '{')) return false
  for (;;) {
    skipBlanks(scanner)
    const key = readString(scanner)
    if (key === null || !take(scanner, ':')) return false
    if (key === name) return true
    if (!skipValue(scanner, 0) || !take(scanner, ',')) return false
  }
}

const stringPattern = /"(?:[^"\\]|\\.)*"/y
const scalarPattern = /-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y

function readString(scanner: Scanner): string | null {
  const raw = match(scanner, stringPattern)
  if (raw === null) return null
  try {
    return JSON.parse(raw) as string
  } catch (thrown) {
    if (thrown instanceof SyntaxError) return null
    throw thrown
  }
}

function match(scanner: Scanner, pattern: RegExp): string | null {
  pattern.lastIndex = scanner.at
  const found = pattern.exec(scanner.text)
  if (found === null) return null
  scanner.at = pattern.lastIndex
  return found[0]
}

function skipValue(scanner: Scanner, depth: number): boolean {
  skipBlanks(scanner)
  const character = scanner.text[scanner.at]
  if (character === '{' || character === '[') return depth < depthMax && skipNested(scanner, character, depth)
  return match(scanner, character === '"' ? stringPattern : scalarPattern) !== null
}

function skipNested(scanner: Scanner, open: string, depth: number): boolean {
  const close = open === '{' ? '}' : ']'
  scanner.at++
  if (take(scanner, close)) return true
  do {
    skipBlanks(scanner)
    if (open === '{' && (match(scanner, stringPattern) === null || !take(scanner, ':'))) return false
    if (!skipValue(scanner, depth + 1)) return false
  } while (take(scanner, ','))
  return take(scanner, close)
}

/** The text of the value at the path; null if there is none. */
export function findValue(text: string, steps: readonly Step[]): string | null {
  const bounds = find({ text, at: 0 }, steps)
  return bounds === null ? null : text.slice(...bounds)
}

/** The value as SQL text: a string without quotes and escapes, null for JSON null. */
export function textOfJson(raw: string | null): string | null {
  if (raw === null || raw === 'null') return null
  return raw.startsWith('"') ? readString({ text: raw, at: 0 }) : raw
}

/** Strings of the elements of a JSON array; null for any other text. */
export function elementsOfJson(text: string): string[] | null {
  const scanner: Scanner = { text, at: 0 }
  const elements: string[] = []
  if (!take(scanner, '[')) return null
  if (take(scanner, ']')) return atJsonEnd(scanner) ? elements : null
  do elements.push(valueAt(scanner) ?? '')
  while (elements.at(-1) !== '' && take(scanner, ','))
  return take(scanner, ']') && atJsonEnd(scanner) ? elements : null
}

export function membersOfJson(text: string): (readonly [name: string, value: string])[] | null {
  const scanner: Scanner = { text, at: 0 }
  const members: (readonly [string, string])[] = []
  if (!take(scanner, '{')) return null
  if (take(scanner, '}')) return atJsonEnd(scanner) ? members : null
  do {
    skipBlanks(scanner)
    const name = readString(scanner)
    const value = name !== null && take(scanner, ':') ? valueAt(scanner) : null
    if (name === null || value === null) return null
    members.push([name, value])
  } while (take(scanner, ','))
  return take(scanner, '}') && atJsonEnd(scanner) ? members : null
}

function atJsonEnd(scanner: Scanner): boolean {
  skipBlanks(scanner)
  return scanner.at === scanner.text.length
}

function valueAt(scanner: Scanner): string | null {
  skipBlanks(scanner)
  const start = scanner.at
  return skipValue(scanner, 1) ? scanner.text.slice(start, scanner.at) : null
}

// Trees -------------------------------------------------------------------------------------------------------------

/** A parsed JSON value. Scalars are kept as text, so that numbers keep all their digits. */
export type JsonTree = string | readonly JsonTree[] | ReadonlyMap<string, JsonTree>

/** The tree of a JSON text, with the last of several members of one name; null if the text is not JSON. */
export function treeOfJson(text: string): JsonTree | null {
  const scanner: Scanner = { text, at: 0 }
  const tree = treeAt(scanner, 0)
  return atJsonEnd(scanner) ? tree : null
}

function treeAt(scanner: Scanner, depth: number): JsonTree | null {
  skipBlanks(scanner)
  const open = scanner.text[scanner.at]
  if (open !== '{' && open !== '[') return match(scanner, open === '"' ? stringPattern : scalarPattern)
  scanner.at++
  if (depth >= depthMax) return null
  return open === '{' ? objectAt(scanner, depth) : arrayAt(scanner, depth)
}

function arrayAt(scanner: Scanner, depth: number): JsonTree | null {
  const elements: JsonTree[] = []
  if (take(scanner, ']')) return elements
  do {
    const element = treeAt(scanner, depth + 1)
    if (element === null) return null
    elements.push(element)
  } while (take(scanner, ','))
  return take(scanner, ']') ? elements : null
}

function objectAt(scanner: Scanner, depth: number): JsonTree | null {
  const members = new Map<string, JsonTree>()
  if (take(scanner, '}')) return members
  do {
    skipBlanks(scanner)
    const name = readString(scanner)
    const value = name !== null && take(scanner, ':') ? treeAt(scanner, depth + 1) : null
    if (name === null || value === null) return null
    members.set(name, value)
  } while (take(scanner, ','))
  return take(scanner, '}') ? members : null
}

function extract(text: Value, path: Value): Value {
  const steps = parsePath(String(path))
  if (steps === null) return null
  return textOfJson(findValue(String(text), steps))
}

export const jsonFunctions: readonly ScalarFunction[] = [
  {
    name: 'json_extract',
    takes: ['TEXT', 'TEXT'],
    gives: 'VARCHAR',
    description: 'The value at a path of JSON, as text; NULL if there is none. Cast it to other types.',
    example: ['json_extract(\'{"a":[1,{"b":"x"}]}\', \'$.a[1].b\')', 'x'],
    eval: ([text = null, path = null]) => extract(text, path),
  },
]
